import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { matchesLabels } from '../../kube/match-labels.ts';
import type { KubeObject } from '../../kube/object.ts';
import { entriesAt, numberAt, objectAt, objectsAt, textAt, valueAt } from '../../kubelet/documents/values.ts';
import type { DrainPod } from './drain-pod.ts';

/** A PodDisruptionBudget with the status that the disruption controller computed. */
export interface Budget {
  /** `NAMESPACE/NAME`. */
  readonly name: string;
  readonly namespace: string;
  /** `minAvailable 2`, `maxUnavailable 0`: the rule of its spec. */
  readonly rule: string;
  /** Evictions that the API server would allow now. */
  readonly disruptionsAllowed: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  /** `IfHealthyBudget` is the default. */
  readonly unhealthyPodEvictionPolicy: 'IfHealthyBudget' | 'AlwaysAllow';
  /** Why the controller cannot compute the status; null: it can. */
  readonly syncFailure: string | null;
  /** The status is that of an older spec, or was never computed. */
  readonly isStale: boolean;
  /** Labels that a covered pod has, by `matchLabels` of the selector. */
  readonly requiredLabels: readonly (readonly [string, string])[];
  readonly covers: (pod: Pick<DrainPod, 'namespace' | 'labels'>) => boolean;
}

/** @param object a PodDisruptionBudget of policy/v1, or of policy/v1beta1, whose empty selector covers no pod */
export function readBudget(object: KubeObject): Budget {
  const { name, namespace = '' } = object.metadata;
  const status = objectAt(object, 'status');
  const selector = valueAt(object, 'spec.selector');
  const synced = objectsAt(status, 'conditions').find(({ type }) => type === 'DisruptionAllowed');
  const isSyncFailed = synced?.status === 'False' && synced.reason === 'SyncFailed';
  const coversAny = isJsonObject(selector) && !(object.apiVersion === 'policy/v1beta1' && isEmptySelector(selector));
  return {
    name: `${namespace}/${name}`,
    namespace,
    rule: ruleOf(objectAt(object, 'spec')),
    disruptionsAllowed: numberAt(status, 'disruptionsAllowed') ?? 0,
    currentHealthy: numberAt(status, 'currentHealthy') ?? 0,
    desiredHealthy: numberAt(status, 'desiredHealthy') ?? 0,
    expectedPods: numberAt(status, 'expectedPods') ?? 0,
    unhealthyPodEvictionPolicy: textAt(object, 'spec.unhealthyPodEvictionPolicy') === 'AlwaysAllow' ? 'AlwaysAllow' : 'IfHealthyBudget',
    syncFailure: isSyncFailed ? textAt(synced, 'message') || 'SyncFailed' : null,
    isStale: (numberAt(status, 'observedGeneration') ?? -1) < (numberAt(object, 'metadata.generation') ?? 0),
    requiredLabels: entriesAt(object, 'spec.selector.matchLabels').flatMap(([key, value]) =>
      typeof value === 'string' ? [[key, value] as const] : [],
    ),
    covers: (pod) => coversAny && pod.namespace === namespace && matchesLabels(selector, pod.labels),
  };
}

function isEmptySelector({ matchLabels, matchExpressions }: JsonObject): boolean {
  const count = (value: unknown): number => (typeof value === 'object' && value !== null ? Object.keys(value).length : 0);
  return count(matchLabels) + count(matchExpressions) === 0;
}

function ruleOf({ minAvailable, maxUnavailable }: JsonObject): string {
  if (maxUnavailable !== undefined && maxUnavailable !== null) return `maxUnavailable ${String(maxUnavailable)}`;
  return minAvailable === undefined || minAvailable === null ? 'no minAvailable' : `minAvailable ${String(minAvailable)}`;
}

/**
 * Whether the API server asks a budget before it evicts the pod. Pods that are pending, finished or terminating are deleted
 * without one; a pod that is not Ready, if the policy of its budget permits it.
 * @see kubernetes/kubernetes pkg/registry/core/pod/storage/eviction.go (1.36)
 */
export function needsBudget(
  { phase, isTerminating, isReady }: Pick<DrainPod, 'phase' | 'isTerminating' | 'isReady'>,
  { unhealthyPodEvictionPolicy, currentHealthy, desiredHealthy }: Budget,
): boolean {
  if (isTerminating || phase === 'Pending' || phase === 'Succeeded' || phase === 'Failed') return false;
  if (isReady) return true;
  return !(unhealthyPodEvictionPolicy === 'AlwaysAllow' || (currentHealthy >= desiredHealthy && desiredHealthy > 0));
}

/** What a budget means for the eviction of pods. */
export interface BudgetVerdict {
  /**
   * `allows` evictions now · `waits` for pods to become Ready · `operator`: no eviction is allowed while the number of pods
   * stays, but the operator that controls them may move them after the cordon · `deadlock`: never allows one.
   */
  readonly state: 'allows' | 'waits' | 'operator' | 'deadlock';
  /** A clause, e.g. `it needs 2 healthy pods of 2 (minAvailable 2)`. */
  readonly why: string;
  /** How to free it, as a sentence without a full stop; empty: nothing to do. */
  readonly fix: string;
}

/** API groups of the controllers that only keep a number of pods. */
const COUNTING = /^(v1|apps\/.*|batch\/.*)$/;

/**
 * Tells a budget that never allows an eviction from one that has to wait.
 * @param pods covered pods of the cluster
 * @param scales replicas of controllers by UID: a StatefulSet that is replacing a pod has fewer pods for a moment
 */
export function assessBudget(budget: Budget, pods: readonly DrainPod[], scales: ReadonlyMap<string, number>): BudgetVerdict {
  const { rule, disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods, syncFailure, isStale, name } = budget;
  const jobs = [...new Set(pods.flatMap(({ controller }) => (controller?.kind === 'Job' ? [controller.name] : [])))];
  if (jobs.length > 0 && disruptionsAllowed === 0 && pods.every(({ controller }) => controller?.kind === 'Job')) {
    const why = `it allows none now (${rule}), and its pods belong to Jobs, whose pods finish`;
    return { state: 'waits', why, fix: `Wait until the Jobs have finished, or delete them: ${jobs.slice(0, 3).join(', ')}` };
  }
  // A failed computation does not update observedGeneration.
  if (syncFailure !== null) {
    const fix = `Give the pods of PodDisruptionBudget ${name} a controller with a scale, or set minAvailable to an integer`;
    return { state: 'deadlock', why: `its status cannot be computed: ${syncFailure}`, fix };
  }
  if (isStale) {
    const fix = 'Check that kube-controller-manager runs, whose disruption controller computes it';
    return { state: 'waits', why: 'its status is not computed yet', fix };
  }
  if (disruptionsAllowed > 0) return { state: 'allows', why: `it allows ${disruptionsAllowed} now`, fix: '' };
  const controllers = new Map(pods.flatMap(({ controller }) => (controller === null ? [] : [[controller.uid, controller]])));
  const declared = [...controllers.keys()].reduce((sum, uid) => sum + (scales.get(uid) ?? 0), 0);
  const expected = Math.max(expectedPods, declared);
  if (expected > 0 && desiredHealthy < expected) {
    const why = `it needs ${desiredHealthy} healthy pods and has ${currentHealthy} of ${expected} (${rule})`;
    return {
      state: 'waits',
      why,
      fix: `Wait until more pods of PodDisruptionBudget ${name} are Ready: kubectl get pods -n ${budget.namespace}`,
    };
  }
  const why =
    expected === 0
      ? `none of its pods has a controller with a scale (${rule})`
      : `it needs ${desiredHealthy} healthy pods of ${expected} (${rule})`;
  const owner = [...controllers.values()].find(({ apiVersion }) => !COUNTING.test(apiVersion));
  if (owner !== undefined) {
    const what = `${owner.kind} ${budget.namespace}/${owner.name}`;
    return {
      state: 'operator',
      why,
      fix: `If the operator of ${what} does not move the pod after the cordon, switch over with its own command`,
    };
  }
  return { state: 'deadlock', why, fix: freeingOf(budget, [...controllers.values()][0] ?? null) };
}

function freeingOf({ name, rule, namespace }: Budget, owner: DrainPod['controller']): string {
  const relax = rule.startsWith('maxUnavailable') ? 'raise maxUnavailable' : 'lower minAvailable';
  const budget = `${relax} of PodDisruptionBudget ${name}`;
  // A budget of maxUnavailable 0 permits no eviction at any scale.
  if (owner === null || /^(maxUnavailable 0%?|minAvailable 100%)$/.test(rule))
    return `${budget[0]?.toUpperCase()}${budget.slice(1)} for the maintenance`;
  return `Scale up ${owner.kind === 'ReplicaSet' ? 'the Deployment of ' : ''}${owner.kind} ${namespace}/${owner.name}, or ${budget}, for the maintenance`;
}
