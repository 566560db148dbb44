import { isLoopback, isUnspecified, parseIp } from '../../base/text/ip.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { durationAt, isTrue, listAt, numberAt, textAt } from '../documents/values.ts';
import { MANAGER_STATES } from './manager-states.ts';
import { affects, exit, loss, type PodRisk, warning } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';

const SECOND = 1_000_000_000n;

/**
 * The kernel settings that a kubelet with protectKernelDefaults requires.
 * @see kubernetes/kubernetes pkg/kubelet/cm/container_manager_linux.go setupKernelTunables (1.36)
 */
export const KERNEL_SETTINGS: Readonly<Record<string, string>> = {
  'vm.overcommit_memory': '1',
  'vm.panic_on_oom': '0',
  'kernel.panic': '10',
  'kernel.panic_on_oops': '1',
  'kernel.keys.root_maxkeys': '1000000',
  'kernel.keys.root_maxbytes': '25000000',
};

/** Values with which the kubelet exits on this host, or cannot serve its pods. */
export function startRisks(input: RiskInput): readonly PodRisk[] {
  return [...hostRisks(input), ...managerRisks(input), ...portRisks(input), ...slowRisks(input)];
}

function hostRisks({ before, after, host }: RiskInput): readonly PodRisk[] {
  const becomes = (path: string): boolean => isTrue(after, path) && (before === null || !isTrue(before, path));
  const findings: PodRisk[] = [];
  if (becomes('failSwapOn') && host?.usesSwap === true)
    findings.push(loss('failSwapOn', 'failSwapOn is true, but the host uses swap: the kubelet would exit'));
  if (becomes('failCgroupV1') && host?.cgroupVersion === 1)
    findings.push(loss('failCgroupV1', 'failCgroupV1 is true, but the host uses cgroup v1: the kubelet would exit'));
  if (becomes('protectKernelDefaults')) {
    const other = Object.entries(KERNEL_SETTINGS).filter(([name, value]) => (host?.sysctls[name] ?? value) !== value);
    const shown = other.map(([name, value]) => `${name} is ${host?.sysctls[name]} instead of ${value}`).join(', ');
    if (other.length > 0)
      findings.push(loss('protectKernelDefaults', `protectKernelDefaults is true, but ${shown}: the kubelet would exit`));
  }
  if (becomes('runOnce')) findings.push(loss('runOnce', 'runOnce is true: the kubelet would exit after the start of its pods'));
  return findings;
}

/**
 * A policy that differs from the one in the state file of its manager: the kubelet exits.
 * @see kubernetes/kubernetes pkg/kubelet/cm/cpumanager/state/state_checkpoint.go (1.36): restoreState
 */
function managerRisks({ before, after, host }: RiskInput): readonly PodRisk[] {
  return Object.entries(MANAGER_STATES).flatMap(([path, file]) => {
    const [policy, stored] = [textAt(after, path), host?.managerPolicies[path]];
    const isNew = before === null || textAt(before, path) !== policy;
    if (!isNew || policy === '' || stored === undefined || stored.toLowerCase() === policy.toLowerCase()) return [];
    const why = `${path} ${policy} differs from the policy ${stored} in the file ${file} of the kubelet: the kubelet would exit until the node is drained and the file deleted`;
    return [loss(path, why)];
  });
}

/** Ports of other processes, and addresses that the host does not have (seen with a kubelet 1.36.2). */
function portRisks({ before, after, host }: RiskInput): readonly PodRisk[] {
  const own = before === null ? [] : ['port', 'readOnlyPort', 'healthzPort'].map((path) => numberAt(before, path) ?? 0);
  const findings: PodRisk[] = [];
  for (const path of ['port', 'readOnlyPort', 'healthzPort']) {
    const port = numberAt(after, path) ?? 0;
    // Without the previous configuration, the listening process may be the kubelet.
    if (before === null || port === 0 || own.includes(port) || host?.ports?.has(port) !== true) continue;
    const why = `${path} ${port} is used by another process of the host`;
    findings.push(loss(path, `${why}: the kubelet ${path === 'healthzPort' ? 'could not report its health' : 'would exit'}`));
  }
  for (const path of ['address', 'healthzBindAddress']) {
    const address = textAt(after, path);
    const parsed = parseIp(address);
    const isNew = before !== null && textAt(before, path) !== address;
    if (!isNew || parsed === null || host?.addresses == null || isUnspecified(parsed) || isLoopback(parsed)) continue;
    const has = host.addresses.some((one) => parseIp(one)?.value === parsed.value && parseIp(one)?.family === parsed.family);
    const effect = path === 'address' ? 'would exit' : 'could not report its health';
    if (!has) findings.push(loss(path, `the host does not have the address ${address} of ${path}: the kubelet ${effect}`));
  }
  return findings;
}

/** Kubelets renew their Lease since this minor, and the Node stays Ready by it. */
const LEASE_SINCE: Minor = 17;
/** nodeMonitorGracePeriod of kube-controller-manager; 40 s before 1.32. */
const GRACE = { seconds: 50, since: 32, before: 40 } as const;
/** A kubelet renews its Lease after this part of nodeLeaseDurationSeconds (pkg/kubelet/kubelet.go, 1.36). */
const RENEW_PART = 0.25;
/** Requests for the state of all containers take about this long on a loaded host. */
const SLOW_RUNTIME = 10n * SECOND;
/** A kubelet opens some files for itself, and several for each pod. */
const FEW_FILES = 1024;
const TOO_FEW_FILES = 128;

function slowRisks(input: RiskInput): readonly PodRisk[] {
  const { after, minor } = input;
  const changed = (path: string): boolean => affects(input, [path]);
  const findings: PodRisk[] = [];
  const grace = minor >= GRACE.since ? GRACE.seconds : GRACE.before;
  const lease = numberAt(after, 'nodeLeaseDurationSeconds') ?? 0;
  if (minor >= LEASE_SINCE && changed('nodeLeaseDurationSeconds') && lease * RENEW_PART >= grace)
    findings.push(
      loss(
        'nodeLeaseDurationSeconds',
        `nodeLeaseDurationSeconds ${lease} makes the kubelet renew its Lease every ${lease * RENEW_PART} s: the control plane marks the Node NotReady after ${grace} s`,
      ),
    );
  const update = durationAt(after, 'nodeStatusUpdateFrequency') ?? 0n;
  if (changed('nodeStatusUpdateFrequency') && update >= BigInt(grace) * SECOND) {
    const path = 'nodeStatusUpdateFrequency';
    const why = `${path} ${textAt(after, path)} is not less than the ${grace} s after which the control plane marks a Node NotReady`;
    findings.push(
      minor < LEASE_SINCE ? loss(path, why) : warning(path, `${path} ${textAt(after, path)} delays the conditions of the Node`),
    );
  }
  const timeout = durationAt(after, 'runtimeRequestTimeout') ?? 0n;
  if (changed('runtimeRequestTimeout') && timeout > 0n && timeout < SLOW_RUNTIME) {
    const path = 'runtimeRequestTimeout';
    const why = `${path} ${textAt(after, path)} is shorter than requests to the container runtime can take`;
    findings.push(timeout < SECOND ? loss(path, `${why}: no pod could be started`) : warning(path, why));
  }
  const files = numberAt(after, 'maxOpenFiles') ?? FEW_FILES;
  if (changed('maxOpenFiles') && files < FEW_FILES) {
    const path = 'maxOpenFiles';
    const why = `${path} ${files} is less than a kubelet with pods opens`;
    findings.push(files < TOO_FEW_FILES ? loss(path, why) : warning(path, why));
  }
  return findings;
}

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
export function silentRisks(input: RiskInput): readonly PodRisk[] {
  const { before, after, minor, host } = input;
  const findings: PodRisk[] = [];
  const warn = (fields: readonly [string, ...string[]], isSilent: boolean, why: string): void => {
    if (isSilent && affects(input, fields)) findings.push(warning(fields[0], why));
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
    findings.push(exit(swap, why));
  }
  return findings;
}
