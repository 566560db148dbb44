import { describe, expect, it } from 'vitest';
import { planPhases } from '../../../../src/host/apply-phases.ts';
import { waitControlPlane } from '../../../../src/kubeadm/phases/wait-control-plane.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const API = 'https://10.0.0.1:7443/livez';
const SCHEDULER = 'https://127.0.0.1:10259/livez';
/** The control plane of the host has its own port, and no controller manager. */
const pod = (name: string, ...flags: readonly string[]): string =>
  `kind: Pod\nspec:\n  containers:\n    - command: ${JSON.stringify([name, ...flags])}\n`;
const MANIFESTS = {
  '/etc/kubernetes/manifests/kube-apiserver.yaml': pod('kube-apiserver', '--advertise-address=10.0.0.1', '--secure-port=7443'),
  '/etc/kubernetes/manifests/kube-scheduler.yaml': pod('kube-scheduler', '--bind-address=127.0.0.1'),
};
const INPUT = {
  criSocket: 'unix:///run/x.sock',
  timeoutMs: 60_000,
} as const;

/** Each component answers with these statuses in turn and repeats the last one; 0 means no response. */
function world(
  statusesByUrl: Readonly<Record<string, readonly number[]>>,
  logs: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = MANIFESTS,
) {
  const queryCounts = new Map<string, number>();
  const host = fakeHost({
    name: 'cp-1',
    files,
    units: {},
    // `command -v systemctl`, and the log of the container in the last argument.
    commands: {
      sh: (argv) =>
        argv.length === 3
          ? { exitCode: 0 }
          : { exitCode: logs[argv.at(-1) ?? ''] === undefined ? 1 : 0, stdout: logs[argv.at(-1) ?? ''] ?? '' },
    },
    http: (url) => {
      const turn = queryCounts.get(url) ?? 0;
      queryCounts.set(url, turn + 1);
      const statuses = statusesByUrl[url] ?? [];
      const status = statuses[Math.min(turn, statuses.length - 1)] ?? 0;
      return status === 0 ? { error: 'connection refused' } : { status, body: '' };
    },
  });
  const reporter = recordingReporter();
  const context = { host, cluster: null, clock: fakeClock(), reporter };
  return { queryCounts, reporter, wait: async () => (await waitControlPlane.inspect(context, INPUT)).verify([]), context };
}

describe('wait-control-plane', () => {
  it('plans nothing, and waits until all components are healthy without further queries to healthy ones', async () => {
    const { wait, queryCounts, context } = world({ [API]: [0, 0, 500, 200], [SCHEDULER]: [200] });
    expect(await planPhases([waitControlPlane], context, INPUT)).toEqual([{ phase: 'wait-control-plane', plan: { changes: [] } }]);
    await wait();
    expect(Object.fromEntries(queryCounts)).toEqual({ [API]: 4, [SCHEDULER]: 1 });
  });

  it('treats an API server that requires authentication as healthy', async () => {
    await world({ [API]: [401], [SCHEDULER]: [200] }).wait();
  });

  it('gives an API server that answers 403 time to create its roles', async () => {
    const { wait, queryCounts } = world({ [API]: [403, 403, 200], [SCHEDULER]: [200] });
    await wait();
    expect(queryCounts.get(API)).toBe(3);
    await world({ [API]: [403], [SCHEDULER]: [200] }).wait();
  });

  it('reports unhealthy components with their response and the last line of their container log', async () => {
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

  it('waits for nothing without manifests, which is an error when the phase is run alone', async () => {
    const { wait, context } = world({}, {}, {});
    await wait();
    const alone = (await waitControlPlane.inspect(context, { ...INPUT, isRequired: true })).verify([]);
    await expect(alone).rejects.toMatchObject({ code: 'CONTROL_PLANE_MISSING' });
  });

  it('is deferred when no system is running', async () => {
    const host = fakeHost({ units: null });
    const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
    expect((await waitControlPlane.inspect(context, INPUT)).plan.deferred).toContain('when the host boots');
  });
});
