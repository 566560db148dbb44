import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AssignRules, nextRolloutStep, planBatches, type RolloutNode, type RolloutStage } from '../../../src/dynamic/rollout.ts';
import { numberOfRuns } from '../../support/thorough.ts';

/** `a b! c+ d~ e- f?`: waiting, down, updated, in progress, failed, unreachable. */
function nodes(text: string): readonly RolloutNode[] {
  const stages: Readonly<Record<string, RolloutStage>> = { '+': 'updated', '~': 'in-progress', '-': 'failed', '?': 'unreachable' };
  return text.split(' ').map((word) => ({
    name: word.slice(0, 1),
    stage: stages[word.slice(1, 2)] ?? 'waiting',
    isReady: !word.includes('!'),
  }));
}

describe('the next step of a rollout', () => {
  it.each<[string, Omit<AssignRules, 'direction'>, ReturnType<typeof nextRolloutStep>]>([
    ['a b c', { canary: 1, maxUnavailable: 2 }, { kind: 'begin', names: ['a'], isCanary: true }],
    ['a~ b c', { canary: 1, maxUnavailable: 2 }, { kind: 'wait' }],
    ['a+ b c', { canary: 1, maxUnavailable: 2 }, { kind: 'begin', names: ['b', 'c'], isCanary: false }],
    ['a+ b~ c+', { canary: 1, maxUnavailable: 2 }, { kind: 'wait' }],
    ['a+ b- c', { canary: 1, maxUnavailable: 2 }, { kind: 'stop', failed: ['b'] }],
    ['a- b~ c', { canary: 0, maxUnavailable: 2 }, { kind: 'wait' }],
    ['a+ b+ c+', { canary: 1, maxUnavailable: 1 }, { kind: 'done' }],
    // Nodes that are down use up maxUnavailable, also after their update.
    ['a+! b c d', { canary: 1, maxUnavailable: 2 }, { kind: 'begin', names: ['b'], isCanary: false }],
    ['a+! b! c d', { canary: 1, maxUnavailable: 2 }, { kind: 'blocked', down: ['a', 'b'] }],
    // Nodes that are down are updated last, together, and are never canaries.
    ['a! b c', { canary: 1, maxUnavailable: 3 }, { kind: 'begin', names: ['b'], isCanary: true }],
    ['a! b+ c! d+', { canary: 1, maxUnavailable: 1 }, { kind: 'begin', names: ['a', 'c'], isCanary: false }],
    ['a?! b+', { canary: 1, maxUnavailable: 1 }, { kind: 'done' }],
    // Nodes updated by an earlier run replace the canary.
    ['a+ b+ c d', { canary: 2, maxUnavailable: 1 }, { kind: 'begin', names: ['c'], isCanary: false }],
    ['a b c', { canary: 3, maxUnavailable: 2 }, { kind: 'begin', names: ['a', 'b'], isCanary: true }],
    ['a b c', { canary: 0, maxUnavailable: 9 }, { kind: 'begin', names: ['a', 'b', 'c'], isCanary: false }],
  ])('of %s with %j', (text, rules, step) => {
    expect(nextRolloutStep(nodes(text), { ...rules, direction: 'out' })).toEqual(step);
  });

  it.each<[string, number, ReturnType<typeof nextRolloutStep>]>([
    ['a b! c! d', 1, { kind: 'begin', names: ['b', 'c'], isCanary: false }],
    ['a b+ c- d', 1, { kind: 'begin', names: ['a'], isCanary: false }],
    ['a b?! c d', 2, { kind: 'begin', names: ['a'], isCanary: false }],
    ['a b?! c d', 1, { kind: 'blocked', down: ['b'] }],
    ['a- b+', 1, { kind: 'done' }],
  ])('revert of %s, %d at a time', (text, maxUnavailable, step) => {
    expect(nextRolloutStep(nodes(text), { canary: 0, maxUnavailable, direction: 'back' })).toEqual(step);
  });
});

describe('the batches of a rollout', () => {
  it('are a canary, then up to maxUnavailable nodes', () => {
    const { batches } = planBatches(nodes('a b c d e'), { canary: 1, maxUnavailable: 2, direction: 'out' });
    expect(batches.map(({ names }) => names.join(''))).toEqual(['a', 'bc', 'de']);
    expect(batches.map(({ isCanary }) => isCanary)).toEqual([true, false, false]);
  });

  it('are smaller by the number of nodes that are down, which come last', () => {
    const { batches, blocked } = planBatches(nodes('a b! c d e'), { canary: 1, maxUnavailable: 3, direction: 'out' });
    expect(batches.map(({ names, isDown }) => `${names.join('')}${isDown ? '!' : ''}`)).toEqual(['a', 'cd', 'e', 'b!']);
    expect(blocked).toEqual([]);
  });

  it('name the nodes that block the next batch', () => {
    expect(planBatches(nodes('a! b! c'), { canary: 1, maxUnavailable: 2, direction: 'out' })).toEqual({ batches: [], blocked: ['a', 'b'] });
  });
});

describe('any rollout', () => {
  const happening = fc.record({
    /** Index of the affected node. */
    node: fc.nat(),
    what: fc.constantFrom('pass', 'pass', 'pass', 'fail', 'down', 'up', 'nothing'),
  });

  it('respects maxUnavailable, starts each node once, starts none after a failure, and finishes', () => {
    const rules = fc.record({
      canary: fc.nat(5),
      maxUnavailable: fc.integer({ min: 1, max: 6 }),
      direction: fc.constantFrom('out' as const, 'back' as const),
    });
    const start = fc.array(fc.boolean(), { minLength: 1, maxLength: 25 });
    fc.assert(
      fc.property(start, rules, fc.array(happening, { maxLength: 120 }), (readiness, rule, story) => {
        let now: RolloutNode[] = readiness.map((isReady, i) => ({ name: `n${i}`, stage: 'waiting', isReady }));
        const started = new Set<string>();
        let isStopped = false;
        const set = (index: number, change: Partial<RolloutNode>): void => {
          now = now.map((node, i) => (i === index ? { ...node, ...change } : node));
        };
        const act = (): void => {
          const step = nextRolloutStep(now, rule);
          if (step.kind === 'stop') isStopped = true;
          if (step.kind !== 'begin') return;
          expect(isStopped).toBe(false);
          expect(now.some(({ stage }) => (stage === 'failed' && rule.direction === 'out') || stage === 'in-progress')).toBe(false);
          expect(step.names.length).toBeGreaterThan(0);
          const down = now.filter(({ isReady }) => !isReady).length;
          const taken = now.filter(({ name, isReady }) => isReady && step.names.includes(name)).length;
          if (taken > 0) expect(down + taken).toBeLessThanOrEqual(rule.maxUnavailable);
          const passed = now.filter(({ stage }) => stage === 'updated').length;
          if (taken > 0 && passed < rule.canary) expect(passed + step.names.length).toBeLessThanOrEqual(rule.canary);
          for (const name of step.names) {
            expect(started.has(name)).toBe(false);
            started.add(name);
            set(Number(name.slice(1)), { stage: 'in-progress' });
          }
        };
        const settle = (index: number, well: boolean): void => {
          const node = now[index] as RolloutNode;
          if (node.stage !== 'in-progress') return;
          set(index, well ? { stage: 'updated', isReady: true } : { stage: node.isReady ? 'failed' : 'unreachable' });
        };
        for (const { node, what } of story) {
          act();
          const index = node % now.length;
          if (what === 'pass' || what === 'fail') settle(index, what === 'pass');
          if (what === 'down' || what === 'up') set(index, { isReady: what === 'up' });
        }
        // Without further failures the rollout finishes, and starts every node unless it was stopped.
        for (let i = 0; i < 200; i++) {
          act();
          for (const index of now.keys()) {
            settle(index, true);
            if (now[index]?.stage === 'waiting' || now[index]?.stage === 'updated') set(index, { isReady: true });
          }
        }
        const last = nextRolloutStep(now, rule);
        expect(last.kind === 'done' || last.kind === 'stop' || last.kind === 'blocked').toBe(true);
        if (last.kind === 'done') expect(started.size).toBe(now.length);
        if (last.kind === 'blocked') expect(now.filter(({ isReady }) => !isReady).length).toBeGreaterThanOrEqual(rule.maxUnavailable);
      }),
      { numRuns: numberOfRuns(500) },
    );
  });

  it('runs as planned without failures', () => {
    const rules = fc.record({ canary: fc.nat(5), maxUnavailable: fc.integer({ min: 1, max: 6 }), direction: fc.constant('out' as const) });
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 25 }), rules, (readiness, rule) => {
        const all = readiness.map((isReady, i): RolloutNode => ({ name: `n${i}`, stage: 'waiting', isReady }));
        const { batches, blocked } = planBatches(all, rule);
        const planned = batches.flatMap(({ names }) => names);
        expect(new Set(planned).size).toBe(planned.length);
        const down = all.filter(({ isReady }) => !isReady).length;
        expect(planned.length === all.length || blocked.length === down).toBe(true);
        for (const { names, isDown } of batches) if (!isDown) expect(names.length + down).toBeLessThanOrEqual(rule.maxUnavailable);
      }),
      { numRuns: numberOfRuns(300) },
    );
  });
});
