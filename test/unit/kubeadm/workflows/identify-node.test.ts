import { describe, expect, it } from 'vitest';
import { createCa } from '../../../../lab/api-server/pki.ts';
import { AppError } from '../../../../src/base/errors.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { markNode, removeSocketAnnotation } from '../../../../src/kubeadm/phases/mark-node.ts';
import { identifyNode, nodeTrust, ownNodeCheck } from '../../../../src/kubeadm/workflows/node/identify-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { CLIENT_CA_PEM, isProof, kubeletCredentials, provesNode, testTrust } from '../../../support/node-proof.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const W1 = await kubeletCredentials('w1');
const W2 = await kubeletCredentials('w2');
const AUTHENTICATION = { name: 'extension-apiserver-authentication', namespace: 'kube-system' };
const node = (change: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'w1' },
  status: { nodeInfo: { machineID: 'aaaa' }, conditions: [{ type: 'Ready', status: 'True' }] },
  ...change,
});

function published(caPem: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: AUTHENTICATION, data: { 'client-ca-file': caPem } };
}

/** A host with the certificate of w1. */
function world(objects: readonly KubeObject[] = [node()], credentials: typeof W1 | null = W1) {
  const cluster = fakeCluster({ objects });
  const challenges: string[] = [];
  const host = fakeHost({
    name: 'h1',
    files: { '/etc/machine-id': 'aaaa\n' },
    commands: {
      sh: (argv, stdin) => {
        if (!isProof(argv)) return { exitCode: 127 };
        challenges.push(stdin);
        return credentials === null ? {} : provesNode(credentials, stdin);
      },
    },
  });
  return {
    cluster,
    host,
    challenges,
    context: { host, cluster, clock: fakeClock(new Date('2030-01-01T00:00:00Z')), reporter: recordingReporter() },
  };
}

describe('the CA for the proofs of hosts', () => {
  const trustIn = (cluster: ReturnType<typeof fakeCluster>, caPem: string | null) =>
    nodeTrust({ cluster, caPem, newId: async () => '0123456789abcdef', nameHint: 'name it' });
  const subjects = async (trust: ReturnType<typeof nodeTrust>) => (await trust.cas()).map(({ pem }) => pem.trim());

  it('is the published CA of the API server, before the CA of the kubeconfig', async () => {
    const { certPem } = await createCa('kubeconfig');
    expect(await subjects(trustIn(fakeCluster({ objects: [published(CLIENT_CA_PEM)] }), certPem))).toEqual([CLIENT_CA_PEM.trim()]);
  });

  it('is the CA of the kubeconfig when none is published or readable', async () => {
    expect(await subjects(trustIn(fakeCluster(), CLIENT_CA_PEM))).toEqual([CLIENT_CA_PEM.trim()]);
    const nodes = fakeCluster({ objects: [published('x')], user: { name: 'unprivileged', groups: [] } });
    expect(await subjects(trustIn(nodes, CLIENT_CA_PEM))).toEqual([CLIENT_CA_PEM.trim()]);
    expect(await subjects(trustIn(fakeCluster(), null))).toEqual([]);
  });

  it('is read once, and again after an error', async () => {
    const cluster = fakeCluster();
    cluster.failNext('get ConfigMap', new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'away' }));
    const trust = trustIn(cluster, CLIENT_CA_PEM);
    await expect(trust.cas()).rejects.toMatchObject({ code: 'CLUSTER_UNREACHABLE' });
    await Promise.all([trust.cas(), trust.cas()]);
    expect(cluster.calls.filter((call) => call.startsWith('get ConfigMap'))).toHaveLength(2);
  });
});

describe('identifyNode', () => {
  it('queries the host in one round trip, with a new challenge each time', async () => {
    const { context, host, challenges } = world();
    const trust = testTrust();
    const first = await identifyNode(context, { trust, named: null });
    expect(first).toMatchObject({ claim: { nodeName: 'w1', isProven: true }, node: { metadata: { name: 'w1' } }, refusals: [] });
    expect(host.roundTrips).toBe(1);
    await identifyNode(context, { trust, named: null });
    expect(new Set(challenges).size).toBe(2);
  });

  it('normalizes a name like kubeadm', async () => {
    expect(await identifyNode(world().context, { trust: testTrust(), named: ' W1 ' })).toMatchObject({ refusals: [] });
  });

  it('rejects another Node than the expected one', async () => {
    const { refusals } = await identifyNode(world().context, { trust: testTrust(), named: null, expected: 'w2' });
    expect(refusals).toMatchObject([{ code: 'NODE_NAME_CONFLICT', host: 'h1' }]);
  });

  it('accepts an expired certificate only for its renewal', async () => {
    const expired = await kubeletCredentials('w1', { notAfter: new Date('2029-12-31T00:00:00Z') });
    const { context } = world([node()], expired);
    expect((await identifyNode(context, { trust: testTrust(), named: null })).refusals).toMatchObject([
      { code: 'NODE_NOT_PROVEN', hint: expect.stringContaining('certs renew-kubelet') },
    ]);
    expect(await identifyNode(context, { trust: testTrust(), named: null, acceptsExpired: true })).toMatchObject({
      claim: { nodeName: 'w1', isProven: true },
      refusals: [],
    });
  });
});

describe('a phase that changes a Node after its kubelet has joined', () => {
  const marks = { nodeName: 'w1', labels: { pool: 'edge' }, taints: [], saved: null };
  const check = () => ownNodeCheck({ trust: testTrust(), named: null, expected: 'w1' });
  const labels = async ({ cluster }: ReturnType<typeof world>) =>
    (await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'w1' }))?.metadata.labels;

  it('plans nothing before the host has proved its Node, and requires the proof before it writes', async () => {
    const w = world();
    const input = { ...marks, admin: w.cluster, check: check() };
    const [planned] = await planPhases([markNode], w.context, input);
    expect(planned?.plan).toEqual({ changes: [], deferred: 'changes Node w1 after checking that the host belongs to this Node' });
    expect(w.challenges).toEqual([]);
    await applyPhases([markNode], w.context, input, []);
    expect([await labels(w), w.challenges.length]).toEqual([{ pool: 'edge' }, 1]);
  });

  it('requires no proof without changes', async () => {
    const w = world([node({ metadata: { name: 'w1', labels: { pool: 'edge' } } })]);
    await applyPhases([markNode], w.context, { ...marks, admin: w.cluster, check: check() }, []);
    expect(w.challenges).toEqual([]);
  });

  it.each([
    ['a host without a certificate', null, 'NODE_NOT_PROVEN'],
    ['a host whose kubelet has another name', W2, 'NODE_NAME_CONFLICT'],
  ] as const)('fails for %s, and writes nothing', async (_, credentials, code) => {
    const w = world([node()], credentials);
    const input = { ...marks, admin: w.cluster, check: check() };
    await expect(applyPhases([markNode], w.context, input, [])).rejects.toMatchObject({ code, exitCode: 1 });
    expect(await labels(w)).toBeUndefined();
  });

  it('applies to the CRI socket annotation', async () => {
    const annotations = { 'kubeadm.alpha.kubernetes.io/cri-socket': 'unix:///x' };
    const w = world([node({ metadata: { name: 'w1', annotations } })], null);
    await applyPhases([removeSocketAnnotation], w.context, { nodeName: 'w1', check: check() }, []);
    expect((await w.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'w1' }))?.metadata.annotations).toEqual(annotations);
  });
});
