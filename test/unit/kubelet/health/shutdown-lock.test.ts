import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { JsonObject } from '../../../../src/base/json.ts';
import { verifyShutdown } from '../../../../src/kubelet/health/shutdown-lock.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCommand, fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

/** As a kubelet 1.36.2 holds it on a host with systemd 252. */
const LOCK = 'a(ssssuu) 1 "shutdown" "kubelet" "Kubelet needs time to handle node shutdown" "delay" 0 2150\n';
const FAILED =
  'E1128 11:02:22.260899    2150 kubelet.go:1863] "Failed to start node shutdown manager" err="node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to 1m0s (ShutdownGracePeriod), current value is 30s"';
const PERIOD: JsonObject = { shutdownGracePeriod: '60s', shutdownGracePeriodCriticalPods: '30s' };

async function verify(
  busctl: FakeCommand,
  change: { before: JsonObject | null; after: JsonObject | null; mayLosePods?: boolean } = { before: {}, after: PERIOD },
) {
  const clock = fakeClock();
  const host = fakeHost({ name: 'w1', commands: { busctl, journalctl: { stdout: `${FAILED}\n` } } });
  const started = clock.now().getTime();
  const reporter = recordingReporter();
  const context = { host, cluster: null, clock, reporter };
  const error = await verifyShutdown(context, 'kubelet-start', change).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error !== null && !(error instanceof AppError)) throw error;
  return {
    problem: error?.problems[0] ?? null,
    waitedMs: clock.now().getTime() - started,
    queries: host.queries.length,
    warnings: reporter.events.filter(({ level }) => level === 'warning').map(({ message }) => message),
  };
}

describe('the lock of a graceful shutdown', () => {
  it('is awaited: the kubelet takes it after it is healthy', async () => {
    let calls = 0;
    const { problem } = await verify(() => ({ stdout: ++calls < 4 ? 'a(ssssuu) 0\n' : LOCK }));
    expect([problem, calls]).toEqual([null, 4]);
  });

  it('of another program is none, and the cause is that of the journal', async () => {
    const { problem, waitedMs } = await verify({ stdout: LOCK.replace('kubelet', 'NetworkManager') });
    expect(problem).toMatchObject({ host: 'w1', code: 'SHUTDOWN_NOT_DELAYED' });
    expect(problem?.message).toBe(
      'kubelet-start: shutdownGracePeriod (60 s) is not in force: the kubelet holds no lock of systemd-logind that delays a shutdown (node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to 1m0s (ShutdownGracePeriod), current value is 30s)',
    );
    expect(waitedMs).toBeGreaterThanOrEqual(30_000);
  });

  it.each<[string, FakeCommand]>([
    ['without logind', { exitCode: 1 }],
    ['without busctl', { exitCode: 127 }],
  ])('is unknown %s, which is a warning', async (_, busctl) => {
    const { problem, warnings } = await verify(busctl);
    expect([problem, warnings]).toEqual([null, [expect.stringMatching(/^shutdownGracePeriod \(60 s\) was not verified: busctl /)]]);
  });

  it('is awaited with --allow-pod-loss as well, and its absence is a warning', async () => {
    const change = { before: {}, after: PERIOD, mayLosePods: true };
    expect(await verify({ stdout: LOCK }, change)).toMatchObject({ problem: null, warnings: [] });
    const { problem, waitedMs, warnings } = await verify({ stdout: '' }, change);
    expect(problem).toBeNull();
    expect(waitedMs).toBeGreaterThanOrEqual(30_000);
    expect(warnings).toEqual([expect.stringMatching(/ is not in force: .* The change is kept because of --allow-pod-loss\./)]);
  });

  it.each<[string, JsonObject | null, JsonObject | null]>([
    ['an unchanged period', PERIOD, { ...PERIOD, maxPods: 50 }],
    ['no period', PERIOD, {}],
    ['an unknown configuration', null, PERIOD],
  ])('is not looked for with %s', async (_, before, after) => expect((await verify({ stdout: '' }, { before, after })).queries).toBe(0));
});
