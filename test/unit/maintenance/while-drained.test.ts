import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { Impact } from '../../../src/host/plan/impact.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../../src/kube/resources.ts';
import { takeHold } from '../../../src/maintenance/drain/hold.ts';
import { nodeHolds, whileDrained } from '../../../src/maintenance/drain/while-drained.ts';
import { cordonOwner, isCordoned } from '../../../src/maintenance/node-hold.ts';
import { drainBudget, drainNode as node, drainPod as pod, scaled } from '../../support/drain-objects.ts';
import { drainWorld, put } from '../../support/drain-world.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';

const POLICY = { isAllowed: true, isForced: false, timeoutMs: 60_000, settleMs: 0, acceptsLoss: false };
const CLUSTER = [node('n1'), node('n2'), scaled('ReplicaSet/web', 2), pod('web-0', 'n1'), pod('web-1', 'n2')];
const failure = (exitCode: 1 | 5): AppError => new AppError({ code: 'FAILED', message: 'failed' }, { exitCode });

interface Change {
  readonly objects?: readonly KubeObject[];
  readonly impact?: Impact | null;
  readonly policy?: Partial<typeof POLICY>;
  /** Thrown by the change. */
  readonly error?: AppError;
}

function lifecycleOf({ status }: KubeObject): readonly string[] {
  const { conditions } = status as unknown as { conditions: readonly { type: string }[] };
  return conditions
    .map(({ type }) => type)
    .filter((type) => type !== 'Ready')
    .sort();
}

async function perform({ objects = CLUSTER, impact = 'drain', policy = {}, error }: Change, world = drainWorld(objects)) {
  const read = async () => (await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' })) as KubeObject;
  const during: { isCordoned: boolean; conditions: readonly string[]; pods: readonly string[] }[] = [];
  const change = async (): Promise<string> => {
    const found = await read();
    const { items } = await world.cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: 'spec.nodeName=n1' });
    during.push({ isCordoned: isCordoned(found), conditions: lifecycleOf(found), pods: items.map(({ metadata }) => metadata.name) });
    if (error !== undefined) throw error;
    return 'changed';
  };
  const isRestored = ({ exitCode }: AppError): boolean => exitCode === 5;
  const result = await whileDrained(world, { node: 'n1', impact, isRestored }, { ...POLICY, ...policy }, change).catch(
    (thrown: AppError) => thrown,
  );
  const after = await read();
  return {
    world,
    result,
    during,
    after: { isCordoned: isCordoned(after), owner: cordonOwner(after)?.run ?? null, conditions: lifecycleOf(after) },
  };
}

const SERVING = { isCordoned: false, owner: null, conditions: [] };

describe('a change of a node', () => {
  it.each(['drain', 'unsafe'] as const)('of class %s is made on a drained node, which returns to service', async (impact) => {
    const { result, during, after } = await perform({ impact });
    expect(result).toBe('changed');
    expect(during).toEqual([{ isCordoned: true, conditions: ['Drained', 'MaintenanceInProgress'], pods: [] }]);
    expect(after).toEqual(SERVING);
  });

  it.each(['safe', 'new-pods-only', null] as const)('of class %s drains no node', async (impact) => {
    const { result, during, world } = await perform({ impact });
    expect(result).toBe('changed');
    expect(during).toEqual([{ isCordoned: false, conditions: [], pods: ['web-0'] }]);
    expect(world.cluster.calls.filter((call) => /^(patch|evict)/.test(call))).toEqual([]);
  });

  describe('waits until the controllers of the evicted pods have as many Ready pods as before', () => {
    const WEB = [node('n1'), node('n2'), scaled('ReplicaSet/web', 2), pod('web-0', 'n1'), pod('web-1', 'n2')];
    const DB = [scaled('StatefulSet/db', 1, 'shop'), pod('db-0', 'n1', { of: 'StatefulSet/db', namespace: 'shop' })];
    const settling = async (objects: readonly KubeObject[], world: ReturnType<typeof drainWorld>) => {
      const { result, after } = await perform({ objects, policy: { settleMs: 120_000 } }, world);
      const ended = world.cluster.calls.findLastIndex((call) => call.startsWith('patch'));
      return { result, after, requests: world.cluster.calls.slice(ended + 1).filter((call) => !/ Node(\/| |$)/.test(call)) };
    };

    it('with one list of pods for each of them, and pauses that grow', async () => {
      const objects = [...WEB, ...DB];
      const world = drainWorld(objects, { startMs: 60_000 });
      const { result, requests } = await settling(objects, world);
      expect(result).toBe('changed');
      expect(world.clock.elapsedMs).toBeGreaterThanOrEqual(60_000);
      expect(world.clock.elapsedMs).toBeLessThan(75_000);
      expect(new Set(requests)).toEqual(new Set(['list Pod in default', 'list Pod in shop']));
      expect(requests.length).toBeLessThanOrEqual(2 * 11);
      const waiting = world.reporter.events.find(({ code }) => code === 'WAITING');
      expect(waiting?.message).toContain(
        'waiting for replacements of the evicted pods to be Ready, 0 s: ReplicaSet default/web (1 of 2 Ready), StatefulSet shop/db (0 of 1 Ready)',
      );
      expect(world.reporter.events.at(-1)).toMatchObject({ code: 'PODS_SETTLED' });
    });

    it('by the labels of their pods', async () => {
      const selector = { matchLabels: { app: 'web' } };
      const web = { ...scaled('ReplicaSet/web', 2), spec: { replicas: 2, selector } };
      const world = drainWorld([
        ...WEB.filter(({ kind }) => kind !== 'ReplicaSet'),
        web,
        pod('other', 'n2', { of: 'ReplicaSet/other', app: 'other' }),
      ]);
      const listed: unknown[] = [];
      const list: Cluster['list'] = (collection, options) => {
        if (collection.kind === 'Pod' && collection.namespace !== undefined) listed.push(options?.labelSelector);
        return world.cluster.list(collection, options);
      };
      const change = { node: 'n1', impact: 'drain', isRestored: () => true } as const;
      await whileDrained({ ...world, cluster: { ...world.cluster, list } }, change, { ...POLICY, settleMs: 60_000 }, async () => undefined);
      expect(listed.length).toBeGreaterThan(1);
      expect(new Set(listed)).toEqual(new Set(['app=web']));
      expect(world.reporter.events.at(-1)).toMatchObject({ code: 'PODS_SETTLED' });
    });

    it('and no longer for a controller that was scaled down or deleted', async () => {
      const objects = [...WEB, ...DB];
      const world = drainWorld(objects, { startMs: 1_000_000 });
      world.clock.at(30_000, () => {
        put(world.cluster, scaled('ReplicaSet/web', 1));
        world.cluster.store.remove(resourceOf('apps/v1', 'StatefulSet') as ResourceType, 'shop', 'db');
        const left = world.cluster.store.list(resourceOf('v1', 'Pod') as ResourceType).filter(({ metadata }) => metadata.name !== 'web-1');
        put(world.cluster, ...left.map((each) => ({ ...each, status: { phase: 'Failed' } })));
      });
      expect((await settling(objects, world)).result).toBe('changed');
      expect(world.clock.elapsedMs).toBeLessThan(45_000);
      expect(world.reporter.events.at(-1)).toMatchObject({ code: 'PODS_SETTLED' });
    });

    it('and continues with a warning after --settle', async () => {
      const world = drainWorld(WEB, { startMs: 1_000_000 });
      const { result, after } = await settling(WEB, world);
      expect([result, after]).toEqual(['changed', SERVING]);
      const message = expect.stringContaining(
        'not known to have as many Ready pods as before the drain: ReplicaSet default/web (1 of 2 Ready). The run continues',
      );
      expect(world.reporter.events.at(-1)).toMatchObject({ level: 'warning', code: 'PODS_NOT_SETTLED', host: 'n1', message });
    });
  });

  it('is made with a warning on a node whose pods the credentials may not list; not with --no-drain', async () => {
    const world = drainWorld(CLUSTER);
    const forbidden = new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'cannot list Pods' });
    const cluster: Cluster = { ...world.cluster, get: world.cluster.get.bind(world.cluster), list: () => Promise.reject(forbidden) };
    const change = { node: 'n1', impact: 'drain' as const, isRestored: () => false };
    expect(await whileDrained({ ...world, cluster }, change, POLICY, async () => 'changed')).toBe('changed');
    expect(world.reporter.codes()).toEqual(['NODE_NOT_DRAINED']);
    const kept = whileDrained({ ...world, cluster }, change, { ...POLICY, isAllowed: false }, async () => 'changed');
    await expect(kept).rejects.toBe(forbidden);
  });

  it('that is rolled back returns the node to service; one with an unknown result leaves it cordoned until a rerun succeeds', async () => {
    const rolledBack = await perform({ error: failure(5) });
    expect([rolledBack.result, rolledBack.after]).toEqual([failure(5), SERVING]);
    const unknown = await perform({ error: failure(1) });
    expect(unknown.after).toMatchObject({ isCordoned: true, owner: 'run-1' });
    expect(unknown.world.reporter.codes()).toContain('NODE_LEFT_CORDONED');
    const { run } = unknown.world;
    const rerun = { ...unknown.world, run: { ...run, run: 'run-2', self: { ...run.self, id: 8, isRunning: () => false } } };
    expect(await perform({}, rerun)).toMatchObject({ result: 'changed', after: SERVING });
  });

  it('is refused with --no-drain while pods are on the node', async () => {
    const refused = await perform({ policy: { isAllowed: false } });
    expect(refused).toMatchObject({ result: { code: 'NODE_NOT_DRAINED', exitCode: 3 }, during: [], after: SERVING });
    const accepted = await perform({ policy: { isAllowed: false, acceptsLoss: true } });
    expect(accepted).toMatchObject({ result: 'changed', during: [{ isCordoned: false, pods: ['web-0'] }], after: SERVING });
    const empty = [node('n1'), node('n2')];
    expect(await perform({ objects: empty, policy: { isAllowed: false } })).toMatchObject({ result: 'changed', after: SERVING });
  });

  it('is refused before the first cordon if a budget never allows the drain, or pods would be lost', async () => {
    const deadlock = await perform({ objects: [...CLUSTER, drainBudget('pdb', 'web', { minAvailable: 2 })] });
    expect(deadlock).toMatchObject({ result: { code: 'DRAIN_BLOCKED', exitCode: 3 }, during: [], after: SERVING });
    expect(deadlock.world.cluster.calls.filter((call) => call.startsWith('patch'))).toEqual([]);
    const bare = [...CLUSTER, pod('alone', 'n1', { of: null })];
    expect((await perform({ objects: bare })).result).toMatchObject({
      message: expect.stringContaining('Pass --force-drain to lose these pods'),
    });
    expect(await perform({ objects: bare, policy: { isForced: true } })).toMatchObject({ result: 'changed', during: [{ pods: [] }] });
  });

  it('on a node cordoned by others needs no pods to evict, and leaves the cordon', async () => {
    const cordoned = CLUSTER.map((one) => (one.metadata.name === 'n1' ? node('n1', { unschedulable: true }) : one));
    expect(await perform({ objects: cordoned })).toMatchObject({ result: { code: 'NODE_HELD', exitCode: 3 }, during: [] });
    const drained = await perform({ objects: cordoned.filter(({ metadata }) => metadata.name !== 'web-0') });
    expect(drained).toMatchObject({ result: 'changed', after: { isCordoned: true, owner: null, conditions: [] } });
  });

  it('of a host that joins, and one without the right to drain, is made without a drain', async () => {
    const joins = { node: 'n9', impact: 'drain', isRestored: () => true } as const;
    expect(await whileDrained(drainWorld(CLUSTER), joins, POLICY, async () => 'joined')).toBe('joined');
    const world = drainWorld(CLUSTER);
    const weak = fakeCluster({
      user: { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] },
      sharedWith: world.cluster,
    });
    const { result, during } = await perform({}, { ...world, cluster: weak });
    expect([result, during[0]?.pods]).toEqual(['changed', ['web-0']]);
    expect(world.reporter.messages('NODE_NOT_DRAINED')).toHaveLength(1);
  });

  it('is not started if the node cannot be marked, and the node returns to service', async () => {
    const world = drainWorld(CLUSTER);
    const patch: Cluster['patch'] = async (...words) => {
      if (JSON.stringify(words).includes('"status":"True"') && JSON.stringify(words).includes('MaintenanceInProgress'))
        throw new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response within 10 s' });
      return world.cluster.patch(...words);
    };
    const { result, during, after } = await perform({}, { ...world, cluster: { ...world.cluster, patch } });
    expect(result).toMatchObject({ code: 'CLUSTER_UNREACHABLE' });
    expect([during, after]).toEqual([[], SERVING]);
    expect(world.reporter.codes()).not.toContain('NODE_LEFT_CORDONED');
    // No renewal of the cordon goes on.
    const count = world.cluster.calls.length;
    await world.clock.sleep(100_000);
    expect(world.cluster.calls.length).toBe(count);
  });

  it('is not started if the node is uncordoned after its drain, and no condition is left', async () => {
    const world = drainWorld(CLUSTER);
    world.cluster.store.subscribe(({ object, previous }) => {
      const isDrained = (one: KubeObject | null): boolean => one?.kind === 'Node' && lifecycleOf(one).includes('Drained');
      if (!isDrained(object) || isDrained(previous)) return;
      put(world.cluster, { ...object, spec: { ...(object.spec as object), unschedulable: false } });
    });
    const { result, during, after } = await perform({}, world);
    expect(result).toMatchObject({ code: 'CORDON_LOST', exitCode: 3 });
    expect([during, after]).toEqual([[], SERVING]);
  });

  it('is refused with --no-drain on a node that another run holds, even if it has no pods', async () => {
    const world = drainWorld([node('n1'), node('n2')]);
    const self = { ...world.run.self, name: 'bob@host', machine: 'host-boot' };
    await takeHold(world.cluster, 'n1', { ...world.run, run: 'run-2', self });
    const refused = await perform({ policy: { isAllowed: false } }, world);
    expect(refused).toMatchObject({ result: { code: 'NODE_HELD', exitCode: 3 }, during: [], after: { isCordoned: true, owner: 'run-2' } });
  });

  it('keeps its claim during a long change', async () => {
    const world = drainWorld(CLUSTER);
    const isRestored = (): boolean => true;
    const renewals: string[] = [];
    world.cluster.store.subscribe(({ object }) => {
      const owner = object.kind === 'Node' ? cordonOwner(object) : null;
      if (owner !== null) renewals.push(owner.renewed);
    });
    await whileDrained(world, { node: 'n1', impact: 'drain', isRestored }, POLICY, async () => {
      for (let i = 0; i < 200; i++) await world.clock.sleep(1_000);
    });
    expect(new Set(renewals).size).toBeGreaterThan(5);
  });
});

it('a node that is taken again, because its change could not begin, is renewed by one timer until its change ends', async () => {
  const world = drainWorld(CLUSTER, { startMs: 30_000 });
  const { cluster, clock } = world;
  const holds = nodeHolds(world, { ...POLICY, settleMs: 120_000 });
  await holds.take('n1', 'drain');
  await holds.take('n1', 'drain');
  await holds.end('n1', true);
  expect(world.reporter.codes().at(-1)).toBe('PODS_SETTLED');
  const count = cluster.calls.length;
  await clock.sleep(100_000);
  expect(cluster.calls.slice(count)).toEqual([]);
});
