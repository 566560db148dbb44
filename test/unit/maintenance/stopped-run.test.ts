import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { LIFECYCLE_CONDITIONS } from '../../../src/kube/node-conditions.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { whileDrained } from '../../../src/maintenance/drain/while-drained.ts';
import { cordonOwner, isCordoned } from '../../../src/maintenance/node-hold.ts';
import { drainBudget, drainNode as node, drainPod as pod, scaled } from '../../support/drain-objects.ts';
import { drainWorld } from '../../support/drain-world.ts';
import { virtualClock } from '../../support/virtual-clock.ts';

const OBJECTS = [
  ...[node('n1'), node('n2'), node('n3', { unschedulable: true }), scaled('ReplicaSet/web', 2), pod('web-0', 'n1'), pod('web-1', 'n2')],
  drainBudget('pdb', 'web', { minAvailable: 1 }),
];
const POLICY = { isAllowed: true, isForced: false, timeoutMs: 300_000, settleMs: 10_000 };
const CHANGE = { node: 'n1', impact: 'drain', isRestored: () => true } as const;
const CHANGE_MS = 30_000;

/** A process that is stopped (SIGSTOP) right before or after its n-th request, and continues (SIGCONT) later. */
function stoppable(ports: ReturnType<typeof drainWorld>, at: number, isAfter: boolean) {
  let requests = 0;
  let wake: () => void = () => undefined;
  let stopped: Promise<void> | null = null;
  let hasStopped: () => void = () => undefined;
  const stops = new Promise<void>((resolve) => {
    hasStopped = resolve;
  });
  const stop = (): void => {
    stopped = new Promise((resolve) => {
      wake = resolve;
    });
    hasStopped();
  };
  const guarded = (call: (...words: never[]) => unknown) =>
    (async (...words: never[]) => {
      await stopped;
      const isLast = ++requests === at;
      if (isLast && !isAfter) stop();
      await stopped;
      const result = await call(...words);
      if (isLast && isAfter) stop();
      await stopped;
      return result;
    }) as never;
  const { get, list, patch, evict, create } = ports.cluster;
  const calls = { get: guarded(get), list: guarded(list), patch: guarded(patch), evict: guarded(evict), create: guarded(create) };
  const sleep: typeof ports.clock.sleep = async (ms, signal) => {
    await ports.clock.sleep(ms, signal);
    await stopped;
  };
  const clock = { ...ports.clock, sleep };
  return {
    ports: { ...ports, clock, run: { ...ports.run, clock }, cluster: { ...ports.cluster, ...calls } as Cluster },
    stops,
    continue: () => {
      stopped = null;
      wake();
    },
  };
}

async function stateOf(cluster: Cluster, name: string) {
  const found = (await cluster.get({ apiVersion: 'v1', kind: 'Node', name })) as KubeObject;
  const { conditions } = found.status as unknown as { conditions: readonly { type: string }[] };
  const lifecycle = conditions.flatMap(({ type }) => LIFECYCLE_CONDITIONS.filter((known) => known === type));
  return { isCordoned: isCordoned(found), owner: cordonOwner(found)?.run ?? null, lifecycle };
}

/** Stops the first run at a request for longer than its claim, while a second run changes the node. False: it ended before. */
async function stopAt(at: number, isAfter: boolean, continues: 'during' | 'after'): Promise<boolean> {
  const world = drainWorld(OBJECTS, { now: virtualClock() });
  const first = stoppable(world, at, isAfter);
  const started: string[] = [];
  const change =
    (run: string, more: () => Promise<void> = async () => undefined) =>
    async () => {
      started.push(run);
      await world.clock.sleep(CHANGE_MS);
      await more();
    };
  const context = `stopped ${isAfter ? 'after' : 'before'} request ${at}, continues ${continues} the change of the second run`;
  let hasEnded = false;
  const running = whileDrained(first.ports, CHANGE, POLICY, change('run-1'))
    .catch((error: unknown) => expect(error, context).toBeInstanceOf(AppError))
    .finally(() => {
      hasEnded = true;
    });
  await Promise.race([running, first.stops]);
  if (hasEnded) return false;
  const second = { ...world, run: { ...world.run, run: 'run-2', self: { ...world.run.self, machine: 'host-boot', id: 9 } } };
  const meets = async (): Promise<void> => {
    if (continues === 'after') return;
    first.continue();
    await running;
    expect(await stateOf(world.cluster, 'n1'), context).toMatchObject({ isCordoned: true, owner: 'run-2' });
  };
  await whileDrained(second, CHANGE, POLICY, change('run-2', meets));
  if (continues === 'after') {
    // The second run leaves the node in service, also after steps of the first one.
    expect(await stateOf(world.cluster, 'n1'), context).toEqual({ isCordoned: false, owner: null, lifecycle: [] });
    first.continue();
    await running;
  }
  expect(started, context).toContain('run-2');
  expect(await stateOf(world.cluster, 'n1'), context).toEqual({ isCordoned: false, owner: null, lifecycle: [] });
  expect(await stateOf(world.cluster, 'n3'), context).toEqual({ isCordoned: true, owner: null, lifecycle: [] });
  return true;
}

describe('a run that is stopped for longer than its claim, while another run takes the node over', () => {
  it.each([
    [false, 'during'],
    [true, 'during'],
    [false, 'after'],
    [true, 'after'],
  ] as const)('removes no cordon of the other run, and leaves none (after the request: %s; continues %s)', async (isAfter, continues) => {
    let at = 1;
    while (await stopAt(at, isAfter, continues)) at++;
    expect(at).toBeGreaterThan(20);
  });
});
