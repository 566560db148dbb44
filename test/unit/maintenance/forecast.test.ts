import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../../src/kube/resources.ts';
import { assessBudget, readBudget } from '../../../src/maintenance/forecast/budget.ts';
import type { DrainRules } from '../../../src/maintenance/forecast/drain-pod.ts';
import { drainForecaster } from '../../../src/maintenance/forecast/forecast.ts';
import { readClusterView } from '../../../src/maintenance/forecast/read-cluster-view.ts';
import { drainBudget, drainNode, drainPod, scaled } from '../../support/drain-objects.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';

const RULES: DrainRules = {
  ignoreDaemonSets: true,
  deleteEmptyDirData: false,
  force: false,
  gracePeriodSeconds: null,
  selects: () => true,
};
const NODES = [drainNode('n1'), drainNode('n2'), drainNode('n3')];

async function forecast(
  objects: readonly KubeObject[],
  {
    names = ['n1'],
    rules = {},
    timeoutMs = null as number | null,
  }: { names?: string[]; rules?: Partial<DrainRules>; timeoutMs?: number | null } = {},
) {
  const cluster = fakeCluster();
  // Stored as they are: nodes without the taint of new nodes, controllers with the UID that their pods name.
  for (const object of objects) cluster.store.put(resourceOf(object.apiVersion, object.kind) as ResourceType, object);
  const view = await readClusterView(cluster);
  return drainForecaster(view)(names, { ...RULES, ...rules }, timeoutMs);
}

const web = (nodes: readonly string[], parts: Parameters<typeof drainPod>[2] = {}): readonly KubeObject[] =>
  nodes.map((node, i) => drainPod(`web-${i}`, node, parts));

describe('drainForecaster', () => {
  it('sorts the pods of a node by their kind', async () => {
    const { nodes } = await forecast([
      ...NODES,
      drainPod('moved', 'n1'),
      drainPod('other', 'n2'),
      drainPod('proxy', 'n1', { of: 'DaemonSet/proxy', app: 'proxy' }),
      drainPod('etcd', 'n1', { of: null, annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      drainPod('done', 'n1', { phase: 'Succeeded' }),
      drainPod('alone', 'n1', { of: null }),
      drainPod('cache', 'n1', {
        spec: {
          volumes: [
            { name: 'tmp', emptyDir: {} },
            { name: 'disk', hostPath: { path: '/data' } },
          ],
        },
      }),
      drainPod('slow', 'n1', { spec: { terminationGracePeriodSeconds: 3600 } }),
    ]);
    expect(nodes).toMatchObject([
      {
        node: 'n1',
        state: 'blocked',
        evictable: ['default/alone', 'default/cache', 'default/moved', 'default/slow'],
        daemonSet: ['default/proxy'],
        mirror: ['default/etcd'],
        finished: ['default/done'],
        bare: ['default/alone'],
        emptyDir: ['default/cache'],
        hostPath: ['default/cache'],
        longGrace: [{ pod: 'default/slow', seconds: 3600 }],
        unplaced: [],
      },
    ]);
    expect(nodes[0]?.blockers.map(({ kind, isRefusal, pods }) => [kind, isRefusal, pods])).toEqual([
      ['bare', true, ['default/alone', 'default/proxy']],
      ['empty-dir', true, ['default/cache']],
    ]);
  });

  it('permits what the flags of kubectl drain permit, and names grace periods beyond the time limit', async () => {
    const objects = [
      ...NODES,
      drainPod('alone', 'n1', { of: null, spec: { volumes: [{ name: 'tmp', emptyDir: {} }], terminationGracePeriodSeconds: 700 } }),
    ];
    const permitted = await forecast(objects, { rules: { force: true, deleteEmptyDirData: true }, timeoutMs: 600_000 });
    expect(permitted.nodes[0]).toMatchObject({
      state: 'waits',
      blockers: [{ kind: 'grace', why: expect.stringContaining('700 s exceeds') }],
    });
    const shorter = await forecast(objects, {
      rules: { force: true, deleteEmptyDirData: true, gracePeriodSeconds: 10 },
      timeoutMs: 600_000,
    });
    expect(shorter.nodes[0]).toMatchObject({ state: 'ready', blockers: [], longGrace: [] });
  });

  it('refuses pods of DaemonSets only without --ignore-daemonsets', async () => {
    const objects = [
      ...NODES,
      scaled('ReplicaSet/web', 1),
      drainPod('proxy', 'n1', { of: 'DaemonSet/proxy', app: 'proxy' }),
      drainPod('web', 'n1'),
    ];
    expect((await forecast(objects, { rules: { ignoreDaemonSets: false } })).nodes[0]?.blockers.map(({ kind }) => kind)).toContain(
      'daemon-sets',
    );
  });

  it('says that nothing is to evict', async () => {
    const { nodes, atOnce } = await forecast([...NODES, drainPod('done', 'n1', { phase: 'Failed' })]);
    expect(nodes[0]).toMatchObject({ state: 'drained', blockers: [] });
    expect(atOnce).toBe(1);
  });
});

describe('budgets of a forecast', () => {
  const two = [...NODES, scaled('ReplicaSet/web', 2), ...web(['n1', 'n2'])];

  it.each([
    [
      'minAvailable equal to the replicas',
      { minAvailable: 2 },
      'deadlock',
      'Scale up the Deployment of ReplicaSet default/web, or lower minAvailable',
    ],
    ['minAvailable 100%', { minAvailable: '100%' }, 'deadlock', 'Lower minAvailable of PodDisruptionBudget default/pdb'],
    ['maxUnavailable 0', { maxUnavailable: 0 }, 'deadlock', 'Raise maxUnavailable of PodDisruptionBudget default/pdb'],
    ['a percentage that rounds up to all', { minAvailable: '51%' }, 'deadlock', 'Scale up'],
    ['minAvailable 1 of 2', { minAvailable: 1 }, 'allows', ''],
    ['maxUnavailable 1', { maxUnavailable: 1 }, 'allows', ''],
  ])('tells %s', async (_, spec, state, fix) => {
    const { nodes, budgets } = await forecast([...two, drainBudget('pdb', 'web', spec)]);
    expect(budgets).toMatchObject([{ name: 'default/pdb', state, fix: expect.stringContaining(fix), healthy: ['default/web-0'] }]);
    expect(nodes[0]?.state).toBe(state === 'deadlock' ? 'blocked' : 'ready');
    expect(nodes[0]?.blockers.map(({ kind }) => kind)).toEqual(state === 'deadlock' ? ['deadlock'] : []);
  });

  it('waits for a pod that is not Ready, and evicts it itself by the policy of the budget', async () => {
    const pods = [scaled('ReplicaSet/web', 3), drainPod('a', 'n1'), drainPod('b', 'n2'), drainPod('c', 'n3', { isReady: false })];
    const budget = drainBudget('pdb', 'web', { minAvailable: 2 });
    expect((await forecast([...NODES, ...pods, budget])).nodes[0]).toMatchObject({
      state: 'waits',
      blockers: [{ kind: 'budget', isRefusal: false }],
    });
    // The healthy pods suffice, so that the pod that is not Ready may go.
    expect((await forecast([...NODES, ...pods, budget], { names: ['n3'] })).nodes[0]).toMatchObject({ state: 'ready' });
    const strict = drainBudget('pdb', 'web', { minAvailable: 3 });
    expect((await forecast([...NODES, ...pods, strict], { names: ['n3'] })).nodes[0]).toMatchObject({ state: 'blocked' });
    const always = drainBudget('pdb', 'web', { minAvailable: 3, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    expect((await forecast([...NODES, ...pods, always], { names: ['n3'] })).nodes[0]).toMatchObject({ state: 'ready' });
  });

  it('names overlapping budgets, which the API refuses', async () => {
    const { nodes } = await forecast([...two, drainBudget('a', 'web', { minAvailable: 1 }), drainBudget('b', 'web', { minAvailable: 1 })]);
    expect(nodes[0]?.blockers).toMatchObject([
      { kind: 'overlap', isRefusal: true, budgets: ['default/a', 'default/b'], pods: ['default/web-0'] },
    ]);
  });

  it('leaves a budget of an operator to its switch-over', async () => {
    const pods = [drainPod('pg-1', 'n1', { of: 'Cluster/pg', app: 'pg' })];
    const { nodes } = await forecast([...NODES, ...pods, drainBudget('pg-primary', 'pg', { minAvailable: 1 })]);
    expect(nodes[0]).toMatchObject({
      state: 'waits',
      blockers: [{ kind: 'operator', fix: expect.stringContaining('Cluster default/pg') }],
    });
  });

  it('calls a budget whose status cannot be computed a deadlock', async () => {
    const { nodes } = await forecast([...NODES, ...web(['n1']), drainBudget('pdb', 'web', { maxUnavailable: 1 })]);
    expect(nodes[0]?.blockers).toMatchObject([{ kind: 'deadlock', why: expect.stringContaining('found no controllers for pod') }]);
    const never = drainBudget('pdb', 'web', { maxUnavailable: 1 });
    // The disruption controller has never computed the status, and updates observedGeneration only if it does.
    const failed = { type: 'DisruptionAllowed', status: 'False', reason: 'SyncFailed', message: 'no scale', observedGeneration: 0 };
    const budget = readBudget({
      ...never,
      metadata: { ...never.metadata, generation: 1 },
      status: { disruptionsAllowed: 0, conditions: [failed] },
    });
    expect(assessBudget(budget, [], new Map())).toMatchObject({ state: 'deadlock', why: 'its status cannot be computed: no scale' });
    expect(assessBudget({ ...budget, syncFailure: null }, [], new Map()).state).toBe('waits');
  });

  it('waits for pods of Jobs, which finish', async () => {
    const pods = ['job-0', 'job-1'].map((name) => drainPod(name, 'n1', { of: 'Job/import', app: 'import' }));
    const { nodes } = await forecast([...NODES, ...pods, drainBudget('import', 'import', { minAvailable: 2 })]);
    expect(nodes[0]).toMatchObject({ state: 'waits', blockers: [{ kind: 'budget', isRefusal: false }] });
    expect(nodes[0]?.blockers[0]?.fix).toBe('Wait until the Jobs have finished, or delete them: import');
  });

  it('waits while a StatefulSet replaces a pod', async () => {
    const pods = [
      scaled('StatefulSet/db', 3),
      ...['n1', 'n2'].map((node, i) => drainPod(`db-${i}`, node, { of: 'StatefulSet/db', app: 'db' })),
    ];
    const { budgets } = await forecast([...NODES, ...pods, drainBudget('db', 'db', { minAvailable: 2 })]);
    expect(budgets).toMatchObject([{ state: 'waits', expectedPods: 2 }]);
  });

  it('counts how many nodes can go at once', async () => {
    const names = ['n1', 'n2', 'n3'];
    const pods = [scaled('ReplicaSet/web', 4), ...web(['n1', 'n2', 'n3', 'n3'])];
    const atOnce = async (maxUnavailable: number) =>
      (await forecast([...NODES, ...pods, drainBudget('pdb', 'web', { maxUnavailable })], { names })).atOnce;
    expect(await Promise.all([1, 2, 3, 4].map(atOnce))).toEqual([1, 1, 2, 3]);
  });
});

describe('places of a forecast', () => {
  const unplaced = async (nodes: readonly KubeObject[], pods: readonly KubeObject[]) =>
    (await forecast([...nodes, ...pods])).nodes[0]?.unplaced;

  it.each([
    ['requests', [drainNode('n2', { allocatable: { cpu: '1' } })], { requests: { cpu: '2' } }, '1 have too little free cpu'],
    ['a nodeSelector', [drainNode('n2')], { spec: { nodeSelector: { disk: 'ssd' } } }, '1 do not match its nodeSelector'],
    ['taints', [drainNode('n2', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] })], {}, '1 have the taint gpu'],
    ['extended resources', [drainNode('n2')], { requests: { 'example.org/gpu': '1' } }, '1 have too little free example.org/gpu'],
    ['cordons', [drainNode('n2', { unschedulable: true })], {}, 'no other node is Ready and schedulable'],
    [
      'node affinity',
      [drainNode('n2')],
      {
        spec: {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }],
              },
            },
          },
        },
      },
      '1 do not match its required node affinity or volume',
    ],
  ])('considers %s', async (_, others, parts, why) => {
    expect(await unplaced([drainNode('n1'), ...others], [drainPod('p', 'n1', parts)])).toEqual([
      { pod: 'default/p', why: expect.stringContaining(why) },
    ]);
    expect(await unplaced([drainNode('n1'), drainNode('n2')], [drainPod('p', 'n1')])).toEqual([]);
  });

  it('tolerates taints, and counts the requests of pods placed before', async () => {
    const tainted = drainNode('n2', { taints: [{ key: 'gpu', value: 'a', effect: 'NoSchedule' }], allocatable: { cpu: '3' } });
    const spec = { tolerations: [{ key: 'gpu', operator: 'Exists' }] };
    const pods = ['a', 'b'].map((name) => drainPod(name, 'n1', { spec, requests: { cpu: '2' } }));
    expect((await unplaced([drainNode('n1'), tainted], pods))?.map(({ pod }) => pod)).toEqual(['default/b']);
  });

  it('considers anti-affinity, and says that a budget waits for pods without a place', async () => {
    const apart = { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'kubernetes.io/hostname' };
    const spec = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } } };
    const pods = [scaled('ReplicaSet/web', 3), ...web(['n1', 'n2', 'n3'], { spec })];
    expect(await unplaced(NODES, pods)).toMatchObject([{ why: 'of 2 other nodes: 2 have pods that its anti-affinity excludes' }]);
    const crowded = [...web(['n1', 'n1', 'n2'], { requests: { cpu: '3' } }), scaled('ReplicaSet/web', 3)];
    const nodes = [drainNode('n1'), drainNode('n2')];
    const { nodes: found } = await forecast([...nodes, ...crowded, drainBudget('pdb', 'web', { maxUnavailable: 1 })]);
    expect(found[0]?.blockers).toMatchObject([{ kind: 'no-room', isRefusal: false, why: expect.stringContaining('allows 1 of 2') }]);
  });

  it('keeps pods with a local volume on their node', async () => {
    const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] }] }] };
    const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' }, spec: { nodeAffinity: { required } } };
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: 'default' },
      spec: { volumeName: 'pv' },
    };
    const pod = drainPod('db', 'n1', { spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } });
    expect((await forecast([...NODES, volume, claim, pod])).nodes[0]?.unplaced).toMatchObject([
      { pod: 'default/db', why: expect.stringContaining('volume') },
    ]);
  });
});
