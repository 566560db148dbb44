import { describe, expect, it } from 'vitest';
import { isAppError } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { refOf } from '../../src/kube/object.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import { type RolloutWorld, rolloutWorld } from '../support/rollout-world.ts';

const NODES = ['n1', 'n2', 'n3'];
const SPEC: JsonObject = {
  nodeSelector: {},
  payload: { overlay: { maxPods: 50 } },
  strategy: { minReadySeconds: 2 },
  progressDeadlineSeconds: 60,
};

class Killed extends Error {}

/** A cluster whose client is killed at a write: before it is sent, or before its answer arrives. */
function killedAt(cluster: Cluster, at: number, when: 'before' | 'after'): Cluster {
  let writes = 0;
  const counted = <A extends readonly unknown[], R>(write: (...words: A) => Promise<R>) => {
    return async (...words: A): Promise<R> => {
      writes++;
      if (writes > at || (writes === at && when === 'before')) throw new Killed();
      const answer = await write(...words);
      if (writes === at) throw new Killed();
      return answer;
    };
  };
  return {
    ...cluster,
    create: counted(cluster.create),
    update: counted(cluster.update),
    patch: counted(cluster.patch),
    delete: counted(cluster.delete),
    evict: counted(cluster.evict),
  };
}

/** Runs a controller until it is killed. @returns whether it was */
async function runUntilKilled(world: RolloutWorld, cluster: Cluster, seconds: number): Promise<boolean> {
  try {
    await world.controller({ cluster }).run(seconds);
    return false;
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    return true;
  }
}

describe('a controller that is killed at a write', () => {
  it.each(['before', 'after'] as const)('leads to the same end, %s each write', async (when) => {
    let points = 0;
    for (let at = 1; ; at++) {
      const world = await rolloutWorld(NODES);
      await world.create('pods', SPEC);
      const isKilled = await runUntilKilled(world, killedAt(world.cluster, at, when), 60);
      await world.controller().run(60);
      expect(await world.maxPods(), `killed ${when} write ${at}`).toEqual({ n1: 50, n2: 50, n3: 50 });
      expect((await world.status('pods')).phase).toBe('Complete');
      expect(world.fleet.mostUnavailable()).toBe(1);
      expect([...world.fleet.restarts.values()]).toEqual([1, 1, 1]);
      if (!isKilled) break;
      points++;
    }
    expect(points).toBeGreaterThan(12);
  });
});

describe('a controller that is killed at a write while gates run', () => {
  const job = { namespace: 'default', template: { spec: { template: { spec: { restartPolicy: 'Never', containers: [] } } } } };
  const gates = [
    { name: 'first', after: 'Canary', job },
    { name: 'each', job },
  ];

  it.each(['before', 'after'] as const)('creates one Job for each gate and batch, %s each write', async (when) => {
    let points = 0;
    for (let at = 1; ; at++) {
      const world = await rolloutWorld(NODES);
      const list = async () => (await world.cluster.list({ apiVersion: 'batch/v1', kind: 'Job' })).items;
      // Each Job runs for some seconds.
      for (let second = 0; second < 300; second += 5)
        world.fleet.plan.set(second, async () => {
          for (const created of await list()) {
            const status = { conditions: [{ type: 'Complete', status: 'True' }] };
            await world.cluster.patch(refOf(created), 'merge', { status }, { subresource: 'status' });
          }
        });
      await world.create('pods', { ...SPEC, strategy: { minReadySeconds: 2, gates } });
      const isKilled = await runUntilKilled(world, killedAt(world.cluster, at, when), 120);
      await world.controller().run(120);
      const ran = (await list()).map(
        ({ metadata }) => `${metadata.labels?.['kubeletadm.dev/gate']} ${metadata.annotations?.['kubeletadm.dev/batch']}`,
      );
      expect(ran.toSorted(), `killed ${when} write ${at}`).toEqual(['each 1', 'each 2', 'each 3', 'first 1']);
      expect(await world.maxPods()).toEqual({ n1: 50, n2: 50, n3: 50 });
      const { phase, gates: results = [] } = await world.status('pods');
      expect([phase, results.map(({ state }) => state)]).toEqual(['Complete', ['Passed', 'Passed', 'Passed', 'Passed']]);
      expect(world.fleet.mostUnavailable()).toBe(1);
      if (!isKilled) break;
      points++;
    }
    expect(points).toBeGreaterThan(20);
  });
});

describe('two controllers', () => {
  /** Holds the next request that matches, until it is released. */
  function holding(cluster: Cluster, matches: (text: string) => boolean) {
    let release = (): void => undefined;
    let isHeld = false;
    const patch: Cluster['patch'] = async (ref, ...words) => {
      if (!isHeld && matches(`${ref.kind} ${ref.name} ${JSON.stringify(words)}`)) {
        isHeld = true;
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
      return cluster.patch(ref, ...words);
    };
    return { cluster: { ...cluster, patch }, isHeld: () => isHeld, release: () => release() };
  }

  async function turns(): Promise<void> {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  }

  it('reject an assignment that the first one sent before it was stopped, after the payload has changed', async () => {
    const world = await rolloutWorld(NODES);
    await world.create('pods', SPEC);
    const held = holding(world.cluster, (text) => text.startsWith('Node ') && text.includes('config-source'));
    const first = world.controller({ cluster: held.cluster, identity: 'first' });
    await first.step();
    const stopped = first.step().catch((error: unknown) => error);
    await turns();
    expect(held.isHeld()).toBe(true);
    const recorded = (await world.status('pods')).nodes?.filter(({ state }) => state === 'InProgress') ?? [];
    expect(recorded.map(({ name }) => name)).toEqual(['n1']);
    // Its Lease expires while it is stopped. The operator deletes the rollout and creates another one.
    first.isLeader = true;
    await world.cluster.delete(rolloutRef('pods'));
    await world.create('other', { ...SPEC, payload: { overlay: { maxPods: 70 } } });
    const second = world.controller({ identity: 'second' });
    await second.run(40);
    expect(await world.maxPods()).toEqual({ n1: 70, n2: 70, n3: 70 });
    first.isLeader = false;
    held.release();
    await stopped;
    await second.run(10);
    expect(await world.maxPods()).toEqual({ n1: 70, n2: 70, n3: 70 });
    expect([...world.fleet.restarts.values()]).toEqual([1, 1, 1]);
  });

  it('create one Job for a gate, if the first one sends its request after the second one has completed the gate', async () => {
    const world = await rolloutWorld(NODES);
    const template = { spec: { template: { spec: { restartPolicy: 'Never', containers: [] } } } };
    await world.create('pods', {
      ...SPEC,
      strategy: { minReadySeconds: 2, gates: [{ name: 'smoke', job: { namespace: 'default', template } }] },
    });
    let release = (): void => undefined;
    let isHeld = false;
    const create: Cluster['create'] = async (object) => {
      if (object.kind === 'Job') {
        isHeld = true;
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
      return world.cluster.create(object);
    };
    const first = world.controller({ cluster: { ...world.cluster, create }, identity: 'first' });
    let stopped: Promise<unknown> = Promise.resolve();
    for (let i = 0; i < 30 && !isHeld; i++) {
      await world.fleet.pass(1);
      stopped = first.step().catch((error: unknown) => error);
      await turns();
    }
    expect(isHeld).toBe(true);
    const jobs = async () => (await world.cluster.list({ apiVersion: 'batch/v1', kind: 'Job' })).items;
    const second = world.controller({ identity: 'second' });
    await second.run(5);
    const [job] = await jobs();
    if (job === undefined) throw new Error('the second controller has created no Job');
    const status = { conditions: [{ type: 'Complete', status: 'True' }] };
    await world.cluster.patch(refOf(job), 'merge', { status }, { subresource: 'status' });
    await second.run(3);
    first.isLeader = false;
    release();
    await stopped;
    expect((await jobs()).filter(({ metadata }) => metadata.annotations?.['kubeletadm.dev/batch'] === '1')).toHaveLength(1);
    expect((await world.status('pods')).gates).toMatchObject([
      { state: 'Passed', batch: 1 },
      ...((await world.status('pods')).gates?.slice(1) ?? []),
    ]);
  });

  it('never change more nodes than permitted, if the first one sends its assignment after the second one took over', async () => {
    const world = await rolloutWorld(NODES);
    await world.create('pods', SPEC);
    const held = holding(world.cluster, (text) => text.startsWith('Node ') && text.includes('config-source'));
    const first = world.controller({ cluster: held.cluster, identity: 'first' });
    await first.step();
    const stopped = first.step().catch((error: unknown) => error);
    await turns();
    const second = world.controller({ identity: 'second' });
    await second.step();
    const versionBefore = (await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' }))?.metadata.resourceVersion;
    first.isLeader = false;
    held.release();
    await stopped;
    // The late request was rejected: the Node is as the second controller left it.
    expect((await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' }))?.metadata.resourceVersion).toBe(versionBefore);
    await second.run(50);
    expect(await world.maxPods()).toEqual({ n1: 50, n2: 50, n3: 50 });
    expect(world.fleet.mostUnavailable()).toBe(1);
    expect([...world.fleet.restarts.values()]).toEqual([1, 1, 1]);
  });

  it('reject the record of a start that the first one sent before it was stopped', async () => {
    const world = await rolloutWorld(NODES);
    await world.create('pods', SPEC);
    const held = holding(world.cluster, (text) => text.startsWith('KubeletConfigRollout') && text.includes('"InProgress"'));
    const first = world.controller({ cluster: held.cluster, identity: 'first' });
    await first.step();
    const stopped = first.step().catch((error: unknown) => error);
    await turns();
    expect(held.isHeld()).toBe(true);
    const second = world.controller({ identity: 'second' });
    await second.run(4);
    held.release();
    const error = await stopped;
    expect(error === undefined || isAppError(error)).toBe(true);
    expect((await world.status('pods')).leader).toBe('second');
    await second.run(50);
    expect(await world.maxPods()).toEqual({ n1: 50, n2: 50, n3: 50 });
    expect(world.fleet.mostUnavailable()).toBe(1);
  });
});
