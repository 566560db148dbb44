import { groupBy } from '../../base/group-by.ts';
import type { Budget } from './budget.ts';
import type { DrainPod } from './drain-pod.ts';

/**
 * Finds the budgets that cover a pod. A budget whose selector has `matchLabels` is compared only with pods of its namespace
 * that have one of these labels.
 * @returns a function that gives the covering budgets of a pod, in the order of `budgets`
 */
export function budgetIndex(budgets: readonly Budget[]): (pod: Pick<DrainPod, 'namespace' | 'labels'>) => readonly Budget[] {
  const position = new Map(budgets.map((budget, i) => [budget, i]));
  const keysOf = ({ namespace, requiredLabels }: Budget): readonly string[] => requiredLabels.map((label) => keyOf(namespace, label));
  const sharing = groupBy(budgets.flatMap(keysOf), (key) => key);
  // A label that all budgets of a namespace require, such as the name of a team, would exclude no budget.
  const rarestKey = (budget: Budget): string =>
    keysOf(budget).toSorted((a, b) => (sharing.get(a)?.length ?? 0) - (sharing.get(b)?.length ?? 0))[0] ?? budget.namespace;
  const byKey = groupBy(budgets, rarestKey);
  return (pod) => {
    const keys = [pod.namespace, ...Object.entries(pod.labels).map((label) => keyOf(pod.namespace, label))];
    const covering = keys.flatMap((key) => byKey.get(key)?.filter((budget) => budget.covers(pod)) ?? []);
    return covering.toSorted((a, b) => (position.get(a) ?? 0) - (position.get(b) ?? 0));
  };
}

/** Namespaces and keys of labels contain no space and no `=`. */
function keyOf(namespace: string, [key, value]: readonly [string, string]): string {
  return `${namespace} ${key}=${value}`;
}
