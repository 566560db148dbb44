import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { interrupted } from '../../../src/base/errors.ts';
import { renderText, type Text } from '../../../src/base/text/styled.ts';
import type { Output, Services } from '../../../src/cli/output/services.ts';
import { runOnHosts } from '../../../src/cli/run-on-hosts.ts';
import { watchRun } from '../../../src/cli/watch-run.ts';
import type { FleetProgress } from '../../../src/fleet/run/fleet.ts';
import { definePhase } from '../../../src/host/phase.ts';
import { DEFAULT_RUN } from '../../../src/host/run-settings.ts';
import { planWorkflow, type Workflow } from '../../../src/host/run-workflow.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { failedHost } from '../../support/report-inputs.ts';

interface MovedClock extends Clock {
  /** Advances the clock and runs the pending timers. */
  advance(ms: number): Promise<void>;
}

function movedClock(): MovedClock {
  let time = Date.parse('2030-01-01T00:00:00Z');
  let sleepers: { readonly until: number; readonly wake: () => void }[] = [];
  return {
    now: () => new Date(time),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
        sleepers.push({ until: time + ms, wake: resolve });
      }),
    advance: async (ms) => {
      time += ms;
      const due = sleepers.filter(({ until }) => until <= time);
      sleepers = sleepers.filter(({ until }) => until > time);
      for (const { wake } of due) wake();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

function world(status?: Output['status']) {
  const [clock, reporter] = [movedClock(), recordingReporter()];
  const output = { stdout: () => undefined, stderr: () => undefined, colour: false, ...(status === undefined ? {} : { status }) };
  const interruption = new AbortController();
  const services = { clock, output, signal: interruption.signal, reporter: () => reporter } as unknown as Services;
  return { clock, reporter, services, interruption };
}

const OUTPUT = { format: 'text', verbosity: 0 } as const;
const RUNNING: FleetProgress = {
  total: 12,
  looking: ['n9'],
  waiting: 2,
  changing: ['n2', 'n3'],
  ended: { changed: 5, failed: 1, unreachable: 1 },
};
const phase = (name: string) => ({ level: 'info', code: 'PHASE_STARTED', phase: name, message: '', verbosity: 1 }) as const;

describe('a run over a fleet without a terminal', () => {
  it('repeats neither the command of --notify, which may have the URL of a webhook, nor the permission to lose pods', () => {
    const printed: Text[] = [];
    const { services } = world();
    const output = { ...services.output, stderr: (text: Text) => void printed.push(text) };
    const commandLine = ['apply', '--yes', '--allow-pod-loss', '--notify', 'curl https://hooks.example/SECRET'];
    const interruption = { hosts: ['n1'], retryCommand: 'kubeletadm apply' };
    const watch = watchRun({ ...services, output, commandLine, onForcedExit: () => () => undefined }, OUTPUT, {
      title: 'apply',
      interruption,
    });
    watch.showEnd({ outcomes: [failedHost('n1', 'failed', { code: 'SOME', message: 'broken' })], stopped: null });
    watch.close();
    const text = printed.map((one) => renderText(one, false)).join('');
    expect(text).toContain("to continue: kubeletadm apply --yes --notify '[command]' --retry failed");
    expect(text).not.toContain('SECRET');
  });

  it('reports once a minute which host is in which phase, and for how long', async () => {
    const { clock, reporter, services } = world();
    const watch = watchRun(services, OUTPUT, { title: 'apply' });
    watch.ports.progress?.(RUNNING);
    await clock.advance(10_000);
    watch.ports.reporterOf('n2').report(phase('install-packages'));
    await clock.advance(20_000);
    watch.ports.reporterOf('n3').report(phase('kubelet-start'));
    watch.ports.reporterOf('n3').report({ ...phase('kubelet-start'), code: 'CHANGE_DONE' });
    expect(reporter.messages('PROGRESS')).toEqual([]);
    await clock.advance(30_000);
    await clock.advance(60_000);
    expect(reporter.messages('PROGRESS')).toEqual([
      '1m0s: 7/12 hosts done · in progress: n2 [install-packages] 50s, n3 [kubelet-start] 30s · planning: n9 · queued: 2 · failed: 1 · unreachable: 1',
      '2m0s: 7/12 hosts done · in progress: n2 [install-packages] 1m50s, n3 [kubelet-start] 1m30s · planning: n9 · queued: 2 · failed: 1 · unreachable: 1',
    ]);
    watch.close();
    await clock.advance(600_000);
    expect(reporter.messages('PROGRESS')).toHaveLength(2);
  });

  it('names at most eight hosts', async () => {
    const { clock, reporter, services } = world();
    const watch = watchRun(services, OUTPUT, { title: 'apply' });
    const changing = Array.from({ length: 50 }, (_, i) => `n${i + 1}`);
    watch.ports.progress?.({ total: 50, looking: [], waiting: 0, changing, ended: {} });
    await clock.advance(60_000);
    expect(reporter.messages('PROGRESS')).toEqual(['1m0s: 0/50 hosts done · in progress: n1, n2, n3, n4, n5, n6, n7, n8 and 42 more']);
    watch.close();
  });

  it('is silent on a terminal, and while no host is in progress', async () => {
    const shown = world(() => undefined);
    const watch = watchRun(shown.services, OUTPUT, { title: 'apply' });
    watch.ports.progress?.(RUNNING);
    await shown.clock.advance(60_000);
    expect(shown.reporter.messages('PROGRESS')).toEqual([]);
    const idle = world();
    watchRun(idle.services, OUTPUT, { title: 'apply' }).ports.progress?.({ ...RUNNING, looking: [], changing: [] });
    await idle.clock.advance(60_000);
    expect(idle.reporter.messages('PROGRESS')).toEqual([]);
  });
});

describe('an interrupted run over a fleet', () => {
  it.each([
    [false, 'warning', 'finishing the changes in progress on n2, n3; interrupt again to exit immediately'],
    [true, 'info', 'stopping, nothing was changed; interrupt again to exit immediately'],
  ])('says what it still does (only inspects: %s)', (reads, level, message) => {
    const { reporter, services, interruption } = world();
    const watch = watchRun(services, OUTPUT, { title: 'join', reads });
    watch.ports.progress?.(RUNNING);
    interruption.abort(interrupted('SIGINT'));
    watch.close();
    expect(reporter.events.filter(({ code }) => code === 'INTERRUPTED')).toEqual([{ level, code: 'INTERRUPTED', message }]);
  });
});

describe('a command for hosts without a terminal', () => {
  it('reports the phase of its host once a minute', async () => {
    const { clock, reporter, services } = world();
    const host = fakeHost({ name: 'n1' });
    let letGo: () => void = () => undefined;
    const isStarted = new Promise<void>((started) => {
      const slow = definePhase<null, null>({
        name: 'install-packages',
        short: 'Install packages',
        ready: async () => {
          started();
          await new Promise<void>((resolve) => {
            letGo = resolve;
          });
        },
        observe: async () => null,
        plan: () => ({ changes: [{ kind: 'daemon-reload', reason: 'a test' }] }),
      });
      const workflow: Workflow<null, null> = {
        name: 'test',
        phases: [slow],
        prepare: async () => ({ input: null, warnings: [], refusals: [] }),
      };
      const connecting = { ...services, connectHost: async () => host, newId: async () => 'id', self: { name: 'me', id: 1, machine: 'm' } };
      ended = runOnHosts(
        connecting as unknown as Services,
        {
          plan: { ...OUTPUT, failsIfChanged: false, showOrigin: false },
          writing: { breakLock: false, confirmMs: undefined },
          run: DEFAULT_RUN,
        },
        {
          title: 'test',
          open: async () => ({
            targets: [{ address: 'n1' }],
            cluster: null,
            planHost: (context, run) => planWorkflow(workflow, context, null, run),
            warnings: [],
            run: DEFAULT_RUN,
          }),
        },
      );
    });
    await isStarted;
    await clock.advance(60_000);
    expect(reporter.messages('PROGRESS')).toEqual(['1m0s: in progress: n1 [install-packages] 1m0s']);
    letGo();
    expect(await ended).toBe(0);
    await clock.advance(60_000);
    expect(reporter.messages('PROGRESS')).toHaveLength(1);
  });
  let ended: Promise<number>;
});
