import { describe, expect, it } from 'vitest';
import { PROBE_NAME, probePod, readProbe } from '../../../../src/kubelet/health/probe-pod.ts';
import { readPod } from '../../../../src/kubelet/workload/pod.ts';
import { NODE, newWorld, payload } from './world.ts';

const MANIFESTS = '/etc/kubernetes/manifests';
const PROBE = { apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system', name: `${PROBE_NAME}-${NODE}` };

describe('the simulated node of the agent', () => {
  it('admits its pods when the kubelet restarts, and starts the static probe pod', async () => {
    const world = newWorld({ pods: true });
    const add = (name: string) =>
      world.cluster.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default' },
        spec: { nodeName: NODE, containers: [{ name: 'main', image: 'x' }] },
      });
    const phases = async () => {
      await world.pods.settled();
      const { items } = await world.cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'default' });
      return items.map(readPod).map(({ name, phase, reason }) => [name, phase, reason].filter(Boolean).join(' '));
    };
    for (const name of ['a', 'b']) await add(name);
    expect(await phases()).toEqual(['default/a Running', 'default/b Running']);
    world.editLocal(payload(1, `staticPodPath: ${MANIFESTS}\n`));
    world.restartKubelet();
    expect(await phases()).toEqual(['default/a Running', 'default/b Failed OutOfpods']);
    world.editLocal(payload(110, `staticPodPath: ${MANIFESTS}\n`));
    world.restartKubelet();
    const path = `${MANIFESTS}/${PROBE_NAME}.yaml`;
    const content = JSON.stringify(probePod(PROBE_NAME, 'x'));
    await world.host.perform([{ kind: 'write-file', path, mode: 0o600, owner: 'root:root', content }]);
    await world.pods.settled();
    expect(readProbe(await world.asNode.get(PROBE))).toEqual({ state: 'started' });
    await world.host.perform([{ kind: 'remove-file', path }]);
    await world.pods.settled();
    expect(await world.cluster.get(PROBE)).toBeNull();
  });
});
