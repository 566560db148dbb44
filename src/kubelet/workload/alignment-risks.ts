import { parseJsonObject } from '../../base/json.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { textAt } from '../documents/values.ts';
import { byAdmission, cpusOf, reservedAmounts } from './capacity.ts';
import { MANAGER_STATES } from './manager-states.ts';
import { affects, loss, namesOf, type PodRisk, presentPods, warning } from './pod-risk.ts';
import type { HostRiskFacts, RiskInput, RiskPod } from './risk-input.ts';

/** Fields by which a kubelet gives pods CPUs and memory of their own; a restarted kubelet admits all its pods again. */
export const ALIGNMENT_FIELDS = [
  'cpuManagerPolicy',
  'cpuManagerPolicyOptions',
  'memoryManagerPolicy',
  'topologyManagerPolicy',
  'topologyManagerPolicyOptions',
  'topologyManagerScope',
] as const;

/**
 * Counts the online CPUs of each core, and the NUMA nodes; null: unknown.
 * @see kubernetes/kubernetes pkg/kubelet/cm/cpumanager/topology CPUsPerCore (1.36)
 */
export const CPU_TOPOLOGY = defineFact(
  {
    siblings: { kind: 'command', argv: ['sh', '-c', 'cat /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list'] },
    nodes: { kind: 'list', path: '/sys/devices/system/node' },
  },
  ({ siblings, nodes }): HostRiskFacts['cpuTopology'] => {
    const cpus = siblings.exitCode === 0 ? siblings.stdout.split('\n').filter(Boolean) : [];
    const numaNodes = (nodes ?? []).filter((name) => /^node\d{1,4}$/.test(name)).length;
    return cpus.length === 0 ? null : { cpusPerCore: Math.floor(cpus.length / new Set(cpus).size), numaNodes: Math.max(1, numaNodes) };
  },
);

/** Reads the number of CPUs that no container has exclusively, from the state file of the CPU manager; null: unknown. */
export function sharedCpus(rootDir: string) {
  return defineFact({ state: { kind: 'file', path: `${rootDir}/${MANAGER_STATES.cpuManagerPolicy}` } }, ({ state }) => {
    const { policyName, defaultCpuSet } = parseJsonObject(state?.content ?? '') ?? {};
    return policyName === 'static' && typeof defaultCpuSet === 'string' ? (cpusOf(defaultCpuSet)?.size ?? null) : null;
  });
}

/**
 * Running pods that a kubelet with other managers rejects at its start. Only pods whose requests alone decide are
 * losses; what depends on the CPUs and memory that other pods hold is a warning.
 * @see kubernetes/kubernetes pkg/kubelet/cm/cpumanager/policy_static.go Allocate, enforceSMTAlignment;
 *   pkg/kubelet/cm/topologymanager/scope_container.go Admit; pkg/kubelet/cm/memorymanager/policy_static.go Allocate (1.36)
 */
export function alignmentRisks(input: RiskInput): readonly PodRisk[] {
  const guaranteed = presentPods(input.pods, ({ exclusiveCpus }) => exclusiveCpus !== undefined);
  if (guaranteed.length === 0) return [];
  const exclusive = guaranteed.filter(({ exclusiveCpus = [] }) => exclusiveCpus.length > 0);
  const numaNodes = input.host?.cpuTopology?.numaNodes ?? null;
  return [...coreRisks(input, exclusive), ...(numaNodes === 1 ? [] : numaRisks(input, guaranteed))];
}

const FULL_CORES = 'cpuManagerPolicyOptions.full-pcpus-only';
const STRICT = 'cpuManagerPolicyOptions.strict-cpu-reservation';

/** Whether the kubelet gives containers whole cores. */
export function wantsFullCores(config: RiskInput['after']): boolean {
  return textAt(config, 'cpuManagerPolicy') === 'static' && /^(?:1|t|true)$/i.test(textAt(config, FULL_CORES));
}

function coreRisks(input: RiskInput, pods: readonly RiskPod[]): readonly PodRisk[] {
  const { before, after, host } = input;
  if (!wantsFullCores(after)) return [];
  const path = 'cpuManagerPolicyOptions';
  const free = freeCpus(input);
  const crowded = free === null ? [] : rejectedOnFullCores(pods, free);
  const why = `${FULL_CORES}: at each start, the kubelet rejects Guaranteed pods with more CPUs than are free, also those that it has assigned CPUs (SMTAlignmentError)`;
  const lost: readonly PodRisk[] = crowded.length === 0 ? [] : [loss(path, why, namesOf(crowded))];
  if (before !== null && wantsFullCores(before)) return lost;
  const perCore = host?.cpuTopology?.cpusPerCore ?? null;
  const rest = pods.filter((pod) => !crowded.includes(pod));
  const isPartial = ({ exclusiveCpus = [] }: RiskPod): boolean => perCore !== null && exclusiveCpus.some((cpus) => cpus % perCore !== 0);
  const partial = rest.filter(isPartial);
  const others = rest.filter((pod) => !isPartial(pod));
  const threads = `${FULL_CORES}: each core has ${perCore} CPUs: the kubelet rejects Guaranteed pods that do not request a multiple of ${perCore} (SMTAlignmentError)`;
  const unknown = `${FULL_CORES}: the kubelet rejects Guaranteed pods that request more CPUs than free cores have (SMTAlignmentError). May affect: ${namesOf(others).join(', ')}`;
  return [
    ...lost,
    ...(partial.length === 0 ? [] : [loss(path, threads, namesOf(partial))]),
    ...(others.length === 0 ? [] : [warning(path, unknown)]),
  ];
}

/**
 * The most CPUs that a kubelet finds free in its state file at its next start; null: unknown, or it starts with an empty
 * state.
 */
function freeCpus(input: RiskInput): number | null {
  const { before, after, host } = input;
  const shared = host?.sharedCpus ?? null;
  if (before === null || shared === null || textAt(before, 'cpuManagerPolicy') !== 'static') return null;
  if (affects(input, ['reservedSystemCPUs', 'kubeReserved', 'systemReserved', STRICT])) return null;
  // The reserved CPUs belong to the shared ones, unless they are strictly reserved.
  const reserved = textAt(after, STRICT) === 'true' ? 0 : Math.ceil(reservedAmounts(after).cpuMillis / 1000);
  return Math.max(0, shared - reserved);
}

/** In the order of admission; the CPUs of a rejected pod are free for the next. */
function rejectedOnFullCores(pods: readonly RiskPod[], free: number): readonly RiskPod[] {
  const rejected: RiskPod[] = [];
  let left = free;
  for (const pod of pods.toSorted(byAdmission)) {
    const { exclusiveCpus = [] } = pod;
    if (exclusiveCpus.every((cpus) => cpus <= left)) continue;
    rejected.push(pod);
    left += exclusiveCpus.reduce((sum, cpus) => sum + cpus, 0);
  }
  return rejected;
}

function numaRisks(input: RiskInput, pods: readonly RiskPod[]): readonly PodRisk[] {
  const { after, host } = input;
  const condition = host?.cpuTopology == null ? ', if the host has several NUMA nodes' : '';
  const affected = `May affect${condition}: ${namesOf(pods).join(', ')}`;
  const topology = textAt(after, 'topologyManagerPolicy');
  const findings: PodRisk[] = [];
  if (['restricted', 'single-numa-node'].includes(topology) && affects(input, ALIGNMENT_FIELDS)) {
    const why = `topologyManagerPolicy ${topology}: the kubelet admits its pods again, and rejects those whose CPUs, memory and devices it cannot align (TopologyAffinityError). ${affected}`;
    findings.push(warning('topologyManagerPolicy', why));
  }
  if (textAt(after, 'memoryManagerPolicy') === 'Static' && affects(input, ['memoryManagerPolicy'])) {
    const why = `memoryManagerPolicy Static: the kubelet rejects Guaranteed pods for whose memory it finds no NUMA nodes (UnexpectedAdmissionError). ${affected}`;
    findings.push(warning('memoryManagerPolicy', why));
  }
  return findings;
}
