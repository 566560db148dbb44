import { describe, expect, it } from 'vitest';
import { applyPhases } from '../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { waitNode } from '../../../../src/kubeadm/phases/wait-node.ts';
import { waitOnKubelet } from '../../../../src/kubelet/health/crash-watch.ts';
import { healthText } from '../../../../src/kubelet/health/observe.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { crashes, fakeUnit, runs } from '../../../support/fake-units.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const error = (pid: number, text: string): string => `E1128 11:00:00.1   ${pid} x.go:1] ${text}`;
const RESERVED =
  '"Failed to start ContainerManager" err="Failed to enforce System Reserved Cgroup Limits on \\"/nope\\": cgroup [\\"nope\\"] has some missing paths"';

function world() {
  const unit = fakeUnit({ activeState: 'active', subState: 'running' });
  const clock = fakeClock();
  const reporter = recordingReporter();
  const context: PhaseContext = { host: fakeHost({ units: { kubelet: unit } }), cluster: fakeCluster(), clock, reporter };
  /** Answers healthz for a second, then exits. */
  const loop = (line: string, times = 100): void => {
    for (let i = 0; i < times; i++) {
      clock.at(i * 5_000 + 1_000, () => crashes(unit, error(i, line)));
      clock.at(i * 5_000 + 4_000, () => runs(unit));
    }
  };
  const wait = (timeoutMs = 300_000) =>
    waitOnKubelet<void, string>(context, 'p', {
      probe: async () => ({ pending: 'no Node' }),
      timeoutMs,
      pauseMs: () => 500,
      progressMs: 5_000,
      describe: (why, waitedMs) => `waiting ${waitedMs / 1000} s: ${why}`,
      timedOut: (why) => {
        throw new Error(`timed out: ${why}`);
      },
    });
  return { unit, clock, reporter, context, loop, wait };
}

describe('waitOnKubelet', () => {
  it('ends a wait with the cause of a crash loop, and shows its last error meanwhile', async () => {
    const { loop, wait, reporter, clock } = world();
    loop(RESERVED);
    await expect(wait()).rejects.toMatchObject({
      code: 'KUBELET_UNHEALTHY',
      message: expect.stringContaining(
        'systemReservedCgroup: the limits of cgroup /nope cannot be set: cgroup ["nope"] has some missing paths',
      ),
    });
    expect(clock.elapsedMs).toBeLessThan(15_000);
    expect(reporter.messages('WAITING')[0]).toMatch(
      /^waiting 5 s: no Node\. Last error of the kubelet: Failed to start ContainerManager: Failed to enforce/,
    );
  });

  it('ends a wait after equal exits for an unknown reason', async () => {
    const { loop, wait, clock } = world();
    loop('"Something" err="odd"');
    await expect(wait()).rejects.toMatchObject({ code: 'KUBELET_UNHEALTHY', message: expect.stringContaining('Something: odd') });
    expect(clock.elapsedMs).toBeLessThan(60_000);
  });

  it('names the cause of a crash loop at the timeout', async () => {
    const { loop, wait } = world();
    loop('"Something" err="odd"');
    await expect(wait(14_000)).rejects.toMatchObject({
      code: 'KUBELET_UNHEALTHY',
      message: expect.stringContaining('after 14s: Something: odd'),
    });
  });

  it('does not end a wait while the kubelet runs, or was restarted once', async () => {
    const { loop, wait } = world();
    loop('"Something" err="odd"', 1);
    await expect(wait(60_000)).rejects.toThrow('timed out: no Node');
  });

  it('is part of the wait for the Node of a joining host', async () => {
    const { loop, context } = world();
    loop(RESERVED);
    const input = { nodeName: 'w1', timeoutMs: 300_000, readyMs: null, admin: null };
    await expect(applyPhases([waitNode], context, input, [])).rejects.toMatchObject({ code: 'KUBELET_UNHEALTHY' });
  });
});

describe('healthText', () => {
  const healthz = { status: 200, body: 'ok' };
  const text = (state: Parameters<typeof fakeUnit>[0], ageMs: number | null) =>
    healthText({
      state: { unit: fakeUnit(state).state, healthz },
      process: ageMs === null ? null : { pid: 7, argv: [], ageMs, cpuMs: null },
    });

  it.each([
    ['ok', { activeState: 'active', subState: 'running' }, 1_000],
    ['restarted 1 s ago, 84 restarts', { activeState: 'active', subState: 'running', restarts: 84 }, 1_000],
    ['ok', { activeState: 'active', subState: 'running', restarts: 84 }, 61_000],
    ['crashed, 1 restart', { activeState: 'activating', subState: 'auto-restart', restarts: 1 }, null],
    ['failed', { activeState: 'failed', subState: 'failed' }, null],
    ['not installed', { loadState: 'not-found' }, null],
  ])('%s', (expected, state, ageMs) => {
    expect(text(state, ageMs)).toBe(expected);
  });
});
