import type { JsonObject } from '../../base/json.ts';
import { parseQuantity, quantityValue } from '../../base/text/quantity.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { defaultEvictionHard } from '../catalogue/conditional-defaults.ts';
import { entriesAt, isTrue, numberAt, textAt, valueAt } from '../documents/values.ts';
import { type Amounts, amountsOf, isActive } from './pod.ts';
import type { RiskPod } from './risk-input.ts';

/** Resources of a node for pods. */
export interface PodCapacity extends Amounts {
  readonly pods: number;
}

/** A resource by which the kubelet rejects pods, as in `OutOfpods` and `OutOfcpu`. */
export type RoomResource = 'pods' | 'cpu' | 'memory' | 'ephemeral-storage';

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
export function rejectedPods(
  pods: readonly RiskPod[],
  capacity: PodCapacity,
): readonly { readonly pod: RiskPod; readonly resource: RoomResource }[] {
  let admitted: readonly RiskPod[] = [];
  const rejected: { readonly pod: RiskPod; readonly resource: RoomResource }[] = [];
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

/** Linux kernels support at most 8192 CPUs; larger numbers are no CPUs of a host. */
const MAX_CPU = 65_535;

/**
 * The CPUs of a list such as `0-3,8`.
 * @returns null: not a list of CPUs of a host
 */
export function cpusOf(text: string): ReadonlySet<number> | null {
  const cpus = new Set<number>();
  for (const part of text.trim().split(',').filter(Boolean)) {
    const [, first, last = first] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part) ?? [];
    if (first === undefined || Number(last) > MAX_CPU) return null;
    for (let cpu = Number(first); cpu <= Number(last); cpu++) cpus.add(cpu);
  }
  return cpus;
}

/**
 * The resources that kubeReserved and systemReserved withhold from pods. `reservedSystemCPUs` replaces the
 * cpu of both.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go (1.36): getReservedCPUs
 */
export function reservedAmounts(config: JsonObject): Amounts & { readonly pids: number } {
  const lists = ['kubeReserved', 'systemReserved'].map((field) => Object.fromEntries(entriesAt(config, field)));
  const amounts = lists.map(amountsOf);
  const sum = (name: keyof Amounts): number => amounts.reduce((total, one) => total + one[name], 0);
  const cpus = cpusOf(textAt(config, 'reservedSystemCPUs'));
  return {
    cpuMillis: cpus === null || cpus.size === 0 ? sum('cpuMillis') : cpus.size * 1000,
    memoryBytes: sum('memoryBytes'),
    ephemeralBytes: sum('ephemeralBytes'),
    pids: lists.reduce((total, { pid }) => total + (quantityOf(String(pid ?? '')) ?? 0), 0),
  };
}

/**
 * All resources that are not allocatable: the reserved amounts and the hard eviction thresholds of memory and
 * of the node's file system.
 * @see kubernetes/kubernetes pkg/kubelet/cm/node_container_manager_linux.go (1.36): GetNodeAllocatableReservation
 */
export function withheldAmounts(config: JsonObject, capacity: Amounts, minor: Minor): Amounts {
  const { cpuMillis, memoryBytes, ephemeralBytes } = reservedAmounts(config);
  const hard = hardThresholds(config, minor);
  return {
    cpuMillis,
    memoryBytes: memoryBytes + (thresholdAmount(hard['memory.available'] ?? '', capacity.memoryBytes) ?? 0),
    ephemeralBytes: ephemeralBytes + (thresholdAmount(hard['nodefs.available'] ?? '', capacity.ephemeralBytes) ?? 0),
  };
}

/** The hard eviction thresholds of an effective configuration by signal. */
export function hardThresholds(config: JsonObject, minor: Minor): Readonly<Record<string, string>> {
  if (valueAt(config, 'evictionHard') === undefined) return defaultEvictionHard(minor);
  const own = Object.fromEntries(entriesAt(config, 'evictionHard').map(([signal, value]) => [signal, String(value)]));
  return isTrue(config, 'mergeDefaultEvictionSettings') ? { ...defaultEvictionHard(minor), ...own } : own;
}

/**
 * The amount of an eviction threshold.
 * @param text a quantity, or a percentage of the capacity
 * @returns null: no threshold; `0%` and `100%` disable one
 * @see kubernetes/kubernetes pkg/kubelet/eviction/helpers.go (1.36): parseThresholdStatement
 */
export function thresholdAmount(text: string, capacity: number): number | null {
  if (text === '' || text === '0%' || text === '100%') return null;
  if (!text.endsWith('%')) return quantityOf(text);
  const percentage = Number.parseFloat(text);
  return Number.isFinite(percentage) ? (capacity * percentage) / 100 : null;
}

/**
 * The number of pods that a kubelet accepts.
 * @param cores null: unknown
 * @see kubernetes/kubernetes pkg/kubelet/nodestatus/setters.go (1.36): MachineInfo
 */
export function podLimit(config: JsonObject, cores: number | null): number {
  const maxPods = numberAt(config, 'maxPods') ?? 110;
  const perCore = numberAt(config, 'podsPerCore') ?? 0;
  return perCore > 0 && cores !== null ? Math.min(maxPods, perCore * cores) : maxPods;
}

function quantityOf(text: string): number | null {
  const quantity = parseQuantity(text);
  return quantity === null ? null : Number(quantityValue(quantity));
}
