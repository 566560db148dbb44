import { jsonEqual } from '../../base/json.ts';
import { isTrue, listAt, numberAt, textAt, valueAt } from '../documents/values.ts';
import type { PodRisk } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';

/** Fields whose effect depends on the cgroup version of the host. */
export const CGROUP_VERSION_FIELDS = [
  'failCgroupV1',
  'memorySwap.swapBehavior',
  'kernelMemcgNotification',
  'featureGates.MemoryQoS',
] as const;

/** The first minor whose source this rule was read from. */
const NO_SWAP_SINCE = 36;

/**
 * Values that a kubelet accepts and that are not in force on this host: it logs one line, or none, and stays healthy.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go run, RunKubelet, InitializeTLS;
 *   pkg/kubelet/eviction/threshold_notifier_linux.go (1.36)
 */
export function silentRisks({ before, after, minor, host }: RiskInput): readonly PodRisk[] {
  const findings: PodRisk[] = [];
  const warn = (fields: readonly [string, ...string[]], isSilent: boolean, why: string): void => {
    const isNew = before === null || fields.some((field) => !jsonEqual(valueAt(before, field) ?? null, valueAt(after, field) ?? null));
    if (isNew && isSilent) findings.push({ path: fields[0], why, pods: [], severity: 'warning' });
  };
  const version = host?.cgroupVersion ?? null;
  const qos = 'featureGates.MemoryQoS';
  warn([qos], isTrue(after, qos) && version === 1, `${qos} has no effect, because the host uses cgroup v1`);
  const memcg = 'kernelMemcgNotification';
  warn([memcg], isTrue(after, memcg) && version === 2, `${memcg} has no effect, because the host uses cgroup v2`);
  const files = numberAt(after, 'maxOpenFiles') ?? 0;
  const limit = host?.maxOpenFiles ?? null;
  const kernel = `maxOpenFiles ${files} is above the limit ${limit} of the kernel (fs.nr_open): the kubelet would keep the limit of its unit`;
  warn(['maxOpenFiles'], limit !== null && files > limit, kernel);
  const isTls13 = textAt(after, 'tlsMinVersion') === 'VersionTLS13' && listAt(after, 'tlsCipherSuites').length > 0;
  warn(['tlsCipherSuites', 'tlsMinVersion'], isTls13, 'tlsCipherSuites has no effect with tlsMinVersion VersionTLS13');
  const [own, reserved] = [textAt(after, 'kubeletCgroups'), textAt(after, 'kubeReservedCgroup')];
  const isOutside = own !== '' && reserved !== '' && !own.startsWith(reserved);
  const outside = `kubeletCgroups ${own} is not below kubeReservedCgroup ${reserved}: the reservation would not include the kubelet`;
  warn(['kubeletCgroups', 'kubeReservedCgroup'], isOutside, outside);
  const swap = 'memorySwap.swapBehavior';
  const isNewSwap = before === null || textAt(before, swap) !== textAt(after, swap);
  if (isNewSwap && textAt(after, swap) === 'LimitedSwap' && version === 1 && minor >= NO_SWAP_SINCE) {
    const why = `${swap} is LimitedSwap, but the host uses cgroup v1: the kubelet would exit`;
    findings.push({ path: swap, why, pods: [], severity: 'loss', stopsKubelet: true });
  }
  return findings;
}
