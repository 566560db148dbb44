import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { type DrainSettings, drainNode, giveBack } from '../../../src/maintenance/drain/drain-node.ts';
import { drainNodes } from '../../../src/maintenance/drain/drain-nodes.ts';
import { markLifecycle, renewHold } from '../../../src/maintenance/drain/hold.ts';
import { nextDrain, startDrain } from '../../../src/maintenance/drain/next-drain.ts';
import { CORDON_ANNOTATION, cordonOwner } from '../../../src/maintenance/node-hold.ts';
import { drainBudget, drainNode as node, drainPod as pod, scaled } from '../../support/drain-objects.ts';
import { drainWorld } from '../../support/drain-world.ts';
import type { FakeCluster } from '../../support/fake-cluster.ts';
import { seededRandom } from '../../support/seeded-random.ts';

const SETTINGS: DrainSettings = {
  rules: { ignoreDaemonSets: true, deleteEmptyDirData: false, force: false, gracePeriodSeconds: null, selects: () => true },
  timeoutMs: 300_000,
  isForMaintenance: true,
};
const CLUSTER = [
  node('n1'),
  node('n2'),
  node('n3'),
  scaled('ReplicaSet/web', 3),
  pod('web-0', 'n1'),
  pod('web-1', 'n1'),
  pod('web-2', 'n2'),
];

async function stateOf(cluster: Cluster, name: string) {
  const found = (await cluster.get({ apiVersion: 'v1', kind: 'Node', name })) as KubeObject;
  const { conditions } = found.status as unknown as { conditions: readonly { type: string }[] };
  return {
    isCordoned: (found.spec as { unschedulable?: boolean }).unschedulable === true,
    owner: cordonOwner(found)?.run ?? null,
    conditions: conditions
      .map(({ type }) => type)
      .filter((type) => type !== 'Ready')
      .sort(),
  };
}

const SERVING = { isCordoned: false, owner: null, conditions: [] };

function podsOn(cluster: FakeCluster, name: string): Promise<readonly string[]> {
  return cluster
    .list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: `spec.nodeName=${name}` })
    .then(({ items }) => items.map(({ metadata }) => metadata.name));
}

describe('drainNode', () => {
  it('evicts one pod after the other as the budget allows, and marks the node', async () => {
    const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 2 })]);
    const lowest = leastHealthy(world.cluster);
    const drained = await drainNode(world, 'n1', SETTINGS);
    expect(drained).toMatchObject({ state: 'drained', isOurs: true, problem: null });
    expect(drained.pods.map(({ name, stage }) => [name, stage])).toEqual([
      ['default/web-0', 'gone'],
      ['default/web-1', 'gone'],
    ]);
    expect(await podsOn(world.cluster, 'n1')).toEqual([]);
    expect(lowest()).toBe(2);
    expect(await stateOf(world.cluster, 'n1')).toEqual({ isCordoned: true, owner: 'run-1', conditions: ['Drained', 'MaintenancePlanned'] });
    expect(world.reporter.messages('POD_NOT_EVICTED')).toContainEqual(expect.stringContaining('needs 2 healthy pods and has 2 currently'));
    expect(drained.requests).toBeLessThan(30);
    await giveBack(world, 'n1');
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
  });

  it('evicts more pods than it evicts at the same time', async () => {
    const many = Array.from({ length: 30 }, (_, i) => pod(`web-${i}`, 'n1'));
    const world = drainWorld([node('n1'), node('n2'), scaled('ReplicaSet/web', 30), ...many]);
    const drained = await drainNode(world, 'n1', SETTINGS);
    expect(drained).toMatchObject({ state: 'drained', problem: null });
    expect(drained.pods).toHaveLength(30);
    expect(world.clock.elapsedMs).toBeLessThan(10_000);
  });

  it('leaves DaemonSet pods, static pods and finished pods', async () => {
    const stays = [
      pod('proxy', 'n1', { of: 'DaemonSet/proxy', app: 'proxy' }),
      pod('etcd', 'n1', { of: null, annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      pod('done', 'n1', { of: null, phase: 'Succeeded' }),
    ];
    const world = drainWorld([...CLUSTER, ...stays]);
    expect(await drainNode(world, 'n1', SETTINGS)).toMatchObject({ state: 'drained' });
    expect(await podsOn(world.cluster, 'n1')).toEqual(['done', 'etcd', 'proxy']);
  });

  it('waits until an evicted pod is deleted, also after its containers have ended', () => {
    const web = pod('web-0', 'n1');
    const object = (phase: string, isTerminating: boolean): KubeObject => ({
      ...web,
      metadata: { ...web.metadata, uid: 'u', ...(isTerminating ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
      status: { phase },
    });
    const observe = (state: ReturnType<typeof startDrain>, ...pods: readonly KubeObject[]) =>
      nextDrain(state, { kind: 'observed', pods }, 0);
    const { state } = observe(startDrain(0, SETTINGS.rules, 60_000), object('Running', false));
    expect(observe(state, object('Failed', true)).ended).toBeNull();
    expect(observe(state).ended).toBe('drained');
    // It has ended by itself.
    expect(observe(state, object('Succeeded', false)).ended).toBe('drained');
  });

  it('waits until the UID is gone, also if a pod of the same name replaces it', async () => {
    const world = drainWorld([node('n1'), node('n2'), scaled('StatefulSet/db', 1), pod('db-0', 'n1', { of: 'StatefulSet/db', app: 'db' })]);
    // A finalizer stands for the grace period of the pod.
    const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'db-0' };
    await world.cluster.patch(ref, 'merge', { metadata: { finalizers: ['example.org/wait'] } });
    world.clock.at(20_000, () => void world.cluster.patch(ref, 'merge', { metadata: { finalizers: null } }));
    expect(await drainNode(world, 'n1', SETTINGS)).toMatchObject({ state: 'drained' });
    expect(world.clock.elapsedMs).toBeGreaterThanOrEqual(20_000);
    expect(world.reporter.codes()).toContain('POD_TERMINATING');
  });

  it('ends at its time limit, and uncordons the node', async () => {
    const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 3 })]);
    const drained = await drainNode(world, 'n1', { ...SETTINGS, timeoutMs: 60_000 });
    expect(drained).toMatchObject({
      state: 'failed',
      problem: { code: 'DRAIN_TIMEOUT', message: expect.stringContaining('needs 3 healthy pods') },
    });
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
    expect(await podsOn(world.cluster, 'n1')).toEqual(['web-0', 'web-1']);
    // Refused evictions are repeated with increasing pauses.
    expect(world.cluster.calls.filter((call) => call.startsWith('evict')).length).toBeLessThan(25);
  });

  it('stops when pods appear whose loss was not permitted', async () => {
    const world = drainWorld(CLUSTER);
    world.clock.at(500, () =>
      world.cluster.store.put(
        { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true },
        pod('alone', 'n1', { of: null }),
      ),
    );
    expect(await drainNode(world, 'n1', SETTINGS)).toMatchObject({
      state: 'failed',
      problem: { code: 'DRAIN_NOT_PERMITTED', message: expect.stringContaining('default/alone') },
    });
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
  });

  it('uncordons the node after an interruption', async () => {
    const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 3 })]);
    const stop = new AbortController();
    world.clock.at(5_000, () => stop.abort(new Error('interrupted')));
    await expect(drainNode({ ...world, signal: stop.signal }, 'n1', SETTINGS)).rejects.toThrow('interrupted');
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
  });
});

describe('nodes that others hold', () => {
  const withNode = (change: (object: KubeObject) => KubeObject): readonly KubeObject[] =>
    CLUSTER.map((object) => (object.metadata.name === 'n1' ? change(object) : object));
  const cordoned = withNode((one) => ({ ...one, spec: { unschedulable: true } }));
  const tainted = (key: string) => withNode((one) => ({ ...one, spec: { taints: [{ key, effect: 'NoSchedule' }] } }));
  const inMaintenance = withNode((one) => ({
    ...one,
    status: { conditions: [{ type: 'MaintenanceInProgress', status: 'True', reason: 'AdminRequested', message: 'disk' }] },
  }));

  it.each([
    ['a cordon by others', cordoned, 'cordoned, not by kubeletadm'],
    ['a taint of the cluster autoscaler', tainted('ToBeDeletedByClusterAutoscaler'), 'the cluster autoscaler deletes it'],
    ['the taint out-of-service', tainted('node.kubernetes.io/out-of-service'), 'out of service'],
    ['a maintenance by others', inMaintenance, 'MaintenanceInProgress is True (AdminRequested: disk)'],
  ])('skips a node with %s', async (_, objects, why) => {
    const world = drainWorld(objects);
    const before = await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' });
    expect(await drainNode(world, 'n1', SETTINGS)).toMatchObject({ state: 'skipped', why: expect.stringContaining(why) });
    expect(await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' })).toEqual(before);
  });

  it('drains a node cordoned by others on request, and leaves the cordon', async () => {
    const world = drainWorld(cordoned);
    expect(await drainNode(world, 'n1', { ...SETTINGS, allows: ['cordoned'] })).toMatchObject({ state: 'drained', isOurs: false });
    await giveBack(world, 'n1');
    expect(await stateOf(world.cluster, 'n1')).toEqual({ isCordoned: true, owner: null, conditions: [] });
  });

  it('leaves a node that another run renews, and takes over the cordon of one that was killed', async () => {
    const world = drainWorld(CLUSTER);
    await drainNode(world, 'n1', SETTINGS);
    const second = {
      ...world,
      run: { ...world.run, run: 'run-2', self: { ...world.run.self, name: 'bob@host', machine: 'host-boot', id: 9 } },
    };
    for (let at = 20_000; at < 90_000; at += 20_000) world.clock.at(at, () => void renewHold(world.cluster, 'n1', world.run));
    expect(await drainNode(second, 'n1', SETTINGS)).toMatchObject({
      state: 'skipped',
      why: expect.stringContaining('alice@laptop has cordoned it'),
    });
    world.clock.advance(120_000);
    expect(await drainNode(second, 'n1', SETTINGS)).toMatchObject({ state: 'drained', isOurs: true });
    // The first run, stopped for longer than its claim, loses the node.
    expect(await renewHold(world.cluster, 'n1', world.run)).toBe(false);
    await giveBack(world, 'n1');
    expect(await stateOf(world.cluster, 'n1')).toMatchObject({ isCordoned: true, owner: 'run-2' });
  });

  it('leaves a node that another run renews whose clock is late', async () => {
    const world = drainWorld(CLUSTER);
    const late = { ...world.run, clock: { ...world.clock, now: () => new Date(world.clock.now().getTime() - 300_000) } };
    await drainNode({ ...world, run: late }, 'n1', SETTINGS);
    const second = { ...world, run: { ...world.run, run: 'run-2', self: { ...world.run.self, machine: 'host-boot', id: 9 } } };
    const from = world.clock.elapsedMs;
    for (let at = 20_000; at < 90_000; at += 20_000) world.clock.at(from + at, () => void renewHold(world.cluster, 'n1', late));
    expect(await drainNode(second, 'n1', SETTINGS)).toMatchObject({ state: 'skipped' });
    expect(await stateOf(world.cluster, 'n1')).toMatchObject({ isCordoned: true, owner: 'run-1' });
  });

  it('stops if another client uncordons the node', async () => {
    const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 3 })]);
    world.clock.at(
      10_000,
      () => void world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, 'merge', { spec: { unschedulable: null } }),
    );
    expect(await drainNode(world, 'n1', SETTINGS)).toMatchObject({ state: 'failed', problem: { code: 'CORDON_LOST' } });
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
  });

  const uncordon = (world: ReturnType<typeof drainWorld>) =>
    world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, 'merge', { spec: { unschedulable: null } });

  it('does not report a node as drained that was uncordoned shortly before', async () => {
    const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 2 })]);
    world.clock.at(1_000, () => void uncordon(world));
    const drained = await drainNode(world, 'n1', SETTINGS);
    expect(world.clock.elapsedMs).toBeLessThan(20_000);
    expect(drained).toMatchObject({ state: 'failed', problem: { code: 'CORDON_LOST' } });
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
  });

  it('stops if others remove their cordon', async () => {
    const world = drainWorld([...cordoned, drainBudget('pdb', 'web', { minAvailable: 3 })]);
    world.clock.at(10_000, () => void uncordon(world));
    const drained = await drainNode(world, 'n1', { ...SETTINGS, allows: ['cordoned'] });
    expect(drained).toMatchObject({ state: 'failed', isOurs: false, problem: { code: 'CORDON_LOST' } });
    expect(await podsOn(world.cluster, 'n1')).toEqual(['web-0', 'web-1']);
  });

  it('cordons a node again whose kept cordon was removed by kubectl uncordon', async () => {
    const world = drainWorld(CLUSTER);
    await drainNode(world, 'n1', SETTINGS);
    await renewHold(world.cluster, 'n1', world.run, { isKept: true });
    await uncordon(world);
    const second = { ...world, run: { ...world.run, run: 'run-2' } };
    expect(await drainNode(second, 'n1', { ...SETTINGS, allows: ['cordoned'] })).toMatchObject({ state: 'drained', isOurs: true });
    expect(await stateOf(world.cluster, 'n1')).toMatchObject({ isCordoned: true, owner: 'run-2' });
  });
});

describe('an API server that does not answer in time', () => {
  const timeout = (): AppError => new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response within 10 s' });

  /** A cluster that performs the n-th patch, but whose response is lost. */
  function withLostAnswer(cluster: FakeCluster, at: number): Cluster {
    let patches = 0;
    const patch: Cluster['patch'] = async (...words) => {
      const result = await cluster.patch(...words);
      if (++patches === at) throw timeout();
      return result;
    };
    return { ...cluster, patch };
  }

  it.each([1, 2, 3])('leaves no cordon if the response to change %i of the Node is lost', async (at) => {
    const world = drainWorld(CLUSTER);
    const lost = { ...world, cluster: withLostAnswer(world.cluster, at) };
    await expect(drainNode(lost, 'n1', SETTINGS)).rejects.toMatchObject({ code: 'CLUSTER_UNREACHABLE' });
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
  });

  it('does not report a cordon if the Node could not be read', async () => {
    const world = drainWorld(CLUSTER);
    const cluster: Cluster = { ...world.cluster, get: () => Promise.reject(timeout()) };
    await expect(drainNode({ ...world, cluster }, 'n1', SETTINGS)).rejects.toMatchObject({ code: 'CLUSTER_UNREACHABLE' });
    expect(world.clock.elapsedMs).toBe(0);
  });

  it('continues the drain if the cordon cannot be renewed for a moment', async () => {
    const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 2 })], { startMs: 30_000 });
    world.clock.at(15_000, () => world.cluster.failNext('get Node n1', timeout()));
    expect(await drainNode(world, 'n1', SETTINGS)).toMatchObject({ state: 'drained' });
  });
});

it('waits for a pod that one list did not contain', () => {
  const objects = [pod('web-0', 'n1')].map((one) => ({ ...one, metadata: { ...one.metadata, uid: 'u' } }));
  const other = { ...pod('web-1', 'n1'), metadata: { ...pod('web-1', 'n1').metadata, uid: 'v' } };
  let { state } = nextDrain(startDrain(0, SETTINGS.rules, 60_000), { kind: 'observed', pods: [...objects, other] }, 0);
  ({ state } = nextDrain(state, { kind: 'observed', pods: [other] }, 1_000));
  expect(state.pods.get('u')?.stage).toBe('gone');
  expect(nextDrain(state, { kind: 'observed', pods: objects }, 2_000)).toMatchObject({ ended: null, evict: [{ uid: 'u' }] });
});

describe('a run that is killed at a write', () => {
  const WRITES = ['patch', 'evict'];

  /** A cluster for a process that is killed right before or after its n-th write. */
  function killedAt(cluster: FakeCluster, at: number, isAfter: boolean): { readonly cluster: Cluster; readonly isDead: () => boolean } {
    let writes = 0;
    let isDead = false;
    const guarded =
      (name: string, call: (...words: never[]) => Promise<unknown>) =>
      async (...words: never[]) => {
        if (isDead) throw new Error('killed');
        const isLast = WRITES.includes(name) && ++writes === at;
        if (isLast && !isAfter) isDead = true;
        if (isDead) throw new Error('killed');
        const result = await call(...words);
        if (isLast) isDead = true;
        if (isDead) throw new Error('killed');
        return result;
      };
    const calls = Object.entries(cluster).filter(([, value]) => typeof value === 'function') as [
      string,
      (...words: never[]) => Promise<unknown>,
    ][];
    return {
      cluster: { ...cluster, ...Object.fromEntries(calls.map(([name, call]) => [name, guarded(name, call)])) } as Cluster,
      isDead: () => isDead,
    };
  }

  it.each([false, true])('is finished by the next run, which leaves no cordon (after the write: %s)', async (isAfter) => {
    let at = 0;
    for (let wasKilled = true; wasKilled; ) {
      at++;
      const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 2 })]);
      await world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n3' }, 'merge', { spec: { unschedulable: true } });
      const killed = killedAt(world.cluster, at, isAfter);
      const first = { ...world, cluster: killed.cluster };
      await drainNode(first, 'n1', SETTINGS)
        .then(() => giveBack(first, 'n1'))
        .catch((error: Error) => expect(error.message).toBe('killed'));
      wasKilled = killed.isDead();
      const second = { ...world, run: { ...world.run, run: 'run-2', self: { ...world.run.self, id: 8, isRunning: () => false } } };
      expect(await drainNode(second, 'n1', SETTINGS)).toMatchObject({ state: 'drained', isOurs: true });
      await giveBack(second, 'n1');
      expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
      expect(await stateOf(world.cluster, 'n3')).toEqual({ isCordoned: true, owner: null, conditions: [] });
    }
    expect(at).toBeGreaterThan(6);
  });
});

describe('drainNodes', () => {
  it('drains one node at a time, and stops after a failure', async () => {
    const budget = drainBudget('pdb', 'db', { minAvailable: 1 });
    const world = drainWorld([...CLUSTER, scaled('StatefulSet/db', 1), pod('db-0', 'n2', { of: 'StatefulSet/db', app: 'db' }), budget]);
    const done: string[] = [];
    const outcomes = await drainNodes(
      world,
      ['n1', 'n2', 'n3'],
      { ...SETTINGS, timeoutMs: 30_000 },
      { atOnce: 1, timeoutMs: null },
      async ({ node: name }) => {
        done.push(name);
        await giveBack(world, name);
      },
    );
    expect(outcomes.map(({ node: name, outcome }) => [name, outcome])).toEqual([
      ['n1', 'changed'],
      ['n2', 'failed'],
      ['n3', 'not-started'],
    ]);
    expect(done).toEqual(['n1']);
    for (const name of ['n1', 'n2', 'n3']) expect(await stateOf(world.cluster, name)).toEqual(SERVING);
  });

  it('uncordons a drained node that cannot be kept', async () => {
    const world = drainWorld(CLUSTER);
    const error = new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response within 10 s' });
    const outcomes = await drainNodes(world, ['n1', 'n2'], SETTINGS, { atOnce: 1, timeoutMs: null }, () => Promise.reject(error));
    expect(outcomes).toMatchObject([
      { outcome: 'failed', error: { code: 'CLUSTER_UNREACHABLE' } },
      { outcome: 'not-started', error: null },
    ]);
    expect(await stateOf(world.cluster, 'n1')).toEqual(SERVING);
  });

  it('starts no node after the total time limit', async () => {
    const world = drainWorld([...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 3 })]);
    const outcomes = await drainNodes(world, ['n1', 'n2'], SETTINGS, { atOnce: 1, timeoutMs: 20_000 }, async () => undefined);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['failed', 'not-started']);
    expect(world.clock.elapsedMs).toBeLessThan(25_000);
  });
});

describe('random fleets and budgets', () => {
  it('never violates a budget, always ends, and leaves only cordons of others', { timeout: 120_000 }, async () => {
    for (let seed = 1; seed <= RUNS; seed++) {
      const random = seededRandom(seed);
      const upTo = (most: number): number => Math.floor(random() * (most + 1));
      const names = Array.from({ length: 2 + upTo(4) }, (_, i) => `n${i + 1}`);
      const foreign = names.filter(() => random() < 0.15);
      const nodes = names.map((name) => node(name, foreign.includes(name) ? { unschedulable: true } : {}));
      const apps = Array.from({ length: 1 + upTo(2) }, (_, i) => `app${i}`).flatMap((app) => {
        const replicas = 1 + upTo(4);
        const anyNode = (): string => names[upTo(names.length - 1)] as string;
        const pods = Array.from({ length: replicas }, (_, i) =>
          pod(`${app}-${i}`, anyNode(), { of: `ReplicaSet/${app}`, app, isReady: random() > 0.1 }),
        );
        const spec = random() < 0.5 ? { minAvailable: upTo(replicas) } : { maxUnavailable: upTo(replicas) };
        return [scaled(`ReplicaSet/${app}`, replicas), ...pods, ...(random() < 0.8 ? [drainBudget(app, app, spec)] : [])];
      });
      const world = drainWorld([...nodes, ...apps], { startMs: upTo(20_000) });
      const violations = watchBudgets(world.cluster);
      const atOnce = 1 + upTo(2);
      const held = watchHeld(world.cluster);
      const outcomes = await drainNodes(
        world,
        names,
        { ...SETTINGS, timeoutMs: 60_000 },
        { atOnce, timeoutMs: null },
        async ({ node: name, isOurs }) => {
          if (isOurs) await markLifecycle(world.cluster, name, { MaintenanceInProgress: 'AdminRequested' }, world.run);
          await giveBack(world, name);
        },
      );
      expect(outcomes.length, `seed ${seed}`).toBe(names.length);
      expect(violations(), `seed ${seed}`).toEqual([]);
      expect(held(), `seed ${seed}`).toBeLessThanOrEqual(atOnce);
      for (const name of names)
        expect(await stateOf(world.cluster, name), `seed ${seed}`).toEqual({ ...SERVING, isCordoned: foreign.includes(name) });
    }
  });
});

const RUNS = Number(process.env.KUBELETADM_RANDOM_DRAINS ?? 100);

interface BudgetStatus {
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
}

/** The lowest number of healthy pods that the disruption controller has counted. */
function leastHealthy(cluster: FakeCluster): () => number {
  let lowest = Number.POSITIVE_INFINITY;
  cluster.store.subscribe(({ resource, object }) => {
    if (resource.kind === 'PodDisruptionBudget') lowest = Math.min(lowest, (object.status as unknown as BudgetStatus).currentHealthy);
  });
  return () => lowest;
}

/** Changes by which a satisfied budget became violated. */
function watchBudgets(cluster: FakeCluster): () => readonly string[] {
  const found: string[] = [];
  cluster.store.subscribe(({ resource, object, previous }) => {
    if (resource.kind !== 'PodDisruptionBudget' || previous === null) return;
    const [after, before] = [object.status, previous.status] as unknown as readonly [BudgetStatus, BudgetStatus];
    const isSatisfied = (status: BudgetStatus): boolean => status.currentHealthy >= status.desiredHealthy;
    if (before !== undefined && isSatisfied(before) && !isSatisfied(after)) found.push(`${object.metadata.name}: ${JSON.stringify(after)}`);
  });
  return () => found;
}

/** The largest number of nodes that were cordoned by the run at the same time. */
function watchHeld(cluster: FakeCluster): () => number {
  const held = new Set<string>();
  let most = 0;
  cluster.store.subscribe(({ resource, object }) => {
    if (resource.kind !== 'Node') return;
    if (object.metadata.annotations?.[CORDON_ANNOTATION] === undefined) held.delete(object.metadata.name);
    else held.add(object.metadata.name);
    most = Math.max(most, held.size);
  });
  return () => most;
}
