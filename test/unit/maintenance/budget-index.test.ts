import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { readBudget } from '../../../src/maintenance/forecast/budget.ts';
import { budgetIndex } from '../../../src/maintenance/forecast/budget-index.ts';

const NAMESPACES = ['default', 'shop', 'shop-a'];
const KEYS = ['app', 'tier', 'a/b', 'constructor'];
const VALUES = ['', 'x', 'y', 'x=y'];

/** Numbers from 0 to 1 (mulberry32), equal for equal seeds. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function randomWorld(seed: number) {
  const random = randomNumbers(seed);
  const oneOf = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const many = <T>(most: number, make: (i: number) => T): readonly T[] =>
    Array.from({ length: Math.floor(random() * (most + 1)) }, (_, i) => make(i));
  const labels = (): Record<string, string> => Object.fromEntries(many(3, () => [oneOf(KEYS), oneOf(VALUES)]));
  const expression = (): JsonObject => ({
    key: oneOf(KEYS),
    operator: oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist']),
    values: many(2, () => oneOf(VALUES)),
  });
  const selector = (): JsonObject => ({
    ...(random() < 0.7 ? { matchLabels: labels() } : {}),
    ...(random() < 0.3 ? { matchExpressions: many(2, expression) } : {}),
  });
  const budget = (i: number): KubeObject => ({
    apiVersion: oneOf(['policy/v1', 'policy/v1beta1']),
    kind: 'PodDisruptionBudget',
    metadata: { name: `budget-${i}`, namespace: oneOf(NAMESPACES) },
    spec: random() < 0.1 ? {} : { selector: selector() },
  });
  return {
    budgets: many(30, budget).map(readBudget),
    pods: many(40, () => ({ namespace: oneOf(NAMESPACES), labels: labels() })),
  };
}

describe('budgetIndex', () => {
  it('finds the budgets that a comparison of each budget with each pod finds, in the same order', () => {
    const counts = { none: 0, one: 0, several: 0 };
    for (let seed = 1; seed <= 200; seed++) {
      const { budgets, pods } = randomWorld(seed);
      const coveringOf = budgetIndex(budgets);
      for (const pod of pods) {
        const plain = budgets.filter((budget) => budget.covers(pod)).map(({ name }) => name);
        expect(
          coveringOf(pod).map(({ name }) => name),
          `seed ${seed}, ${JSON.stringify(pod)}`,
        ).toEqual(plain);
        counts[plain.length === 0 ? 'none' : plain.length === 1 ? 'one' : 'several']++;
      }
    }
    expect(
      Object.values(counts).every((count) => count > 400),
      JSON.stringify(counts),
    ).toBe(true);
  });
});
