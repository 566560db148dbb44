import { afterEach, describe, expect, it } from 'vitest';
import { AGENT_NAMESPACE } from '../../../../src/kube/agent-namespace.ts';
import { ALLOW_POD_LOSS_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { NODE, newWorld, payload, type World } from './world.ts';

const MANIFESTS = '/etc/kubernetes/manifests';
const STATIC_PODS = `staticPodPath: ${MANIFESTS}\nclusterDNS: [10.96.0.10]\n`;

describe('a trial on a node with pods', () => {
  let world: World;
  afterEach(() => world.stop());

  const start = async (names: readonly string[]): Promise<void> => {
    world = newWorld({ pods: true, timing: { trialMs: 30_000 } });
    for (const maxPods of [1, 60]) world.behaviours.set(maxPods, { configz: { staticPodPath: MANIFESTS, clusterDNS: ['10.96.0.10'] } });
    world.host.files.set(MANIFESTS, { type: 'directory', mode: 0o755, owner: 'root:root' });
    world.editLocal(payload(110, STATIC_PODS));
    world.restartKubelet();
    for (const name of names)
      await world.cluster.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default' },
        spec: { nodeName: NODE, containers: [{ name: 'main', image: 'x' }] },
      });
    await world.pods.settled();
    world.start();
  };
  const permit = (name: string): Promise<void> => world.annotate({ [ALLOW_POD_LOSS_ANNOTATION]: `${AGENT_NAMESPACE}/${name}/kubelet` });
  const assign = async (name: string, text: string): Promise<void> => {
    await world.push(name, text);
    await world.assign(name);
  };
  const ends = (reason: string) => async (): Promise<boolean> => (await world.condition()).reason === reason;
  const probes = async (): Promise<number> =>
    (await world.cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system' })).items.length;
  const written = (): number =>
    world.host.performed.filter((operation) => operation.kind === 'write-file' && operation.path.endsWith('kubeletadm-probe.yaml')).length;

  it('starts a probe pod before and after the restart, and ends well', async () => {
    await start(['a', 'b']);
    await assign('good', payload(60, STATIC_PODS));
    await world.until('good', ends('Good'));
    expect(written()).toBe(2);
    expect(await probes()).toBe(0);
    await world.until('announced', async () => (await world.events()).some((text) => text.includes('a probe pod started')));
    expect((await world.events()).join('\n')).toContain('(all 2 pods that ran before still run, and a probe pod started)');
  });

  it('is rolled back when no probe pod fits, even if pods may end', async () => {
    await start(['a', 'b', 'c']);
    await permit('few');
    await assign('few', payload(1, STATIC_PODS));
    await world.until('rolled back', ends('FallenBack'));
    // Two pods are rejected; the third fills the node.
    expect((await world.condition()).message).toContain('a probe pod cannot be started: the node has no room for a new pod');
    expect(world.runs()).toBe(110);
    expect(await probes()).toBe(0);
  });

  it('is rolled back when pods end that the operator did not permit to end', async () => {
    await start(['a', 'b', 'c']);
    await assign('good', payload(60, STATIC_PODS));
    await world.until('trial', ends('Trial'));
    const failed = { status: { phase: 'Failed', reason: 'OutOfcpu', message: 'Pod was rejected' } };
    await world.cluster.patch({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'b' }, 'merge', failed, {
      subresource: 'status',
    });
    await world.until('rolled back', ends('FallenBack'));
    expect((await world.condition()).message).toContain(
      'the kubelet rejected 1 pod that ran before: default/b (OutOfcpu: Pod was rejected)',
    );
  });

  it('may end pods that the operator permits to end', async () => {
    await start(['a', 'b', 'c']);
    await permit('good');
    await assign('good', payload(60, STATIC_PODS));
    await world.until('trial', ends('Trial'));
    const failed = { status: { phase: 'Failed', reason: 'OutOfcpu', message: 'Pod was rejected' } };
    await world.cluster.patch({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'b' }, 'merge', failed, {
      subresource: 'status',
    });
    await world.until('good', ends('Good'));
  });
});
