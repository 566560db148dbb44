import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import { BUDGETS, budgetsOf, isPodReady } from './controllers/disruption.ts';
import { itemsOf, memberOf, textOf } from './members.ts';
import type { ObjectKey, Registry, WriteOptions } from './registry.ts';
import { badRequest, StatusError } from './status.ts';
import type { Store } from './store.ts';
import { timestamp } from './timestamp.ts';

const PODS = resourceOf('v1', 'Pod') as ResourceType;
const SUCCESS: JsonObject = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/**
 * The eviction subresource of a pod: deletes it if its PodDisruptionBudget allows that.
 * @throws StatusError 429, if the budget allows none now, 500 with several budgets, 404, 409
 * @see kubernetes/kubernetes pkg/registry/core/pod/storage/eviction.go (1.36)
 */
export function evictPod(
  { store, registry, now }: { readonly store: Store; readonly registry: Registry; readonly now: Date },
  at: ObjectKey,
  body: Json,
  options: WriteOptions,
): JsonObject {
  if (!isJsonObject(body) || body.kind !== 'Eviction') throw badRequest('not a Eviction object');
  if (textOf(memberOf(body, 'metadata'), 'name') !== at.name) throw badRequest('name in URL does not match name in Eviction object');
  const pod = registry.get(PODS, at);
  const deletion = memberOf(body, 'deleteOptions');
  const dryRun = options.dryRun === true || (Array.isArray(deletion.dryRun) && deletion.dryRun.includes('All'));
  const uid = textOf(memberOf(deletion, 'preconditions'), 'uid');
  if (!ignoresBudget(pod)) requireBudget(store, pod, { now, dryRun });
  registry.delete(PODS, at, { preconditions: uid === '' ? {} : { uid } }, { ...options, dryRun, subresource: '' });
  return SUCCESS;
}

function ignoresBudget(pod: KubeObject): boolean {
  const phase = textOf(memberOf(pod, 'status'), 'phase');
  return ['Succeeded', 'Failed', 'Pending'].includes(phase) || pod.metadata.deletionTimestamp !== undefined;
}

function requireBudget(store: Store, pod: KubeObject, { now, dryRun }: { readonly now: Date; readonly dryRun: boolean }): void {
  const [budget, ...others] = budgetsOf(store, pod);
  if (others.length > 0)
    throw new StatusError(500, 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.');
  if (budget === undefined) return;
  const status = memberOf(budget, 'status');
  const [healthy, desired] = [Number(status.currentHealthy ?? 0), Number(status.desiredHealthy ?? 0)];
  if (!isPodReady(pod)) {
    if (memberOf(budget, 'spec').unhealthyPodEvictionPolicy === 'AlwaysAllow') return;
    if (healthy >= desired && desired > 0) return;
  }
  if (Number(status.observedGeneration ?? 0) < Number(budget.metadata.generation ?? 0))
    throw refused(`The disruption budget ${budget.metadata.name} is still being processed by the server.`, 10);
  const allowed = Number(status.disruptionsAllowed ?? 0);
  if (allowed <= 0) throw refused(whyNone(budget, { healthy, desired }));
  if (dryRun) return;
  const disruptedPods = { ...memberOf(status, 'disruptedPods'), [pod.metadata.name]: timestamp(now) };
  store.put(BUDGETS, { ...budget, status: { ...status, disruptionsAllowed: allowed - 1, disruptedPods } });
}

function whyNone(budget: KubeObject, { healthy, desired }: { readonly healthy: number; readonly desired: number }): string {
  const subject = `The disruption budget ${budget.metadata.name}`;
  const failed = itemsOf(memberOf(budget, 'status'), 'conditions').find(({ reason }) => reason === 'SyncFailed');
  if (failed !== undefined) return `${subject} does not allow evicting pods currently because it failed sync: ${textOf(failed, 'message')}`;
  return `${subject} needs ${desired} healthy pods and has ${healthy} currently`;
}

function refused(cause: string, retryAfterSeconds?: number): StatusError {
  const details = {
    causes: [{ reason: 'DisruptionBudget', message: cause }],
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
  return new StatusError(429, "Cannot evict pod as it would violate the pod's disruption budget.", { reason: 'TooManyRequests', details });
}
