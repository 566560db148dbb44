import { describe, expect, it } from 'vitest';
import type { Services } from '../../../../src/cli/output/services.ts';
import type { Host } from '../../../../src/host/access/host.ts';
import type { Dial } from '../../../../src/kube/dial.ts';
import type { ClusterTarget } from '../../../../src/kubeadm/control-plane/cluster-target.ts';
import { openCluster } from '../../../../src/kubeadm/use-cases/open-cluster.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const dial: Dial = () => Promise.reject(new Error('nothing is sent here'));
const overSsh: Host = Object.assign(fakeHost({ name: 'node1' }), { dial });

async function open(cluster: object, from?: Host) {
  const text = JSON.stringify({
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    clusters: [{ name: 'k', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user: { token: 't' } }],
  });
  const targets: ClusterTarget[] = [];
  const services = {
    env: {},
    input: { readText: async () => text },
    connectCluster: async (target: ClusterTarget) => {
      targets.push(target);
      return fakeCluster();
    },
  } as unknown as Services;
  const run = { dryRun: false, staged: false, writes: null, ...(from === undefined ? {} : { from }) };
  const error = await openCluster(services, { kubeconfig: 'admin.conf' }, run).then(
    () => null,
    (reason: unknown) => reason,
  );
  return { error, targets };
}

describe("openCluster over a host's connection", () => {
  it.each([
    ['insecure-skip-tls-verify', { 'insecure-skip-tls-verify': true }],
    ['plain HTTP', { server: 'http://10.0.0.1:8080' }],
  ])("rejects the operator's credentials with %s: the host could impersonate the API server", async (_, cluster) => {
    const { error, targets } = await open(cluster, overSsh);
    expect(error).toMatchObject({
      code: 'CLUSTER_UNVERIFIED',
      exitCode: 2,
      message: expect.stringContaining('reachable only through node1'),
    });
    expect(targets).toEqual([]);
  });

  it('sends the credentials to a verified server', async () => {
    const { error, targets } = await open({}, overSsh);
    expect([error, targets]).toMatchObject([null, [{ from: { name: 'node1' } }]]);
  });

  it('leaves the verification from the local host to the operator', async () => {
    expect((await open({ 'insecure-skip-tls-verify': true })).error).toBeNull();
  });
});
