import { isJsonObject, type JsonObject, jsonEqual } from '../../base/json.ts';
import { entriesAt, textAt, valueAt } from '../documents/values.ts';
import {
  cpusOf,
  hardThresholds,
  isCritical,
  type PodCapacity,
  podLimit,
  type RoomResource,
  rejectedPods,
  reservedAmounts,
  thresholdAmount,
  withheldAmounts,
} from './capacity.ts';
import { type Amounts, isActive } from './pod.ts';
import { exit, loss, namesOf, type PodRisk, presentPods } from './pod-risk.ts';
import type { FileSystemSpace, HostRiskFacts, RiskInput, RiskPod } from './risk-input.ts';

/** The fields that determine how much of a resource pods get, in the order in which a finding names them. */
const FIELDS: Readonly<Record<RoomResource, readonly string[]>> = {
  pods: ['maxPods', 'podsPerCore'],
  cpu: ['reservedSystemCPUs', 'systemReserved', 'kubeReserved'],
  memory: ['systemReserved', 'kubeReserved', 'evictionHard'],
  'ephemeral-storage': ['systemReserved', 'kubeReserved', 'evictionHard'],
};

const AMOUNT_OF: Readonly<Record<Exclude<RoomResource, 'pods'>, keyof Amounts>> = {
  cpu: 'cpuMillis',
  memory: 'memoryBytes',
  'ephemeral-storage': 'ephemeralBytes',
};

/**
 * Pods that do not fit on the node after the change: the kubelet rejects them at its start (`OutOfpods`,
 * `OutOfcpu`, ...). Pods that did not fit before are no finding.
 */
export function roomRisks(input: RiskInput): readonly PodRisk[] {
  const { pods, after } = input;
  const isChanged = Object.values(FIELDS)
    .flat()
    .some((field) => isFieldChanged(input, field));
  if (pods === null || !isChanged) return [];
  const { room, previous } = roomsOf(input);
  const rejectedBefore = new Set(rejectedPods(pods, previous).map(({ pod }) => pod.uid));
  const lost = rejectedPods(pods, room).filter(({ pod }) => !rejectedBefore.has(pod.uid) && !pod.isTerminating);
  const resources = [...new Set(lost.map(({ resource }) => resource))];
  return resources.map((resource): PodRisk => {
    const path = FIELDS[resource].find((field) => isFieldChanged(input, field, resource)) ?? (FIELDS[resource][0] as string);
    const victims = lost.filter((one) => one.resource === resource);
    const why =
      resource === 'pods'
        ? `${limitText(path, after, room.pods)} is less than the ${pods.filter(isActive).length} pods of the node`
        : `${path} leaves ${amountText(room[AMOUNT_OF[resource]], resource)} of ${resource} for pods, less than the ${amountText(requested(pods, resource), resource)} that the pods of the node request`;
    return loss(path, why, namesOf(victims.map(({ pod }) => pod)));
  });
}

/** A kubelet whose reservations exceed the capacity of its node exits with `invalid Node Allocatable configuration`. */
export function reservationRisks(input: RiskInput): readonly PodRisk[] {
  const { node, after, before, minor } = input;
  if (node === null) return [];
  const { capacity } = node;
  const withheld = withheldAmounts(after, capacity, minor);
  const withheldBefore = before === null ? null : withheldAmounts(before, capacity, minor);
  return (Object.keys(AMOUNT_OF) as (keyof typeof AMOUNT_OF)[]).flatMap((resource): readonly PodRisk[] => {
    const name = AMOUNT_OF[resource];
    if (capacity[name] === 0 || withheld[name] <= capacity[name]) return [];
    if (withheldBefore !== null && withheldBefore[name] > capacity[name]) return [];
    const path = FIELDS[resource].find((field) => isFieldChanged(input, field, resource)) ?? 'systemReserved';
    const why = `the reservations and hard eviction thresholds of ${resource} add up to ${amountText(withheld[name], resource)}, more than the ${amountText(capacity[name], resource)} of the node: the kubelet would exit`;
    return [exit(path, why)];
  });
}

/**
 * Reserved CPUs that are not online: the kubelet exits.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go (1.36): reservedSystemCPUs must be a subset of the CPUs
 */
export function reservedCpuRisks(input: RiskInput): readonly PodRisk[] {
  const path = 'reservedSystemCPUs';
  const text = textAt(input.after, path);
  const online = input.host?.onlineCpus == null ? null : cpusOf(input.host.onlineCpus);
  if (text === '' || online === null || !isFieldChanged(input, path)) return [];
  const reserved = cpusOf(text);
  if (reserved !== null && [...reserved].every((cpu) => online.has(cpu))) return [];
  const why = `${path} ${text} includes CPUs that the host does not have (online: ${input.host?.onlineCpus}): the kubelet would exit`;
  return [exit(path, why)];
}

/**
 * Reservations below what the pods use now: the kubelet sets the limits of the cgroup of all pods to the
 * capacity without reservations, and evicts pods when less than the hard threshold is left below that limit.
 * @see kubernetes/kubernetes pkg/kubelet/cm/node_container_manager_linux.go, pkg/kubelet/eviction/helpers.go
 *   (1.36): addAllocatableThresholds
 */
export function podsCgroupRisks(input: RiskInput): readonly PodRisk[] {
  const { host, after, before, minor } = input;
  if (host === null || !enforcesPods(after)) return [];
  const findings: PodRisk[] = [];
  const pods = evictablePods(input);
  const { memory, podsMemoryBytes, pids, podTasks } = host;
  if (memory !== null && podsMemoryBytes !== null) {
    const left = (config: JsonObject): number =>
      memory.capacityBytes -
      reservedAmounts(config).memoryBytes -
      podsMemoryBytes -
      (thresholdAmount(hardThresholds(config, minor)['memory.available'] ?? '', memory.capacityBytes) ?? 0);
    const path = FIELDS.memory.find((field) => isFieldChanged(input, field, 'memory'));
    if (path !== undefined && left(after) < 0 && (before === null || left(before) >= 0)) {
      const why = `${path} leaves less memory for pods than the ${amountText(podsMemoryBytes, 'memory')} that they use now`;
      findings.push(loss(path, why, pods));
    }
  }
  if (pids !== null && podTasks !== null) {
    const used = Object.values(podTasks).reduce((sum, tasks) => sum + tasks, 0);
    const left = (config: JsonObject): number => pids.max - reservedAmounts(config).pids - used;
    const path = ['systemReserved', 'kubeReserved'].find((field) => isFieldChanged(input, field, 'pid'));
    if (path !== undefined && left(after) < 0 && (before === null || left(before) >= 0)) {
      const why = `${path}.pid leaves fewer process IDs for pods than the ${used} that they use now`;
      findings.push(loss(path, why, pods));
    }
  }
  return findings;
}

/**
 * The init process of runc has up to about ten threads in the cgroup of the pod before it starts the program of
 * a container, in addition to the pause process.
 */
const LEAST_TASKS = 16;

/** A limit of tasks below what a container needs for its start, or below what pods of this node use. */
export function podPidsRisks(input: RiskInput): readonly PodRisk[] {
  const path = 'podPidsLimit';
  const limitOf = (config: JsonObject): number => {
    const limit = Number(valueAt(config, path) ?? -1);
    return limit > 0 ? limit : Number.POSITIVE_INFINITY;
  };
  const limit = limitOf(input.after);
  if (!isFieldChanged(input, path) || limit >= (input.before === null ? Number.POSITIVE_INFINITY : limitOf(input.before))) return [];
  if (limit < LEAST_TASKS)
    return [
      loss(
        path,
        `${path} ${limit} is less than the ${LEAST_TASKS} tasks that the start of a container needs: no new container would start`,
      ),
    ];
  const used = Object.entries(input.host?.podTasks ?? {}).filter(([, tasks]) => tasks > limit);
  if (used.length === 0) return [];
  const largest = Math.max(...used.map(([, tasks]) => tasks));
  const nameOf = new Map((input.pods ?? []).map(({ uid, name }) => [uid, name]));
  const names = used.flatMap(([uid]) => nameOf.get(uid) ?? []).toSorted();
  const why = `${path} ${limit} is less than the ${largest} tasks of a running pod, which could not run again with this limit`;
  return [loss(path, why, names)];
}

function evictablePods({ pods }: Pick<RiskInput, 'pods'>): readonly string[] {
  return namesOf(presentPods(pods, (pod) => pod.phase === 'Running' && !isCritical(pod)));
}

function roomsOf({ node, before, after, minor, host }: RiskInput): { readonly room: PodCapacity; readonly previous: PodCapacity } {
  const cores = node !== null ? Math.floor(node.capacity.cpuMillis / 1000) : coresOf(host?.onlineCpus ?? null);
  if (node === null) {
    const free = { cpuMillis: Infinity, memoryBytes: Infinity, ephemeralBytes: Infinity };
    return {
      room: { ...free, pods: podLimit(after, cores) },
      previous: { ...free, pods: before === null ? Infinity : podLimit(before, cores) },
    };
  }
  const { capacity, allocatable } = node;
  const withheld = withheldAmounts(after, capacity, minor);
  const withheldBefore = before === null ? null : withheldAmounts(before, capacity, minor);
  const amounts = (amountOf: (name: keyof Amounts) => number): Amounts => {
    const amount = (name: keyof Amounts): number => (capacity[name] === 0 ? Infinity : Math.max(0, amountOf(name)));
    return { cpuMillis: amount('cpuMillis'), memoryBytes: amount('memoryBytes'), ephemeralBytes: amount('ephemeralBytes') };
  };
  const previous = amounts((name) => Math.min(allocatable[name], capacity[name] - (withheldBefore?.[name] ?? 0)));
  // A Node also withholds what no configuration shows, such as huge pages.
  const hidden = (name: keyof Amounts): number =>
    withheldBefore === null ? 0 : Math.max(0, capacity[name] - withheldBefore[name] - allocatable[name]);
  return {
    room: { ...amounts((name) => capacity[name] - withheld[name] - hidden(name)), pods: podLimit(after, cores) },
    previous: { ...previous, pods: before === null ? (node.pods ?? Infinity) : podLimit(before, cores) },
  };
}

function coresOf(cpus: string | null): number | null {
  return cpus === null ? null : (cpusOf(cpus)?.size ?? null);
}

function enforcesPods(config: JsonObject): boolean {
  const enforced = valueAt(config, 'enforceNodeAllocatable');
  return !Array.isArray(enforced) || enforced.includes('pods');
}

/** Members of the maps of reservations and thresholds by the resource that they withhold. */
const MEMBER: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  evictionHard: { memory: 'memory.available', 'ephemeral-storage': 'nodefs.available' },
};

/** @param resource only the member of a map for this resource */
function isFieldChanged({ before, after }: Pick<RiskInput, 'before' | 'after'>, field: string, resource?: string): boolean {
  const fieldOf = (config: JsonObject) => {
    const value = valueAt(config, field);
    if (resource === undefined || !isJsonObject(value)) return value ?? null;
    return value[MEMBER[field]?.[resource] ?? resource] ?? null;
  };
  const now = fieldOf(after);
  return before === null ? now !== null : !jsonEqual(fieldOf(before), now);
}

function limitText(path: string, config: JsonObject, limit: number): string {
  return path === 'maxPods' ? `maxPods ${limit}` : `podsPerCore ${String(valueAt(config, path))} allows ${limit} pods, which`;
}

function requested(pods: readonly RiskPod[], resource: keyof typeof AMOUNT_OF): number {
  return pods.filter(isActive).reduce((sum, { requests }) => sum + requests[AMOUNT_OF[resource]], 0);
}

/** `1500m` of cpu; bytes in Mi. */
function amountText(amount: number, resource: string): string {
  return resource === 'cpu' ? `${Math.round(amount)}m` : `${Math.round(amount / 2 ** 20)}Mi`;
}

interface Signal {
  readonly available: number;
  readonly capacity: number;
}

/**
 * Eviction thresholds that the node does not keep now: the kubelet would evict pods, and admit no new ones. A
 * threshold that the node did not keep before either is no finding.
 * @see kubernetes/kubernetes pkg/kubelet/eviction/helpers.go (1.36): thresholdsMet, makeSignalObservations
 */
export function evictionRisks(input: RiskInput): readonly PodRisk[] {
  const { before, after, minor, host } = input;
  if (host === null) return [];
  const met = (thresholds: Readonly<Record<string, string>>, signal: string): boolean => {
    const seen = signalOf(host, signal);
    const amount = seen === null ? null : thresholdAmount(thresholds[signal] ?? '', seen.capacity);
    return seen !== null && amount !== null && amount > seen.available;
  };
  const hard = (config: JsonObject) => hardThresholds(config, minor);
  return [
    { field: 'evictionHard', of: hard },
    { field: 'evictionSoft', of: softThresholds },
  ].flatMap(({ field, of }) => {
    const [now, then] = [of(after), before === null ? null : of(before)];
    const signals = Object.keys(now).filter((signal) => met(now, signal) && (then === null || !met(then, signal)));
    return signals.map((signal): PodRisk => {
      const seen = signalOf(host, signal) as Signal;
      const share = Math.floor((100 * seen.available) / Math.max(1, seen.capacity));
      const why = `${field}[${signal}] ${now[signal]} is more than the node has now (${availableText(seen.available, signal)}, ${share}%): the kubelet would evict pods`;
      return loss(`${field}[${signal}]`, why, evictablePods(input));
    });
  });
}

/** Soft thresholds apply only with a grace period. */
function softThresholds(config: JsonObject): Readonly<Record<string, string>> {
  const graced = new Set(entriesAt(config, 'evictionSoftGracePeriod').map(([signal]) => signal));
  const soft = entriesAt(config, 'evictionSoft').filter(([signal]) => graced.has(signal));
  return Object.fromEntries(soft.map(([signal, value]) => [signal, String(value)]));
}

function signalOf({ memory, nodeFs, imageFs, pids }: HostRiskFacts, signal: string): Signal | null {
  const space = (fs: FileSystemSpace | null): Signal | null =>
    fs === null ? null : { available: fs.availableBytes, capacity: fs.capacityBytes };
  const inodes = (fs: FileSystemSpace | null): Signal | null =>
    // Some file systems (btrfs) have no fixed number of inodes.
    fs === null || fs.inodes === 0 ? null : { available: fs.freeInodes, capacity: fs.inodes };
  switch (signal) {
    case 'memory.available':
      return memory === null ? null : { available: memory.availableBytes, capacity: memory.capacityBytes };
    case 'nodefs.available':
      return space(nodeFs);
    case 'nodefs.inodesFree':
      return inodes(nodeFs);
    case 'imagefs.available':
      return space(imageFs);
    case 'imagefs.inodesFree':
      return inodes(imageFs);
    case 'pid.available':
      return pids === null ? null : { available: pids.max - pids.running, capacity: pids.max };
    default:
      return null;
  }
}

function availableText(amount: number, signal: string): string {
  return signal.startsWith('pid.') || signal.endsWith('.inodesFree') ? String(amount) : `${Math.floor(amount / 2 ** 20)}Mi`;
}
