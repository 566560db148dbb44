import type { JsonObject } from '../../src/base/json.ts';
import { parseQuantity, quantityValue } from '../../src/base/text/quantity.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type Amounts, amountsOf, isActive, type NodePod, readPod } from '../../src/kubelet/workload/pod.ts';
import { memberOf } from '../api-server/members.ts';

const GI = 2 ** 30;
/** The memory of a stand-in host in bytes: 8 GiB. */
export const MEMORY_BYTES = 8 * GI;
const CPUS = 4;
const STORAGE_BYTES = 100 * GI;
/** The unused part of memory and of the file system. */
const FREE = 0.85;

/** The pods and amounts that a node accepts. */
export interface NodeLimits extends Amounts {
  readonly pods: number;
}

/** A condition of the Node that evicts pods. */
export interface Pressure {
  readonly type: 'MemoryPressure' | 'DiskPressure';
  /** The kubelet's message about an evicted pod. */
  readonly message: string;
}

/** The reason and message of a pod that the kubelet ends or does not admit. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

/**
 * The resources of a stand-in host in the Node's status, and its limits for pods.
 * @param config the kubelet's configuration with its defaults
 * @see kubernetes/kubernetes pkg/kubelet/cm/node_container_manager_linux.go (1.36)
 */
export function nodeResources(config: JsonObject): {
  readonly capacity: JsonObject;
  readonly allocatable: JsonObject;
  readonly limits: NodeLimits;
} {
  const pods = typeof config.maxPods === 'number' ? config.maxPods : 110;
  const reserved = ['systemReserved', 'kubeReserved'].map((name) => amountsOf(memberOf(config, name)));
  const sum = (amount: keyof Amounts): number => reserved.reduce((total, each) => total + each[amount], 0);
  const eviction = memberOf(config, 'evictionHard');
  const limits = {
    pods,
    cpuMillis: Math.max(0, CPUS * 1000 - sum('cpuMillis')),
    memoryBytes: Math.max(0, MEMORY_BYTES - sum('memoryBytes') - thresholdBytes(eviction['memory.available'], MEMORY_BYTES)),
    ephemeralBytes: Math.max(0, STORAGE_BYTES - sum('ephemeralBytes') - thresholdBytes(eviction['nodefs.available'], STORAGE_BYTES)),
  };
  const kibibytes = (bytes: number): string => `${Math.floor(bytes / 1024)}Ki`;
  return {
    capacity: {
      cpu: String(CPUS),
      memory: kibibytes(MEMORY_BYTES),
      'ephemeral-storage': kibibytes(STORAGE_BYTES),
      pods: String(pods),
    },
    allocatable: {
      cpu: limits.cpuMillis % 1000 === 0 ? String(limits.cpuMillis / 1000) : `${limits.cpuMillis}m`,
      memory: kibibytes(limits.memoryBytes),
      'ephemeral-storage': String(limits.ephemeralBytes),
      pods: String(pods),
    },
    limits,
  };
}

/** An amount or a percentage of a total, rounded down. */
function thresholdBytes(threshold: unknown, total: number): number {
  if (typeof threshold !== 'string') return 0;
  const percent = /^([\d.]+)%$/.exec(threshold)?.[1];
  if (percent !== undefined) return Math.floor((Number(percent) / 100) * total);
  const quantity = parseQuantity(threshold);
  return quantity === null ? 0 : Number(quantityValue(quantity));
}

/**
 * The pressures that the hard eviction thresholds cause: 15% of a stand-in host's memory and file system are in
 * use.
 * @see kubernetes/kubernetes pkg/kubelet/eviction/helpers.go (1.36)
 */
export function pressuresOf(config: JsonObject): readonly Pressure[] {
  const eviction = memberOf(config, 'evictionHard');
  const signals = [
    ['memory.available', 'MemoryPressure', 'memory', MEMORY_BYTES],
    ['nodefs.available', 'DiskPressure', 'ephemeral-storage', STORAGE_BYTES],
  ] as const;
  return signals.flatMap(([signal, type, resource, total]): readonly Pressure[] => {
    const available = Math.floor(total * FREE);
    const threshold = thresholdBytes(eviction[signal], total);
    if (threshold <= available) return [];
    const quantities = `Threshold quantity: ${threshold}, available: ${Math.floor(available / 1024)}Ki. `;
    return [{ type, message: `The node was low on resource: ${resource}. ${quantities}` }];
  });
}

/** Static pods, and pods with the priority of the system. The kubelet does not evict them. */
export function isCritical(pod: KubeObject): boolean {
  const { priority } = memberOf(pod, 'spec');
  return readPod(pod).isStatic || (typeof priority === 'number' && priority >= 2_000_000_000);
}

/** Why a pod does not fit on a node with the admitted pods; null: it fits. */
function admissionRefusal(pod: NodePod, admitted: readonly NodePod[], limits: NodeLimits): Refusal | null {
  const used = (amount: keyof Amounts): number => admitted.reduce((total, { requests }) => total + requests[amount], 0);
  const resources = [
    ['pods', 1, admitted.length, limits.pods],
    ['cpu', pod.requests.cpuMillis, used('cpuMillis'), limits.cpuMillis],
    ['memory', pod.requests.memoryBytes, used('memoryBytes'), limits.memoryBytes],
    ['ephemeral-storage', pod.requests.ephemeralBytes, used('ephemeralBytes'), limits.ephemeralBytes],
  ] as const;
  const full = resources.find(([, requested, inUse, capacity]) => requested > 0 && requested + inUse > capacity);
  if (full === undefined) return null;
  const [resource, requested, inUse, capacity] = full;
  const amounts = `requested: ${requested}, used: ${inUse}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message: `Node didn't have enough resource: ${resource}, ${amounts}` };
}

/** The verdict about pods that are new to a kubelet process. */
export interface Admission {
  readonly admitted: readonly KubeObject[];
  readonly refused: readonly { readonly pod: KubeObject; readonly refusal: Refusal }[];
  /** Pods that were admitted and end now, to make room for a critical pod. */
  readonly preempted: readonly KubeObject[];
}

/**
 * Admits pods in their order. A critical pod that does not fit ends other pods, those with the smallest
 * requests first.
 * @param running pods admitted before
 * @param pressures the pressures that the kubelet has noticed
 * @see kubernetes/kubernetes pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/preemption, pkg/kubelet/eviction (1.36)
 */
export function admitPods(
  pods: readonly KubeObject[],
  {
    running,
    limits,
    pressures,
  }: { readonly running: readonly KubeObject[]; readonly limits: NodeLimits; readonly pressures: readonly Pressure[] },
): Admission {
  let active = [...running];
  const [refused, preempted]: [{ pod: KubeObject; refusal: Refusal }[], KubeObject[]] = [[], []];
  for (const pod of pods) {
    const noRoom = (): Refusal | null => admissionRefusal(readPod(pod), active.map(readPod), limits);
    let refusal = noRoom();
    if (pressures.length > 0 && !isCritical(pod)) {
      const types = pressures.map(({ type }) => type).join(' ');
      refusal = { reason: 'Evicted', message: `The node had condition: [${types}]. ` };
    }
    if (refusal !== null && isCritical(pod)) {
      const before = active;
      const victims = active.filter((other) => !isCritical(other)).sort(bySize);
      for (const victim of victims) {
        if (noRoom() === null) break;
        active = active.filter((other) => other !== victim);
      }
      if (noRoom() === null) {
        refusal = null;
        preempted.push(...before.filter((other) => !active.includes(other)));
      } else {
        active = before;
        const why = `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ${refusal.reason}`;
        refusal = {
          reason: 'UnexpectedAdmissionError',
          message: `Unexpected error while attempting to recover from admission failure: ${why}`,
        };
      }
    }
    if (refusal === null) active.push(pod);
    else refused.push({ pod, refusal });
  }
  return { admitted: pods.filter((pod) => active.includes(pod)), refused, preempted };
}

function bySize(a: KubeObject, b: KubeObject): number {
  const [one, other] = [readPod(a).requests, readPod(b).requests];
  return one.memoryBytes - other.memoryBytes || one.cpuMillis - other.cpuMillis;
}

/** In order of creation, as the kubelet admits the pods of the API server. */
export function byCreation(a: KubeObject, b: KubeObject): number {
  const [one, other] = [a, b].map(({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.namespace ?? ''}/${metadata.name}`);
  return (one ?? '') < (other ?? '') ? -1 : 1;
}

/** Whether the pod occupies the node and is not being deleted. */
export function isRunnable(pod: KubeObject): boolean {
  const read = readPod(pod);
  return isActive(read) && !read.isTerminating;
}
