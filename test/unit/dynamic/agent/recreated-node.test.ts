import { afterEach, describe, expect, it } from 'vitest';
import { assessNodes } from '../../../../src/dynamic/workflows/read-nodes.ts';
import type { KubeObject } from '../../../../src/kube/cluster.ts';
import { NODE, newWorld, payload, type World } from './world.ts';

let world: World;
afterEach(() => world.stop());
const REF = { apiVersion: 'v1', kind: 'Node', name: NODE };
const phase = (name: string) => (): boolean => world.state?.phase === name && world.state.switching === null;
const recreate = async (): Promise<void> => {
  const node = (await world.cluster.get(REF)) as KubeObject;
  await world.cluster.delete(REF);
  await world.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE }, status: node.status ?? {} });
};
const begin = async (): Promise<void> => {
  world = newWorld({ timing: { trialMs: 30_000 } });
  world.start();
  await world.push('a', payload(50));
  await world.assign('a');
  await world.until('a is good', phase('good'));
};

describe('an agent whose Node was deleted and created again', () => {
  it.each(['while it runs', 'while it is stopped'])('reports the lost assignment and what runs: %s', async (when) => {
    await begin();
    if (when === 'while it is stopped') await world.stop();
    await recreate();
    if (when === 'while it is stopped') world.start();
    await world.until('reported', async () => (await world.condition()).reason === 'AssignmentLost');
    expect(world.runs()).toBe(110);
    expect((await world.condition()).message).toMatch(
      /^runs the local configuration; nothing is assigned: the Node was re-created at \S+, and its assignment kubeletadm-system\/a\/kubelet was deleted with the old Node\. To assign the ConfigMap again, run kubeletadm dynamic assign NODE --configmap kubeletadm-system\/a\/kubelet/,
    );
    const [validated] = await assessNodes(world.cluster, [NODE], { now: world.clock.now() });
    await world.until('an Event', async () => (await world.events()).some((text) => text.startsWith('KubeletConfigAssignmentLost: ')));
    expect(validated?.verdict).toMatchObject({ state: 'local', why: expect.stringContaining('was deleted with the old Node') });
    await world.assign('a');
    await world.until('a is good again', phase('good'));
    await world.assign(null);
    await world.until('local', async () => (await world.condition()).reason === 'Local');
  });

  it('reports no loss where the new Node has an assignment, or the old one had none', async () => {
    await begin();
    const annotations = ((await world.cluster.get(REF)) as KubeObject).metadata.annotations ?? {};
    await world.cluster.delete(REF);
    await world.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, annotations }, status: {} });
    await world.assign(null);
    await world.until('local', async () => (await world.condition()).reason === 'Local');
    await recreate();
    await world.until('reported again', async () => (await world.condition()).reason === 'Local');
    expect((await world.events()).filter((text) => text.startsWith('KubeletConfigAssignmentLost'))).toEqual([]);
  });
});
