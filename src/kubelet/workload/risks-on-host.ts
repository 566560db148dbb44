import { isAppError } from '../../base/errors.ts';
import type { Host } from '../../host/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBELET_DIR } from '../../kube/well-known.ts';
import type { PlacedFlag } from '../effective/running-config.ts';
import type { PodRisk } from './pod-risk.ts';
import { findPodRisks } from './pod-risks.ts';
import { readPodInput } from './read-pod-input.ts';
import { type RiskFactsOptions, readRiskFacts } from './risk-facts.ts';
import type { HostRiskFacts, RiskInput } from './risk-input.ts';

export interface RisksOnHostOptions extends Pick<RiskInput, 'nodeName' | 'minor' | 'catalogue'>, Omit<RiskFactsOptions, 'rootDir'> {
  readonly host: Host;
  /** Null: the pods, the Node and the DNS Services are unknown. */
  readonly cluster: Cluster | null;
  /** Flags of the kubelet. */
  readonly flags: readonly Pick<PlacedFlag, 'name' | 'value'>[];
  /** The change removes the state files of the kubelet's managers that contradict it. Default: false */
  readonly removesManagerStates?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds what a change of the configuration of a node would end, with the facts of its host and of the API
 * server. Only facts on which the change depends are read; those that cannot be read are unknown and cause no
 * finding.
 * @returns as `findPodRisks`
 */
export async function findRisksOnHost(options: RisksOnHostOptions): Promise<readonly PodRisk[]> {
  const { host, cluster, nodeName, minor, catalogue, flags, removesManagerStates = false, signal, ...change } = options;
  const rootDir = flags.findLast(({ name }) => name === 'root-dir')?.value ?? KUBELET_DIR;
  const [pods, facts] = await Promise.all([
    cluster === null ? UNKNOWN : readPodInput(cluster, nodeName, change),
    unlessFailed(readRiskFacts(host, { ...change, rootDir }, signal), signal),
  ]);
  const { before, after } = change;
  const found = facts !== null && removesManagerStates ? { ...facts, managerPolicies: {} } : facts;
  return findPodRisks({ before, after, ...pods, nodeName, minor, catalogue, host: found });
}

const UNKNOWN = { pods: null, node: null, dnsServices: null };

async function unlessFailed(facts: Promise<HostRiskFacts>, signal: AbortSignal | undefined): Promise<HostRiskFacts | null> {
  try {
    return await facts;
  } catch (error) {
    if (signal?.aborted === true || !isAppError(error)) throw error;
    return null;
  }
}
