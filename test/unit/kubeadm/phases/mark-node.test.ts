import { describe, expect, it } from 'vitest';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import { definePhase, type PhaseContext } from '../../../../src/host/phase.ts';
import type { HostChange } from '../../../../src/host/plan/change.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { markControlPlane } from '../../../../src/kubeadm/phases/mark-control-plane.ts';
import { type MarkNodeInput, markNode } from '../../../../src/kubeadm/phases/mark-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const NODE: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1', labels: { custom: 'x' } } };
const REF = { apiVersion: 'v1', kind: 'Node', name: 'w1' };
const RECORD = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system', name: 'node-marks-w1' };
const MARKS = { labels: { pool: 'a' }, taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }] } as const;
const CONFIG = '/var/lib/kubelet/config.yaml';
const ALL = { nodes: ['get', 'patch'], configmaps: ['get', 'create', 'update'], namespaces: ['get', 'create'] };

const WRITE: HostChange = {
  kind: 'write-file',
  action: 'create',
  path: CONFIG,
  mode: 0o600,
  owner: 'root:root',
  content: 'maxPods: 50\n',
  before: null,
  reason: 'it does not exist',
};

type Rights = Readonly<Record<string, readonly string[]>>;

/** Writes the kubelet's file, like kubelet-start before the Node is marked. */
const writeKubeletFile = definePhase<MarkNodeInput, boolean>({
  name: 'kubelet-start',
  short: 'Write the configuration of the kubelet',
  observe: async ({ host }) => (await host.query({ file: { kind: 'file', path: CONFIG } })).file !== null,
  plan: (isWritten) => ({ changes: isWritten ? [] : [WRITE] }),
});

function world() {
  const all = fakeCluster({ objects: [NODE] });
  /** Another client of the same cluster with the given rights. */
  const limited = async (rights: Rights, name = 'fleet'): Promise<FakeCluster> => {
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name } };
    const rules = Object.entries(rights).map(([resource, verbs]) => ({ apiGroups: [''], resources: [resource], verbs }));
    await all.delete({ ...role, kind: 'ClusterRole', name });
    await all.create({ ...role, kind: 'ClusterRole', rules } as KubeObject);
    await all.delete({ ...role, kind: 'ClusterRoleBinding', name });
    await all.create({
      ...role,
      kind: 'ClusterRoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
    } as KubeObject);
    return fakeCluster({ sharedWith: all, user: { name, groups: [] } });
  };
  const host = fakeHost({ name: 'h1' });
  const reporter = recordingReporter();
  const context: PhaseContext = { host, cluster: all, clock: fakeClock(), reporter };
  const inputFor = (admin: FakeCluster): MarkNodeInput => ({
    nodeName: 'w1',
    ...MARKS,
    saved: { labels: {}, taints: [] },
    admin,
    check: null,
  });
  const run = async (rights: Rights) => applyPhases([writeKubeletFile, markNode], context, inputFor(await limited(rights)), []);
  return { all, host, context, inputFor, limited, run };
}

/** All rights except the given verbs. */
function without(resource: string, ...verbs: readonly string[]): Rights {
  return { ...ALL, [resource]: (ALL[resource as keyof typeof ALL] ?? []).filter((verb) => !verbs.includes(verb)) };
}

describe('mark-node, when the API server rejects the credentials (403) after the files of the kubelet changed', () => {
  it.each([
    ['read the Node', without('nodes', 'get'), /cannot get Node w1/],
    ['change the Node', without('nodes', 'patch'), /cannot patch Node w1/],
    ['read the record', without('configmaps', 'get'), /cannot get ConfigMap kubeletadm-system\/node-marks-w1/],
    ['create the record', without('configmaps', 'create'), /cannot create ConfigMap kubeletadm-system\/node-marks-w1/],
    ['create the namespace of the record', without('namespaces', 'create'), /cannot create Namespace kubeletadm-system/],
  ])('fails when they may not %s, reports completed and remaining steps, and completes on the next run', async (_, rights, cause) => {
    const { all, host, context, run, inputFor, limited } = world();
    const error = await run(rights).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(host.files.get(CONFIG)?.content).toBe('maxPods: 50\n');
    expect((await all.get(REF))?.metadata.labels).toEqual({ custom: 'x' });
    expect(error).toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
    const { message, hint } = (error as { problems: readonly { message: string; hint: string }[] }).problems[0] ?? {
      message: '',
      hint: '',
    };
    expect(message).toMatch(cause);
    expect(message).toContain('Node w1');
    expect(message).toContain('label pool=a, taint dedicated=gpu:NoSchedule');
    expect(message).toContain('changes of earlier phases are kept');
    expect(hint).toMatch(/get and patch Nodes.*ConfigMaps.*kubeletadm-system.*rerun/);

    await run(ALL);
    const node = await all.get(REF);
    expect(node?.metadata.labels).toEqual({ custom: 'x', pool: 'a' });
    expect(node?.spec).toMatchObject({ taints: expect.arrayContaining([...MARKS.taints]) });
    expect(JSON.stringify((await all.get(RECORD))?.data)).toContain('pool');
    const plans = await planPhases([writeKubeletFile, markNode], context, inputFor(await limited(ALL)));
    expect(plans.flatMap(({ plan }) => plan.changes)).toEqual([]);
  });

  it('reports that only the record is missing when the Node has its labels and taints', async () => {
    const { all, run } = world();
    await run(ALL);
    const { resourceVersion, ...metadata } = (await all.get(RECORD))?.metadata ?? { name: '' };
    await all.update({
      ...((await all.get(RECORD)) as KubeObject),
      metadata: { ...metadata, name: RECORD.name },
      data: { 'marks.json': '{}' },
    });
    const error = await run(without('configmaps', 'update')).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'CLUSTER_FORBIDDEN',
      message: expect.stringMatching(
        /Node w1 has the declared labels and taints, .*record.*cannot update ConfigMap kubeletadm-system\/node-marks-w1/,
      ),
    });
    await run(ALL);
    expect(JSON.stringify((await all.get(RECORD))?.data)).toContain('pool');
  });

  it('fails too when the host must first prove that it owns the Node', async () => {
    const { context, inputFor, limited } = world();
    const check = { isDone: false, run: () => Promise.reject(new Error('unexpected check')) };
    const input = { ...inputFor(await limited(without('nodes', 'get'))), check };
    const plans = await planPhases([markNode], context, input);
    expect(plans[0]?.plan).toMatchObject({ changes: [], deferred: expect.stringMatching(/cannot get Node w1/) });
    await expect(applyPhases([markNode], context, input, plans)).rejects.toMatchObject({
      code: 'CLUSTER_FORBIDDEN',
      message: expect.stringMatching(/Node w1.*remaining: label pool=a, taint dedicated=gpu:NoSchedule.*cannot get Node w1/),
    });
  });

  it('names the missing right in the plan', async () => {
    const { context, inputFor, limited } = world();
    const plans = await planPhases([markNode], context, inputFor(await limited(without('nodes', 'get'))));
    expect(plans[0]?.plan.changes).toMatchObject([
      { kind: 'mark-node', reason: expect.stringMatching(/cannot compare the labels and taints: cannot get Node w1/) },
    ]);
  });
});

describe('mark-control-plane, when the API server rejects the credentials', () => {
  it('reports the remaining steps', async () => {
    const { all, context, limited } = world();
    const cluster = await limited(without('nodes', 'patch'));
    const input = { nodeName: 'w1', taints: MARKS.taints, timeoutMs: 1_000 };
    await expect(applyPhases([markControlPlane], { ...context, cluster }, input, [])).rejects.toMatchObject({
      code: 'CLUSTER_FORBIDDEN',
      message: expect.stringMatching(/label node-role\.kubernetes\.io\/control-plane=.*taint dedicated.*cannot patch Node w1/),
    });
    expect((await all.get(REF))?.metadata.labels).toEqual({ custom: 'x' });
  });
});
