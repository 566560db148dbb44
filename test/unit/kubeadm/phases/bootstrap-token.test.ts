import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import type { KubeObject, ObjectRef } from '../../../../src/kube/object.ts';
import type { DefaultedBootstrapToken } from '../../../../src/kubeadm/config/defaults.ts';
import { type BootstrapTokenInput, bootstrapToken } from '../../../../src/kubeadm/phases/bootstrap-token.ts';
import { tokenSecret } from '../../../../src/kubeadm/token/token-secret.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const NOW = new Date('2030-01-01T00:00:00Z');
const hoursLater = (hours: number): Date => new Date(NOW.getTime() + hours * 3_600_000);
const TOKEN: DefaultedBootstrapToken = {
  token: new Secret('abcdef.0123456789abcdef'),
  ttl: '24h0m0s',
  usages: ['signing', 'authentication'],
  groups: ['system:bootstrappers:kubeadm:default-node-token'],
};
const CLUSTER_INFO: ObjectRef = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-public', name: 'cluster-info' };
const SECRET: ObjectRef = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: 'bootstrap-token-abcdef' };
const API = { server: 'https://10.0.0.10:6443', caPem: 'the CA\n' };

function inputOf({
  token = {},
  now = NOW,
  ...change
}: Partial<BootstrapTokenInput> & { token?: Partial<DefaultedBootstrapToken> } = {}): BootstrapTokenInput {
  const complete = { ...TOKEN, ...token };
  return {
    tokens: [{ secret: tokenSecret(complete, now), hasAbsoluteExpiry: complete.expires !== undefined }],
    apiServer: API,
    replaceAddress: false,
    now,
    ...change,
  };
}

const contextOf = (cluster: FakeCluster | null): PhaseContext => ({
  host: fakeHost(),
  cluster,
  clock: fakeClock(NOW),
  reporter: recordingReporter(),
});

async function plan(cluster: FakeCluster | null, input: BootstrapTokenInput) {
  const [only] = await planPhases([bootstrapToken], contextOf(cluster), input);
  if (only === undefined) throw new Error('no plan');
  return only.plan;
}

async function run(cluster: FakeCluster, input: BootstrapTokenInput): Promise<void> {
  await applyPhases([bootstrapToken], contextOf(cluster), input, await planPhases([bootstrapToken], contextOf(cluster), input));
}

async function prepared(): Promise<FakeCluster> {
  const cluster = fakeCluster();
  await run(cluster, inputOf());
  return cluster;
}

const decoded = (secret: KubeObject | null): Record<string, string> =>
  Object.fromEntries(
    Object.entries((secret?.data ?? {}) as Record<string, string>).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
  );

describe('bootstrap-token', () => {
  it('creates everything in an empty cluster, and plans nothing on a second run hours later', async () => {
    const cluster = fakeCluster();
    const { changes } = await plan(cluster, inputOf());
    expect(changes).toHaveLength(11);
    expect(new Set(changes.map(({ kind, reason }) => `${kind}: ${reason}`))).toEqual(new Set(['create-object: does not exist']));
    await run(cluster, inputOf());
    expect(await plan(cluster, inputOf({ now: hoursLater(23) }))).toEqual({
      changes: [],
      warnings: [],
      noop: 'bootstrap tokens, cluster-info and the RBAC rules for joining nodes are unchanged',
    });
  });

  it('masks tokens in its plan', async () => {
    const shown = JSON.stringify(
      planDocument([{ name: 'x', phases: [{ phase: 'bootstrap-token', plan: await plan(fakeCluster(), inputOf()) }] }], []),
    );
    for (const secret of ['0123456789abcdef', Buffer.from('0123456789abcdef').toString('base64')]) expect(shown).not.toContain(secret);
  });

  it.each<[string, string, Parameters<typeof inputOf>[0]]>([
    ['an expired token', 'it has expired', { now: hoursLater(25) }],
    ['another secret', 'differs in secret', { token: { token: new Secret('abcdef.fedcba9876543210') } }],
    ['other usages and groups', 'differs in usages, groups', { token: { usages: ['signing'], groups: [] } }],
    ['a description', 'differs in description', { token: { description: 'mine' } }],
    ['a token that never expires', 'differs in expiration', { token: { ttl: '0s' } }],
    ['a configured expiration time', 'differs in expiration', { token: { expires: '2031-01-01T00:00:00Z' } }],
  ])('updates a token with %s', async (_, reason, change) => {
    const cluster = await prepared();
    const input = inputOf(change);
    expect((await plan(cluster, input)).changes).toMatchObject([{ kind: 'update-object', reason }]);
    await run(cluster, input);
    expect(decoded(await cluster.get(SECRET))).toEqual(decoded(input.tokens[0]?.secret as KubeObject));
    expect((await plan(cluster, input)).changes).toEqual([]);
  });

  it('keeps a cluster-info with another address of the same cluster, and warns', async () => {
    const cluster = await prepared();
    const { changes, warnings } = await plan(cluster, inputOf({ apiServer: { ...API, server: 'https://127.0.0.1:7443' } }));
    expect(changes).toEqual([]);
    expect(warnings).toEqual([
      {
        code: 'CLUSTER_INFO_KEPT',
        message:
          'ConfigMap kube-public/cluster-info is kept: it names the server https://10.0.0.10:6443 instead of https://127.0.0.1:7443. If https://10.0.0.10:6443 is right, set controlPlaneEndpoint to it. Otherwise replace the ConfigMap with --force-upload',
      },
    ]);
  });

  it.each([
    ['a declared address', { apiServer: { ...API, server: 'https://lb:6443' }, replaceAddress: true }, 'the server address differs'],
    ['another CA', { apiServer: { ...API, caPem: 'another CA\n' } }, 'the CA differs'],
  ])('writes %s into cluster-info, removes outdated signatures and keeps other entries', async (_, change, reason) => {
    const cluster = await prepared();
    await cluster.patch(CLUSTER_INFO, 'merge', {
      metadata: { labels: { a: 'b' } },
      data: { 'jws-kubeconfig-abcdef': 'old', more: 'custom' },
    });
    expect((await plan(cluster, inputOf(change))).changes).toMatchObject([{ kind: 'update-object', reason }]);
    await run(cluster, inputOf(change));
    const found = await cluster.get(CLUSTER_INFO);
    expect(found?.metadata.labels).toEqual({ a: 'b' });
    const data = found?.data as Record<string, string>;
    expect(Object.keys(data).sort()).toEqual(['kubeconfig', 'more']);
    expect(data.kubeconfig).toContain(`server: ${change.apiServer.server}\n`);
  });

  it.each([
    ['https://127.0.0.1:6443', 1],
    ['https://localhost:6443', 1],
    ['https://[::1]:6443', 1],
    ['https://10.0.0.10:6443', 0],
    ['https://localhost.example.test:6443', 0],
  ])('number of warnings that other hosts cannot use %s: %i', async (server, count) => {
    const { warnings = [] } = await plan(fakeCluster(), inputOf({ apiServer: { ...API, server } }));
    expect(warnings.map(({ code }) => code)).toEqual(Array(count).fill('CLUSTER_INFO_LOOPBACK'));
  });

  it('replaces a cluster-info without a kubeconfig', async () => {
    const cluster = await prepared();
    await cluster.patch(CLUSTER_INFO, 'merge', { data: { kubeconfig: ': not [yaml' } });
    expect((await plan(cluster, inputOf())).changes).toMatchObject([{ kind: 'update-object' }]);
  });

  it('does not overwrite a concurrent change', async () => {
    const cluster = await prepared();
    const input = inputOf({ token: { description: 'mine' } });
    const observed = await bootstrapToken.inspect(contextOf(cluster), input);
    await cluster.patch(SECRET, 'merge', { metadata: { labels: { custom: 'x' } } });
    const [change] = observed.plan.changes;
    if (change?.kind !== 'update-object') throw new Error('no update was planned');
    const { applyClusterChange } = await import('../../../../src/host/apply.ts');
    await expect(applyClusterChange(cluster, change)).rejects.toMatchObject({ code: 'CLUSTER_CONFLICT' });
  });

  it('is planned for an empty cluster, and waits for the address of an API server', async () => {
    const { changes, deferred } = await plan(null, inputOf({ apiServer: null }));
    expect(changes).toHaveLength(10);
    expect(deferred).toBe('cluster-info needs the address and the CA of the API server (--kubeconfig)');
  });
});
