import type { JsonObject } from '../../../src/base/json.ts';
import { matchesLabels } from '../../../src/kube/match-labels.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import type { ResourceType } from '../../../src/kube/resources.ts';
import { itemsOf, memberOf, textOf } from '../members.ts';
import type { Store } from '../store.ts';
import { timestamp } from '../timestamp.ts';
import { typeOf } from './controller.ts';

const PODS = typeOf('v1', 'Pod');
export const BUDGETS = typeOf('policy/v1', 'PodDisruptionBudget');
const SCALED: Readonly<Record<string, ResourceType>> = {
  ReplicaSet: typeOf('apps/v1', 'ReplicaSet'),
  StatefulSet: typeOf('apps/v1', 'StatefulSet'),
};
const WATCHED: ReadonlySet<string> = new Set(['Pod', 'PodDisruptionBudget', ...Object.keys(SCALED)]);
/** An evicted pod that is not deleted after this time counts again. */
const DELETION_MS = 120_000;

/**
 * Computes the status of PodDisruptionBudgets at each change of a pod, a budget or a controller with a scale.
 * @returns stops it
 * @see kubernetes/kubernetes pkg/controller/disruption/disruption.go (1.36)
 */
export function startDisruption({ store, now }: { readonly store: Store; readonly now: () => Date }): () => void {
  return store.subscribe(({ resource, object }) => {
    if (WATCHED.has(resource.kind)) for (const budget of store.list(BUDGETS, object.metadata.namespace)) sync(store, budget, now());
  });
}

/** The budgets of a pod. */
export function budgetsOf(store: Store, { metadata }: KubeObject): readonly KubeObject[] {
  return store.list(BUDGETS, metadata.namespace).filter((budget) => matchesLabels(selectorOf(budget), metadata.labels ?? {}));
}

function selectorOf(budget: KubeObject): JsonObject {
  const { selector } = memberOf(budget, 'spec');
  // Without a selector, a budget covers no pod.
  return selector === undefined || selector === null
    ? { matchExpressions: [{ operator: 'Nothing' }] }
    : memberOf(memberOf(budget, 'spec'), 'selector');
}

function sync(store: Store, budget: KubeObject, now: Date): void {
  const selector = selectorOf(budget);
  const pods = store.list(PODS, budget.metadata.namespace).filter(({ metadata }) => matchesLabels(selector, metadata.labels ?? {}));
  const old = memberOf(budget, 'status');
  const isPresent = (name: string): boolean =>
    pods.some(({ metadata }) => metadata.name === name && metadata.deletionTimestamp === undefined);
  const isRecent = (time: unknown): boolean => now.getTime() - Date.parse(String(time)) < DELETION_MS;
  const disruptedPods = Object.fromEntries(
    Object.entries(memberOf(old, 'disruptedPods')).filter(([name, time]) => isPresent(name) && isRecent(time)),
  );
  const currentHealthy = pods.filter((pod) => isHealthy(pod) && !Object.hasOwn(disruptedPods, pod.metadata.name)).length;
  const observedGeneration = Number(budget.metadata.generation ?? 0);
  const expected = expectedPods(store, budget, pods);
  const failed = typeof expected === 'string';
  const { expectedPods: count, desiredHealthy } = failed ? { expectedPods: 0, desiredHealthy: 0 } : expected;
  const disruptionsAllowed = failed || count === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  const isAllowed = disruptionsAllowed > 0;
  const known = itemsOf(old, 'conditions').find(({ type }) => type === 'DisruptionAllowed');
  const status = isAllowed ? 'True' : 'False';
  const condition = {
    type: 'DisruptionAllowed',
    status,
    reason: failed ? 'SyncFailed' : isAllowed ? 'SufficientPods' : 'InsufficientPods',
    message: failed ? expected : '',
    observedGeneration,
    lastTransitionTime: known?.status === status ? (known.lastTransitionTime ?? timestamp(now)) : timestamp(now),
  };
  const counts = failed ? {} : { currentHealthy, desiredHealthy, expectedPods: count };
  store.put(BUDGETS, {
    ...budget,
    status: { ...old, ...counts, disruptionsAllowed, disruptedPods, observedGeneration, conditions: [condition] },
  });
}

function isHealthy(pod: KubeObject): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  return isPodReady(pod);
}

export function isPodReady(pod: KubeObject): boolean {
  return itemsOf(memberOf(pod, 'status'), 'conditions').some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** The expected pods and the number that must be healthy; a text: why they cannot be computed. */
function expectedPods(
  store: Store,
  budget: KubeObject,
  pods: readonly KubeObject[],
): { readonly expectedPods: number; readonly desiredHealthy: number } | string {
  const { minAvailable, maxUnavailable } = memberOf(budget, 'spec');
  if (typeof minAvailable === 'number') return { expectedPods: pods.length, desiredHealthy: minAvailable };
  const scales = new Map<string, number>();
  for (const pod of pods) {
    const owner = itemsOf(pod.metadata, 'ownerReferences').find(({ controller }) => controller === true);
    if (owner === undefined) continue;
    const type = SCALED[textOf(owner, 'kind')];
    const object = type === undefined ? null : store.get(type, pod.metadata.namespace ?? '', textOf(owner, 'name'));
    if (object === null) return `found no controllers for pod "${pod.metadata.name}"`;
    scales.set(object.metadata.uid ?? '', Number(memberOf(object, 'spec').replicas ?? 1));
  }
  const count = [...scales.values()].reduce((sum, scale) => sum + scale, 0);
  if (maxUnavailable !== undefined) return { expectedPods: count, desiredHealthy: Math.max(0, count - scaled(maxUnavailable, count)) };
  return { expectedPods: count, desiredHealthy: scaled(minAvailable, count) };
}

/** A number or a percentage, rounded up. */
function scaled(value: unknown, count: number): number {
  return typeof value === 'string' && value.endsWith('%') ? Math.ceil((count * Number.parseInt(value, 10)) / 100) : Number(value ?? 0);
}
