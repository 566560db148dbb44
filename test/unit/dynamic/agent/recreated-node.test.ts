import { afterEach, describe, expect, it } from 'vitest';
import { checkAssignment, executeAssignment } from '../../../../src/dynamic/use-cases/assign.ts';
import { assessNodes, readNodes } from '../../../../src/dynamic/workflows/read-nodes.ts';
import type { RolloutOptions } from '../../../../src/dynamic/workflows/rollout.ts';
import { AGENT_NAMESPACE } from '../../../../src/kube/agent-namespace.ts';
import type { Cluster, KubeObject } from '../../../../src/kube/cluster.ts';
import { clusterRefused } from '../../../../src/kube/cluster-problems.ts';
import { refOf } from '../../../../src/kube/object.ts';
import { agentRights } from '../../../../src/kubeadm/node-agent/agent-rights.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
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

describe('a Node that is deleted during a trial', () => {
  const MANIFESTS = '/etc/kubernetes/manifests';
  const CONFIG = `staticPodPath: ${MANIFESTS}\nclusterDNS: [10.96.0.10]\n`;
  const mirrorPods = async () => (await world.cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system' })).items;
  const passes = async (seconds: number): Promise<void> => {
    const from = world.clock.elapsedMs;
    await world.until(`${seconds} s`, () => world.clock.elapsedMs - from > seconds * 1000);
  };
  /** Deletes the Node, and its mirror pods as the garbage collector does. */
  const deleteNode = async (): Promise<KubeObject> => {
    const node = (await world.cluster.get(REF)) as KubeObject;
    world.pods.stop();
    await world.cluster.delete(REF);
    for (const { metadata } of await mirrorPods()) await world.cluster.delete({ apiVersion: 'v1', kind: 'Pod', ...metadata });
    return node;
  };
  const beginTrial = async (): Promise<void> => {
    world = newWorld({ pods: true, timing: { trialMs: 120_000 } });
    world.behaviours.set(60, { configz: { staticPodPath: MANIFESTS, clusterDNS: ['10.96.0.10'] } });
    world.host.files.set(MANIFESTS, { type: 'directory', mode: 0o755, owner: 'root:root' });
    const manifest =
      'apiVersion: v1\nkind: Pod\nmetadata: {name: s, namespace: kube-system}\nspec: {containers: [{name: main, image: x}]}\n';
    world.host.files.set(`${MANIFESTS}/s.yaml`, { type: 'file', mode: 0o600, owner: 'root:root', content: manifest });
    world.editLocal(payload(110, CONFIG));
    world.restartKubelet();
    await world.pods.settled();
    world.start();
    await world.push('a', payload(60, CONFIG));
    await world.assign('a');
    await world.until('trial', phase('trial'));
    expect(world.state?.baseline?.pods).toMatchObject([{ name: `kube-system/s-${NODE}`, isStatic: true }]);
  };

  it('pauses the trial, and blames nothing on the configuration', async () => {
    await beginTrial();
    const { metadata, status = {} } = await deleteNode();
    await passes(60);
    expect(world.state).toMatchObject({
      phase: 'trial',
      watch: { signals: {}, unproven: `the Node ${NODE} does not exist` },
      rejected: [],
    });
    await world.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE }, status });
    await world.until('reported', async () => (await world.condition()).reason === 'AssignmentLost');
    expect(world.state).toMatchObject({ phase: 'local', rejected: [] });
    await world.annotate(metadata.annotations ?? {});
    await world.until('good', phase('good'));
  });

  it('does not compare pods with those of the deleted Node if the new Node has the assignment', async () => {
    await beginTrial();
    const { metadata, status = {} } = await deleteNode();
    const { annotations = {} } = metadata;
    await world.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, annotations }, status });
    await passes(40);
    expect(world.state).toMatchObject({ phase: 'trial', watch: { signals: {} }, rejected: [], baseline: { pods: null } });
    expect(world.starts()).toBe(1);
  });
});

describe('dynamic assign to a Node that was created again', () => {
  const source = { namespace: AGENT_NAMESPACE, name: 'a', kubeletConfigKey: 'kubelet' };
  const rules = agentRights({ nodeName: NODE, nodeUid: null, namespace: AGENT_NAMESPACE });
  const assign = async (cluster: Cluster): Promise<readonly string[]> => {
    const reporter = recordingReporter();
    const validation = { kubernetesVersion: undefined, skipValidation: false };
    const assigned = { kind: 'config-map', source, validation } as const;
    const request = { force: false, allowPodLoss: true, assigned };
    const rollout = { wait: 'none', onFailure: 'stop' } as RolloutOptions;
    const nodes = await readNodes(cluster, [NODE]);
    const checked = await checkAssignment({} as never, cluster, { ...request, rollout }, { nodes, text: null, reporter, drains: false });
    const recorded = { id: '0a1b2c3d', command: 'assign', sha256Of: () => null };
    const ports = { clock: world.clock, random: () => 0.5, self: { name: 'alice' }, signal: new AbortController().signal };
    await executeAssignment(ports as never, cluster, checked, { reporter, rollout, allowPodLoss: false, recorded } as never);
    return reporter.events.map(({ code }) => code);
  };
  const beginWithoutRights = async (): Promise<void> => {
    await begin();
    await recreate();
    for (const object of rules) await world.cluster.delete(refOf(object));
    await world.until('lost', async () => (await world.condition()).reason === 'AssignmentLost');
  };

  it('creates the RBAC rules of the agent again, which were deleted with the previous Node', async () => {
    await beginWithoutRights();
    expect(await assign(world.cluster)).toContain('AGENT_RIGHTS_RESTORED');
    await world.until('good again', phase('good'));
    const [role] = rules;
    const { uid } = ((await world.cluster.get(REF)) as KubeObject).metadata;
    expect((await world.cluster.get(refOf(role as KubeObject)))?.metadata.ownerReferences).toMatchObject([{ kind: 'Node', uid }]);
  });

  it('names the command if the operator may not create them, and assigns nothing', async () => {
    await beginWithoutRights();
    const operator = new Proxy(world.cluster, {
      get: (target, name) =>
        name === 'create'
          ? () => Promise.reject(clusterRefused('create', { httpStatus: 403, message: 'roles is forbidden' }))
          : Reflect.get(target, name),
    });
    await expect(assign(operator)).rejects.toThrow(/AGENT_RIGHTS_MISSING|may not create them: .*roles is forbidden/);
    expect(((await world.cluster.get(REF)) as KubeObject).metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]).toBeUndefined();
    // Assigned with kubectl: the condition names the command.
    await world.assign('a');
    await world.until('reported', async () =>
      ((await world.condition()).message as string).includes('run kubeletadm dynamic assign with an'),
    );
    expect((await assessNodes(world.cluster, [NODE], { now: world.clock.now() }))[0]?.verdict).toMatchObject({
      state: 'not-synced',
      why: expect.stringContaining('kubeletadm dynamic enable HOST'),
    });
  });
});
