import { isAppError } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { PlacedFlag } from '../effective/running-config.ts';
import { CREDENTIAL_PROVIDER_FLAGS, missingCredentialProvider } from '../facts/credential-provider.ts';
import { rootDirOf } from './manager-states.ts';
import type { PodRisk } from './pod-risk.ts';
import { findPodRisks } from './pod-risks.ts';
import { readPodInput } from './read-pod-input.ts';
import { type RiskFactsOptions, readRiskFacts } from './risk-facts.ts';
import type { RiskInput } from './risk-input.ts';

interface RisksOnHostOptions extends Pick<RiskInput, 'nodeName' | 'minor' | 'catalogue'>, Omit<RiskFactsOptions, 'rootDir'> {
  readonly host: Host;
  /** Null: the pods, the Node and the DNS Services are unknown. */
  readonly cluster: Cluster | null;
  /** Flags of the kubelet. */
  readonly flags: readonly Pick<PlacedFlag, 'name' | 'value'>[];
  /** The flags that the change sets; their files are looked for. Default: none */
  readonly newFlags?: readonly Pick<PlacedFlag, 'name' | 'value'>[];
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
  const { host, cluster, nodeName, minor, catalogue, flags, newFlags = [], removesManagerStates = false, signal, ...change } = options;
  const rootDir = rootDirOf(flags);
  const [pods, facts, provider] = await Promise.all([
    cluster === null ? UNKNOWN : readPodInput(cluster, nodeName, change),
    unlessFailed(readRiskFacts(host, { ...change, rootDir }, signal), signal),
    unlessFailed(providerRisks(host, { flags, newFlags, hidden: change.hidden }, signal), signal),
  ]);
  const { before, after } = change;
  const found = facts !== null && removesManagerStates ? { ...facts, managerPolicies: {} } : facts;
  return [...(provider ?? []), ...findPodRisks({ before, after, ...pods, nodeName, minor, catalogue, host: found })];
}

/** Flags of a credential provider whose files do not exist. */
async function providerRisks(
  host: Host,
  { flags, newFlags, hidden }: Required<Pick<RisksOnHostOptions, 'flags' | 'newFlags' | 'hidden'>>,
  signal: AbortSignal | undefined,
): Promise<readonly PodRisk[]> {
  const value = (wanted: string): string => flags.findLast(({ name }) => name === wanted)?.value ?? '';
  const [binDir = '', config = ''] = CREDENTIAL_PROVIDER_FLAGS.map(value);
  const isNew = newFlags.some(({ name }) => CREDENTIAL_PROVIDER_FLAGS.some((flag) => flag === name));
  if (!isNew || hidden.some((start) => binDir.startsWith(start) || config.startsWith(start))) return [];
  const missing = await missingCredentialProvider(host, { binDir, config }, signal);
  if (missing === null) return [];
  const why = `--${missing.flag}: ${missing.why}: the kubelet would exit`;
  return [{ path: `--${missing.flag}`, why, pods: [], severity: 'loss', stopsKubelet: true }];
}

const UNKNOWN = { pods: null, node: null, dnsServices: null };

async function unlessFailed<T>(facts: Promise<T>, signal: AbortSignal | undefined): Promise<T | null> {
  try {
    return await facts;
  } catch (error) {
    if (signal?.aborted === true || !isAppError(error)) throw error;
    return null;
  }
}
