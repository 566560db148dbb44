import { describe, expect, it } from 'vitest';
import type { HttpFact } from '../../../../../src/host/facts/query.ts';
import type { KubeObject } from '../../../../../src/kube/object.ts';
import { type PostUpgradeInput, postUpgrade } from '../../../../../src/kubeadm/phases/upgrade/post-upgrade.ts';
import { fakeClock } from '../../../../support/fake-clock.ts';
import { fakeCluster } from '../../../../support/fake-cluster.ts';
import { fakeHost } from '../../../../support/fake-host.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';

const IMAGE = 'registry.example:5000/kube-apiserver:v1.36.2@sha256:0123';
const INPUT: PostUpgradeInput = {
  ...{ nodeName: 'cp-1', version: 'v1.36.2', checksVersion: true },
  images: new Map([['kube-apiserver', IMAGE]]),
  versionUrl: 'https://10.0.0.1:6443/version',
};
const OBJECTS: readonly KubeObject[] = [
  {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kube-apiserver-cp-1', namespace: 'kube-system' } },
    spec: { nodeName: 'cp-1', containers: [{ name: 'kube-apiserver', image: IMAGE }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'kube-apiserver', ready: true, state: { running: {} } }],
    },
  },
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp-1' }, status: { nodeInfo: { kubeletVersion: `v1.36.2${'x'.repeat(5000)}` } } },
];

function contextWith(http: () => HttpFact) {
  const reporter = recordingReporter();
  const clock = fakeClock();
  const context = { host: fakeHost({ http }), cluster: fakeCluster({ objects: OBJECTS, now: clock.now }), clock, reporter };
  return { context, reporter };
}

/** The reported message of a verification. */
async function verify(answers: readonly HttpFact[], input: Partial<PostUpgradeInput> = {}): Promise<string> {
  const left = [...answers];
  const http = (): HttpFact => (left.length > 1 ? left.shift() : left[0]) as HttpFact;
  const { context, reporter } = contextWith(http);
  const phase = await postUpgrade.inspect(context, { ...INPUT, ...input });
  await phase.verify([]);
  return reporter.events.find(({ code }) => code === 'UPGRADE_VERIFIED')?.message ?? '';
}

const version = (gitVersion: string): HttpFact => ({ status: 200, body: JSON.stringify({ gitVersion }) });

describe('post-upgrade', () => {
  it('reports the tags of the images and the version of the API server, in bounded length', async () => {
    const message = await verify([version('v1.36.2')]);
    expect(message).toContain('kube-apiserver v1.36.2; the API server reports v1.36.2; the kubelet reports v1.36.2');
    expect(message.length).toBeLessThan(300);
  });

  it.each([401, 403])('reports a version that was not verified, because it needs credentials (%i)', async (status) => {
    expect(await verify([{ status, body: '' }])).toContain(
      'the version of the API server is unknown (https://10.0.0.1:6443/version requires credentials)',
    );
  });

  it('waits for an API server that does not answer yet', async () => {
    expect(await verify([{ error: 'connection refused' }, { status: 503, body: '' }, version('v1.36.2')])).toContain('reports v1.36.2');
  });

  it.each([
    [{ error: 'connection refused' }, 'connection refused'],
    [{ status: 500, body: '' }, 'answers 500'],
    [{ status: 200, body: '<html>' }, 'answers 200 without gitVersion'],
    [version('v1.35.6'), 'the API server reports v1.35.6, not v1.36.2'],
  ] as const)('fails if the version is not that of the upgrade: %j', async (answer, message) => {
    await expect(verify([answer])).rejects.toMatchObject({ code: 'UPGRADE_NOT_VERIFIED', message: expect.stringContaining(message) });
  });

  it('verifies nothing, and shows that, if no component was upgraded', async () => {
    const input = { ...INPUT, images: new Map(), checksVersion: false };
    const { context, reporter } = contextWith(() => version('v1.35.6'));
    const phase = await postUpgrade.inspect(context, input);
    await phase.verify([]);
    expect(phase.plan).toEqual({ changes: [], noop: 'nothing to verify: the run upgrades no component' });
    expect(reporter.events).toEqual([]);
  });

  it('requires no version of an API server that was not upgraded', async () => {
    expect(await verify([{ error: 'connection refused' }], { checksVersion: false })).toContain('connection refused');
  });
});
