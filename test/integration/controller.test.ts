import { describe, expect, it } from 'vitest';
import { AppError } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { conditionOf } from '../../src/kube/node-conditions.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { isCordoned } from '../../src/maintenance/node-hold.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import { drainPod, scaled } from '../support/drain-objects.ts';
import { put } from '../support/drain-world.ts';
import { type RolloutWorld, rolloutWorld } from '../support/rollout-world.ts';

const NODES = ['n1', 'n2', 'n3', 'n4'];

function spec(maxPods: number, more: JsonObject = {}): JsonObject {
  return { nodeSelector: {}, payload: { overlay: { maxPods } }, ...more };
}

const QUICK = { strategy: { minReadySeconds: 10 }, progressDeadlineSeconds: 60 };

const all = (value: number): Readonly<Record<string, number>> => Object.fromEntries(NODES.map((name) => [name, value]));

/** A reason of the condition that is True. */
async function reason(world: RolloutWorld, name = 'pods'): Promise<string> {
  const { phase, conditions = [] } = await world.status(name);
  const found = conditions.filter(({ status }) => status === 'True').map(({ type, reason: why }) => `${type}: ${why}`);
  return `${phase} ${found.join(', ')}`;
}

/** A payload of which each kubelet becomes NotReady. */
function failsWith(world: RolloutWorld, word: string): void {
  world.fleet.behaviours.set(word, (seconds) => (seconds < 3 ? {} : { healthz: { ok: false, why: 'connection refused' } }));
}

describe('a rollout', () => {
  it('changes the canary, then one node after the other, and completes', async () => {
    const world = await rolloutWorld(NODES);
    await world.create('pods', spec(50, QUICK));
    const controller = world.controller();
    await controller.run(8);
    expect(Object.values(await world.maxPods()).filter((value) => value === 50)).toHaveLength(1);
    expect(await world.status('pods')).toMatchObject({ phase: 'Progressing', counts: { selected: 4, inProgress: 1 } });
    await controller.run(80);
    expect(await world.maxPods()).toEqual(all(50));
    expect(await reason(world)).toBe('Complete Ready: Complete');
    expect(await world.status('pods')).toMatchObject({ counts: { updated: 4 }, observedGeneration: 1 });
    expect((await world.status('pods')).nodes).toBeUndefined();
    expect(world.fleet.mostUnavailable()).toBe(1);
    const { updateRevision, currentRevision } = await world.status('pods');
    expect(currentRevision).toBe(updateRevision);
  });

  it.each([
    [{}, ['n1', 'n3']],
    [{ topologyOrder: 'Spread' }, ['n1', 'n2']],
  ])('changes zones one after the other, or spreads the nodes in progress over them: %o', async (order, first) => {
    const world = await rolloutWorld(NODES);
    const strategy = { ...QUICK.strategy, canary: { count: 0 }, maxUnavailable: 2, topologyKey: 'pool', ...order };
    await world.create('pods', spec(50, { ...QUICK, strategy }));
    const controller = world.controller();
    await controller.run(5);
    expect(await world.assigned()).toEqual(first);
    await controller.run(60);
    expect(await reason(world)).toBe('Complete Ready: Complete');
    expect(world.fleet.mostUnavailable()).toBe(2);
  });

  it('stops at a failed canary; a new payload continues', async () => {
    const world = await rolloutWorld(NODES);
    failsWith(world, '"maxPods": 66');
    await world.create('pods', spec(66, QUICK));
    const controller = world.controller();
    await controller.run(120);
    expect(await reason(world)).toBe('Failed Stalled: NodesFailed');
    expect(Object.values(await world.maxPods()).filter((value) => value !== 0)).toEqual([]);
    expect((await world.status('pods')).nodes?.filter(({ state }) => state === 'Failed')).toHaveLength(1);
    await world.patch('pods', { payload: { overlay: { maxPods: 50 } } });
    await controller.run(120);
    expect(await world.maxPods()).toEqual(all(50));
    expect(await reason(world)).toBe('Complete Ready: Complete');
  });

  it('reverts the changed nodes if a later one fails, and does not roll out the same revision again', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    await world.create('pods', spec(40, QUICK));
    await controller.run(100);
    expect(await world.maxPods()).toEqual(all(40));
    world.fleet.behaviours.set('"maxPods": 66', (seconds, node) =>
      seconds < 3 || node !== 'n3' ? {} : { healthz: { ok: false, why: 'connection refused' } },
    );
    await world.patch('pods', { payload: { overlay: { maxPods: 66 } }, onFailure: 'Revert' });
    await controller.run(60);
    expect(['Progressing Reconciling: Progressing', 'Reverting Reconciling: Reverting']).toContain(await reason(world));
    await controller.run(150);
    expect(await reason(world)).toBe('Reverted Stalled: Reverted');
    expect(await world.maxPods()).toEqual(all(40));
    await controller.run(60);
    expect(await world.maxPods()).toEqual(all(40));
    await world.patch('pods', { payload: { overlay: { maxPods: 50 } } });
    await controller.run(100);
    expect(await world.maxPods()).toEqual(all(50));
    expect(await reason(world)).toBe('Complete Ready: Complete');
  });

  it.each([{ onFailure: 'Stop', maxFailures: 2 }, { onFailure: 'Revert' }])(
    'changes no node while the kubelet of a failed one starts again: %o',
    async ({ maxFailures = 0, ...failure }) => {
      const world = await rolloutWorld(NODES);
      const controller = world.controller();
      world.fleet.behaviours.set('"maxPods": 66', (seconds, node) =>
        seconds < 3 || node !== 'n2' ? {} : { healthz: { ok: false, why: 'connection refused' } },
      );
      await world.create('pods', spec(66, { ...QUICK, ...failure, strategy: { ...QUICK.strategy, maxFailures } }));
      let failedAt: number | null = null;
      let startedAt: number | null = null;
      for (let i = 0; i < 150; i++) {
        await controller.run(1);
        const { nodes = [], phase } = await world.status('pods');
        if (failedAt === null && (phase === 'Reverting' || nodes.some(({ state }) => state === 'Failed'))) failedAt = i;
        if (failedAt !== null && startedAt === null && nodes.some(({ name, state }) => name !== 'n2' && state === 'InProgress'))
          startedAt = i;
      }
      expect((startedAt ?? 0) - (failedAt ?? 0)).toBeGreaterThanOrEqual(10);
      expect(world.fleet.mostUnavailable()).toBe(1);
      expect(await world.maxPods()).toEqual(maxFailures === 0 ? all(0) : { ...all(66), n2: 0 });
    },
  );

  describe('of a change that needs a drained node', () => {
    const DRAIN = {
      ...QUICK,
      strategy: { ...QUICK.strategy, allow: 'drain' },
      payload: { overlay: { maxPods: 1, topologyManagerScope: 'pod' } },
    };
    const podNames = async ({ cluster }: RolloutWorld): Promise<readonly string[]> =>
      (await cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'default' })).items.map(({ metadata }) => metadata.name);
    const withPods = async (): Promise<RolloutWorld> => {
      const world = await rolloutWorld(['n1', 'n2']);
      const kubeletconfig = effectiveConfiguration({}, { catalogue: await loadCatalogue(), minor: 36 });
      for (const node of ['n1', 'n2']) world.fleet.cluster.proxyNode(node, () => ({ status: 200, body: { kubeletconfig } }));
      for (const name of ['web-1', 'web-2']) await world.cluster.create(drainPod(name, 'n1'));
      return world;
    };

    /** The nodes that were cordoned when they were assigned. */
    const cordonedIn = ({ fleet }: RolloutWorld): readonly string[] => {
      const cordoned: string[] = [];
      fleet.cluster.store.subscribe(({ object, previous }) => {
        const sourceOf = (node: KubeObject | null) => node?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION];
        if (object.kind === 'Node' && sourceOf(object) !== sourceOf(previous) && isCordoned(object)) cordoned.push(object.metadata.name);
      });
      return cordoned;
    };

    it('drains each node, also if the configuration would end the pods that are evicted', async () => {
      const world = await withPods();
      const cordoned = cordonedIn(world);
      await world.create('pods', spec(1, DRAIN));
      await world.controller().run(120);
      expect(await reason(world)).toBe('Complete Ready: Complete');
      expect([cordoned, await podNames(world)]).toEqual([['n1', 'n2'], []]);
    });

    it.each(['a new leader', 'the same leader after a change of the rollout'])(
      'drains a node in progress whose drain has failed: %s',
      async (who) => {
        const world = await withPods();
        const cordoned = cordonedIn(world);
        let mayCordon = false;
        const patch: Cluster['patch'] = async (ref, ...more) => {
          if (ref.kind === 'Node' && !mayCordon) throw new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no answer' });
          return world.cluster.patch(ref, ...more);
        };
        await world.create('pods', spec(1, { ...DRAIN, progressDeadlineSeconds: 300 }));
        const first = world.controller({ cluster: { ...world.cluster, patch } });
        await first.run(10);
        expect(await world.status('pods')).toMatchObject({ nodes: [{ name: 'n1', state: 'InProgress' }, { state: 'Pending' }] });
        first.isLeader = who !== 'a new leader';
        if (first.isLeader) await world.patch('pods', { strategy: { maxFailures: 1 } });
        mayCordon = true;
        await (first.isLeader ? first : world.controller()).run(180);
        expect(await reason(world)).toBe('Complete Ready: Complete');
        expect([cordoned, await podNames(world)]).toEqual([['n1', 'n2'], []]);
      },
    );

    it.each([{}, { revisionHistoryLimit: 3 }])(
      'drains a node also for a return to its earlier ConfigMap, but no node that rolled back; edited meanwhile: %o',
      async (edit) => {
        const world = await withPods();
        const strategy = { ...QUICK.strategy, allow: 'drain' };
        await world.create('pods', spec(40, { ...QUICK, strategy, onFailure: 'Revert' }));
        const controller = world.controller();
        await controller.run(60);
        expect(await reason(world)).toBe('Complete Ready: Complete');
        const cordoned = cordonedIn(world);
        world.fleet.behaviours.set('topologyManagerScope', (seconds, node) =>
          seconds < 3 || node !== 'n2' ? {} : { healthz: { ok: false, why: 'connection refused' } },
        );
        await world.patch('pods', { payload: { overlay: { topologyManagerScope: 'pod' } } });
        for (let i = 0; i < 60 && !cordoned.includes('n2'); i++) await controller.run(1);
        await world.patch('pods', edit);
        await controller.run(60);
        expect(await reason(world)).toBe('Reverted Stalled: Reverted');
        expect([cordoned, await world.maxPods()]).toEqual([['n1', 'n2', 'n1'], { n1: 40, n2: 40 }]);
      },
    );

    it('marks all nodes that will be drained before the first drain, and others no longer', async () => {
      const world = await withPods();
      const marked = async (): Promise<readonly string[]> =>
        (await world.cluster.list({ apiVersion: 'v1', kind: 'Node' })).items.flatMap((node) =>
          conditionOf(node, 'MaintenancePlanned')?.status === 'True' ? [node.metadata.name] : [],
        );
      const seen: string[] = [];
      world.fleet.cluster.store.subscribe(({ object }) => {
        if (object.kind !== 'Node') return;
        const word = isCordoned(object) ? 'cordoned' : conditionOf(object, 'MaintenancePlanned') === null ? 'other' : 'marked';
        seen.push(`${object.metadata.name} ${word}`);
      });
      await world.create('pods', spec(1, { ...DRAIN, paused: true }));
      const controller = world.controller();
      await controller.run(5);
      expect(await marked()).toEqual(['n1', 'n2']);
      await world.patch('pods', { strategy: { allow: 'new-pods-only' } });
      await controller.run(5);
      expect([await reason(world), await marked()]).toEqual([expect.stringContaining('Refused'), []]);
      await world.patch('pods', { strategy: { allow: 'drain' } });
      await controller.run(5);
      expect(await marked()).toEqual(['n1', 'n2']);
      await world.patch('pods', { payload: { overlay: { maxPods: null, topologyManagerScope: null, containerLogMaxFiles: 6 } } });
      await controller.run(5);
      expect(await marked()).toEqual([]);
      await world.patch('pods', { payload: DRAIN.payload });
      await controller.run(5);
      controller.isLeader = false;
      await world.cluster.delete(rolloutRef('pods'));
      await world.controller().run(2);
      expect(await marked()).toEqual([]);
      seen.length = 0;
      await world.create('again', spec(1, DRAIN));
      await world.controller().run(120);
      expect(await reason(world, 'again')).toBe('Complete Ready: Complete');
      expect(seen.indexOf('n2 marked')).toBeGreaterThan(-1);
      expect(seen.indexOf('n2 marked')).toBeLessThan(seen.indexOf('n1 cordoned'));
      expect(await marked()).toEqual([]);
    });

    it('changes the next node when replacements of the evicted pods are Ready, or after settleSeconds', async () => {
      for (const [settleSeconds, from, to] of [
        [100, 60, 90],
        [20, 35, 58],
        [0, 15, 34],
      ] as const) {
        const world = await withPods();
        put(world.fleet.cluster, scaled('ReplicaSet/web', 2));
        world.fleet.plan.set(world.fleet.elapsedSeconds + 60, async () => {
          for (const name of ['web-3', 'web-4']) await world.cluster.create(drainPod(name, 'another'));
        });
        const at = new Map<string, number>();
        const startedAt = world.fleet.elapsedSeconds;
        world.fleet.cluster.store.subscribe(({ object: { kind, metadata } }) => {
          const isAssigned = kind === 'Node' && metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] !== undefined;
          if (isAssigned && !at.has(metadata.name)) at.set(metadata.name, world.fleet.elapsedSeconds - startedAt);
        });
        const strategy = { ...DRAIN.strategy, minReadySeconds: 1, drain: { settleSeconds } };
        await world.create('pods', spec(1, { ...DRAIN, strategy }));
        await world.controller().run(150);
        expect(await reason(world)).toBe('Complete Ready: Complete');
        expect(at.get('n2'), `settleSeconds ${settleSeconds}`).toBeGreaterThan(from);
        expect(at.get('n2'), `settleSeconds ${settleSeconds}`).toBeLessThan(to);
      }
    });

    it('changes no node without the right to evict pods, and shows that in the status until it is granted', async () => {
      const world = await withPods();
      let mayEvict = false;
      const create: Cluster['create'] = async (object) => {
        const isReview = object.kind === 'SelfSubjectAccessReview' && JSON.stringify(object.spec).includes('"eviction"');
        return isReview ? { ...object, status: { allowed: mayEvict } } : world.cluster.create(object);
      };
      await world.create('pods', spec(1, DRAIN));
      const controller = world.controller({ cluster: { ...world.cluster, create } });
      await controller.run(20);
      expect(await reason(world)).toBe('Refused Stalled: PayloadRefused');
      const { conditions = [] } = await world.status('pods');
      expect(conditions.find(({ type }) => type === 'Stalled')?.message).toMatch(
        /^n1: .*the change needs a drained node, but the credentials may not cordon the node and evict its pods; n2: the change needs/,
      );
      expect([await world.assigned(), await podNames(world)]).toEqual([[], ['web-1', 'web-2']]);
      mayEvict = true;
      await controller.run(180);
      expect(await reason(world)).toBe('Complete Ready: Complete');
    });
  });

  it('counts a node as in progress until the watch shows its assignment, also when the payload changes meanwhile', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    await world.create('pods', spec(50, QUICK));
    const { items: old } = await world.cluster.list({ apiVersion: 'v1', kind: 'Node' });
    for (let i = 0; i < 3; i++) await controller.step();
    await world.patch('pods', {
      payload: { overlay: { maxPods: 60 } },
      strategy: { canary: { nodeSelector: { matchLabels: { pool: 'odd' } } } },
    });
    for (let i = 0; i < 3; i++) await controller.step(old);
    expect((await world.status('pods')).counts).toMatchObject({ inProgress: 1 });
    expect((await world.assigned()).length).toBe(1);
  });

  it('starts no node while paused, but ends those in progress', async () => {
    const world = await rolloutWorld(NODES);
    await world.create('pods', spec(50, QUICK));
    const controller = world.controller();
    await controller.run(5);
    await world.patch('pods', { paused: true });
    await controller.run(60);
    expect(Object.values(await world.maxPods()).filter((value) => value === 50)).toHaveLength(1);
    expect(await reason(world)).toBe('Paused Reconciling: Paused');
    await world.patch('pods', { paused: false });
    await controller.run(100);
    expect(await reason(world)).toBe('Complete Ready: Complete');
  });

  it('keeps its revision if an object with the same name and payload was deleted a moment ago', async () => {
    const world = await rolloutWorld(NODES);
    await world.create('pods', spec(50, QUICK));
    await world.controller().run(3);
    await world.cluster.delete(rolloutRef('pods'));
    await world.create('pods', spec(50, QUICK));
    await world.controller().run(3);
    const uid = (await world.cluster.get(rolloutRef('pods')))?.metadata.uid;
    const { items } = await world.cluster.list({ apiVersion: 'apps/v1', kind: 'ControllerRevision' });
    // The garbage collector deletes revisions of the previous object.
    expect(items.map(({ metadata }) => metadata.ownerReferences)).toEqual([[expect.objectContaining({ uid, name: 'pods' })]]);
  });

  it('gives a node that was created again its configuration first', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    await world.create('pods', spec(40, QUICK));
    await controller.run(100);
    const { labels } = (await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n4' }))?.metadata ?? {};
    await world.cluster.delete({ apiVersion: 'v1', kind: 'Node', name: 'n4' });
    await controller.run(5);
    await world.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n4', ...(labels === undefined ? {} : { labels }) } });
    const status = { nodeInfo: { kubeletVersion: 'v1.36.2' } };
    await world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n4' }, 'strategic', { status }, { subresource: 'status' });
    await world.fleet.setReady('n4', true);
    await world.patch('pods', { payload: { overlay: { maxPods: 50 } } });
    await world.fleet.pass(3);
    await controller.run(8);
    // The new node runs the revision that all nodes had, before any node is changed to the next one.
    expect(await world.maxPods()).toEqual(all(40));
    await controller.run(120);
    expect(await world.maxPods()).toEqual(all(50));
    expect(await reason(world)).toBe('Complete Ready: Complete');
  });

  it('refuses the younger of two objects that select the same node, by name', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    await world.create('older', spec(40, QUICK));
    await world.fleet.pass(2);
    await world.create('younger', { ...spec(50, QUICK), nodeSelector: { matchLabels: { pool: 'even' } } });
    await controller.run(100);
    expect(await world.maxPods()).toEqual(all(40));
    expect(await reason(world, 'older')).toBe('Complete Ready: Complete');
    expect(await reason(world, 'younger')).toBe('Refused Stalled: Conflict');
    const { conditions } = await world.status('younger');
    expect(conditions?.find(({ type }) => type === 'Stalled')?.message).toBe(
      'Node n1 and 1 more are selected by an older KubeletConfigRollout: older',
    );
    await world.cluster.delete(rolloutRef('older'));
    await controller.run(60);
    expect(await world.maxPods()).toEqual({ n1: 50, n2: 40, n3: 50, n4: 40 });
  });

  it('refuses a configuration that a kubelet would not accept, before anything is assigned', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    await world.create('pods', { ...spec(0, QUICK), payload: { overlay: { maxPodz: 120 } } });
    await controller.run(10);
    expect(await reason(world)).toBe('Refused Stalled: PayloadRefused');
    expect((await world.status('pods')).conditions?.find(({ type }) => type === 'Stalled')?.message).toMatch(/n1: .*maxPodz/);
    expect(await world.maxPods()).toEqual(all(0));
    // The repeated validation changes nothing.
    const { resourceVersion } = (await world.cluster.get(rolloutRef('pods')))?.metadata ?? {};
    await controller.run(150);
    expect((await world.cluster.get(rolloutRef('pods')))?.metadata).toMatchObject({ resourceVersion });
  });

  it('honours limits that are edited during the validation', async () => {
    const world = await rolloutWorld(NODES);
    let release = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    const kubeletconfig = effectiveConfiguration({}, { catalogue: await loadCatalogue(), minor: 36 });
    const getRaw: Cluster['getRaw'] = async () => {
      await isReleased;
      return { kubeletconfig };
    };
    const controller = world.controller({ cluster: { ...world.cluster, getRaw } });
    const strategy = { ...QUICK.strategy, allow: 'drain' };
    await world.create('pods', { ...spec(0), strategy, payload: { overlay: { topologyManagerScope: 'pod' } } });
    const validating = controller.step();
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    await world.patch('pods', { strategy: { allow: 'new-pods-only' } });
    const edited = controller.step();
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    release();
    await Promise.all([validating, edited]);
    await controller.run(30);
    expect(await reason(world)).toBe('Refused Stalled: PayloadRefused');
    expect(await world.assigned()).toEqual([]);
  });

  it('refuses a ConfigMap that does not exist or can be edited', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    const ref = { namespace: 'kubeletadm-system', name: 'own' };
    await world.create('pods', { ...spec(0, QUICK), payload: { configMapRef: ref } });
    await controller.run(2);
    expect(await reason(world)).toBe('Refused Stalled: PayloadMissing');
    const data = { kubelet: 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"maxPods": 30\n' };
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: ref, data };
    await world.cluster.create(map);
    await controller.run(12);
    expect(await reason(world)).toBe('Refused Stalled: PayloadMutable');
    await world.cluster.update({ ...map, immutable: true });
    await controller.run(110);
    expect(await reason(world)).toBe('Complete Ready: Complete');
    expect(await world.maxPods()).toEqual(all(30));
  });

  it('returns nodes to their local configuration when an object with deletionPolicy Reset is deleted', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    await world.create('pods', spec(40, { ...QUICK, deletionPolicy: 'Reset' }));
    await controller.run(100);
    await world.cluster.delete(rolloutRef('pods'));
    await controller.run(10);
    expect(await reason(world)).toBe('Deleting Reconciling: Resetting');
    await controller.run(100);
    expect(await world.maxPods()).toEqual(all(0));
    expect(await world.cluster.get(rolloutRef('pods'))).toBeNull();
    expect(world.fleet.mostUnavailable()).toBe(1);
  });

  it('resets no node of an older object when a younger one with the same ConfigMap is deleted', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    const ref = { namespace: 'kubeletadm-system', name: 'own' };
    const data = { kubelet: 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"maxPods": 30\n' };
    await world.cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: ref, data, immutable: true });
    const shared = { ...QUICK, nodeSelector: {}, payload: { configMapRef: ref } };
    await world.create('older', shared);
    await world.fleet.pass(2);
    await world.create('younger', { ...shared, deletionPolicy: 'Reset' });
    await controller.run(100);
    const restarts = new Map(world.fleet.restarts);
    await world.cluster.delete(rolloutRef('younger'));
    await controller.run(30);
    expect(await world.cluster.get(rolloutRef('younger'))).toBeNull();
    expect(await world.maxPods()).toEqual(all(30));
    expect(world.fleet.restarts).toEqual(restarts);
  });

  it('keeps the configuration of nodes when an object is deleted', async () => {
    const world = await rolloutWorld(NODES);
    const controller = world.controller();
    await world.create('pods', spec(40, QUICK));
    await controller.run(100);
    await world.cluster.delete(rolloutRef('pods'));
    await controller.run(20);
    expect(await world.maxPods()).toEqual(all(40));
  });
});
