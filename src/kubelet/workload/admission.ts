import { type Amounts, isActive } from './pod.ts';
import type { RiskPod } from './risk-input.ts';

/** Resources of a node for pods. */
export interface PodCapacity extends Amounts {
  readonly pods: number;
}

/** A resource by which the kubelet rejects pods, as in `OutOfpods` and `OutOfcpu`. */
export type RoomResource = 'pods' | 'cpu' | 'memory' | 'ephemeral-storage';

/** A pod that does not fit on a node. */
export interface RejectedPod {
  readonly pod: RiskPod;
  readonly resource: RoomResource;
}

/** Pods of the priority classes system-cluster-critical and system-node-critical have at least this priority. */
const CRITICAL_PRIORITY = 2_000_000_000;

/** Static pods and pods of a system-critical priority class, which the kubelet does not evict. */
export function isCritical({ isStatic, priority = 0 }: RiskPod): boolean {
  return isStatic || priority >= CRITICAL_PRIORITY;
}

/**
 * The pods that a kubelet rejects or preempts when it is started: it admits static pods first, then the others
 * by creation time. A pod that requests nothing of a resource is never rejected for that resource. A critical
 * pod preempts pods that are not critical.
 * @param pods all pods of the node; finished ones occupy nothing
 * @see kubernetes/kubernetes pkg/kubelet/kubelet.go HandlePodAdditions, pkg/kubelet/lifecycle/predicate.go,
 *   pkg/kubelet/preemption/preemption.go, pkg/scheduler/framework/plugins/noderesources/fit.go (1.36)
 */
export function rejectedPods(pods: readonly RiskPod[], capacity: PodCapacity): readonly RejectedPod[] {
  let admitted: readonly RiskPod[] = [];
  const rejected: RejectedPod[] = [];
  for (const pod of pods.filter(isActive).toSorted(byAdmission)) {
    const resource = shortOf(pod, admitted, capacity);
    if (resource === null) {
      admitted = [...admitted, pod];
      continue;
    }
    const preempted = isCritical(pod) ? preemptedBy(pod, admitted, capacity) : null;
    if (preempted === null) rejected.push({ pod, resource });
    else {
      rejected.push(...preempted.map((victim) => ({ pod: victim, resource })));
      admitted = [...admitted.filter((one) => !preempted.includes(one)), pod];
    }
  }
  return rejected;
}

/** Orders pods as a kubelet admits them at its start. */
export function byAdmission(a: RiskPod, b: RiskPod): number {
  if (a.isStatic !== b.isStatic) return a.isStatic ? -1 : 1;
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

/** The resource that the node lacks for a pod; null: the pod fits. */
function shortOf({ requests }: RiskPod, admitted: readonly RiskPod[], capacity: PodCapacity): RoomResource | null {
  if (admitted.length + 1 > capacity.pods) return 'pods';
  const isShort = (name: keyof Amounts): boolean =>
    requests[name] > 0 && requests[name] > capacity[name] - admitted.reduce((sum, pod) => sum + pod.requests[name], 0);
  if (isShort('cpuMillis')) return 'cpu';
  if (isShort('memoryBytes')) return 'memory';
  return isShort('ephemeralBytes') ? 'ephemeral-storage' : null;
}

/** The pods that a critical pod preempts, those of the lowest priority first; null: they would not suffice. */
function preemptedBy(pod: RiskPod, admitted: readonly RiskPod[], capacity: PodCapacity): readonly RiskPod[] | null {
  const victims = admitted
    .filter((one) => !isCritical(one))
    .toSorted((a, b) => (a.priority ?? 0) - (b.priority ?? 0) || -byAdmission(a, b));
  for (let count = 1; count <= victims.length; count++) {
    const preempted = victims.slice(0, count);
    const left = admitted.filter((one) => !preempted.includes(one));
    if (shortOf(pod, left, capacity) === null) return preempted;
  }
  return null;
}
