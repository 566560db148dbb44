import { describe, expect, it } from 'vitest';
import { planPhases } from '../../../../src/host/run-workflow.ts';
import { waitControlPlane } from '../../../../src/kubeadm/phases/wait-control-plane.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const API = 'https://10.0.0.1:6443/livez';
const SCHEDULER = 'https://127.0.0.1:10259/livez';
const INPUT = {
  components: [
    { name: 'kube-apiserver', url: API },
    { name: 'kube-scheduler', url: SCHEDULER },
  ],
  criSocket: 'unix:///run/x.sock',
  timeoutMs: 60_000,
} as const;

/** Each component answers with these statuses in turn, the last one for ever; 0 is no answer. */
function world(answers: Readonly<Record<string, readonly number[]>>, logs: Readonly<Record<string, string>> = {}) {
  const asked = new Map<string, number>();
  const host = fakeHost({
    name: 'cp-1',
    units: {},
    // `command -v systemctl`, and the log of the container named last.
    commands: {
      sh: (argv) =>
        argv.length === 3
          ? { exitCode: 0 }
          : { exitCode: logs[argv.at(-1) ?? ''] === undefined ? 1 : 0, stdout: logs[argv.at(-1) ?? ''] ?? '' },
    },
    http: (url) => {
      const turn = asked.get(url) ?? 0;
      asked.set(url, turn + 1);
      const statuses = answers[url] ?? [];
      const status = statuses[Math.min(turn, statuses.length - 1)] ?? 0;
      return status === 0 ? { error: 'connection refused' } : { status, body: '' };
    },
  });
  const reporter = recordingReporter();
  const context = { host, cluster: null, clock: fakeClock(), reporter };
  return { asked, reporter, wait: async () => (await waitControlPlane.inspect(context, INPUT)).verify([]), context };
}

describe('wait-control-plane', () => {
  it('plans nothing, and waits until all components are well, each asked no more than that takes', async () => {
    const { wait, asked, context } = world({ [API]: [0, 0, 500, 200], [SCHEDULER]: [200] });
    expect(await planPhases([waitControlPlane], context, INPUT)).toEqual([{ phase: 'wait-control-plane', plan: { changes: [] } }]);
    await wait();
    expect(Object.fromEntries(asked)).toEqual({ [API]: 4, [SCHEDULER]: 1 });
  });

  it('takes an API server for well that wants to know who asks', async () => {
    await world({ [API]: [401], [SCHEDULER]: [200] }).wait();
  });

  it('gives an API server that forbids the time to make its roles', async () => {
    const { wait, asked } = world({ [API]: [403, 403, 200], [SCHEDULER]: [200] });
    await wait();
    expect(asked.get(API)).toBe(3);
    await world({ [API]: [403], [SCHEDULER]: [200] }).wait();
  });

  it('says which are not, what they answer and what their containers said last', async () => {
    const { wait } = world({ [API]: [0], [SCHEDULER]: [500] }, { 'kube-apiserver': 'started\nbind: address already in use\n' });
    await expect(wait()).rejects.toMatchObject({
      exitCode: 1,
      problems: [
        {
          host: 'cp-1',
          code: 'CONTROL_PLANE_UNHEALTHY',
          message: `wait-control-plane: kube-apiserver is not healthy after 60s: ${API}: connection refused. Last line of its container log: bind: address already in use`,
        },
        { message: `wait-control-plane: kube-scheduler is not healthy after 60s: ${SCHEDULER}: answers 500` },
      ],
    });
  });

  it('is put off where nothing runs', async () => {
    const host = fakeHost({ units: null });
    const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
    expect((await waitControlPlane.inspect(context, INPUT)).plan.deferred).toContain('when the host boots');
  });
});
