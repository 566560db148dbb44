import type { JsonObject } from '../../base/json.ts';
import { entriesAt } from '../documents/values.ts';
import { hardThresholds, thresholdAmount } from './capacity.ts';
import type { PodRisk } from './pod-risk.ts';
import type { FileSystemSpace, HostRiskFacts, RiskInput } from './risk-input.ts';
import { evictablePods } from './room-risks.ts';

/** What the kubelet observes for a signal. */
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
      const why = `${field}[${signal}] ${now[signal]} is more than the node has now (${amountText(seen.available, signal)}, ${share}%): the kubelet would evict pods`;
      return { path: `${field}[${signal}]`, why, pods: evictablePods(input), severity: 'loss' };
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

function amountText(amount: number, signal: string): string {
  return signal.startsWith('pid.') || signal.endsWith('.inodesFree') ? String(amount) : `${Math.floor(amount / 2 ** 20)}Mi`;
}
