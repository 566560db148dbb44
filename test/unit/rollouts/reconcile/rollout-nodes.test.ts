import { describe, expect, it } from 'vitest';
import { readRollout, rolloutRef } from '../../../../src/rollouts/api/rollout.ts';
import { MAX_LISTED } from '../../../../src/rollouts/api/schema.ts';
import { rolloutNodes } from '../../../../src/rollouts/reconcile/rollout-nodes.ts';
import { rolloutWorld } from '../../../support/rollout-world.ts';

/** The number of nodes by state, as the page and as the status of the rollout count them. */
async function numbersOf(world: Awaited<ReturnType<typeof rolloutWorld>>) {
  const object = await world.cluster.get(rolloutRef('edge'));
  const read = object === null ? { errors: [] } : readRollout(object);
  if (!('rollout' in read)) throw new Error(read.errors.join());
  const { items } = await world.cluster.list({ apiVersion: 'v1', kind: 'Node' });
  const nodes = rolloutNodes(read.rollout, items);
  const numberOf = (...states: readonly string[]): number => nodes.filter(({ state }) => states.includes(state)).length;
  const { updated, inProgress, pending, failed, notEnabled } = read.rollout.status.counts ?? {};
  return {
    shown: [numberOf('Updated'), numberOf('InProgress'), numberOf('Pending'), numberOf('Failed', 'Unreachable'), numberOf('NotEnabled')],
    counted: [updated, inProgress, pending, failed, notEnabled],
    canaries: nodes.flatMap(({ name, isCanary }) => (isCanary ? [name] : [])),
  };
}

describe('rolloutNodes', () => {
  it('agrees with the counts of the controller, also if the status omits nodes', async () => {
    const names = Array.from({ length: MAX_LISTED + 50 }, (_, i) => `n${String(i).padStart(3, '0')}`);
    const world = await rolloutWorld(names);
    const controller = world.controller();
    const strategy = { canary: { count: 1 }, maxUnavailable: 100, minReadySeconds: 1, until: 'Trial' };
    await world.create('edge', { nodeSelector: {}, payload: { overlay: { maxPods: 50 } }, strategy });
    const seen = new Set<string>();
    for (let i = 0; i < 40; i++) {
      await controller.run(1);
      const { shown, counted, canaries } = await numbersOf(world);
      expect(shown, `after ${i + 1} s`).toEqual(counted);
      seen.add(canaries.join());
      if (counted[0] === names.length) break;
    }
    expect((await world.status('edge')).phase).toBe('Complete');
    // The canary is known while the others wait.
    expect([...seen]).toEqual(['', 'n000']);
  });
});
