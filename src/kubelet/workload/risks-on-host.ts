import { isAppError } from '../../base/errors.ts';
import { isJsonObject } from '../../base/json.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { PlacedFlag } from '../effective/running-config.ts';
import { rootDirOf } from './manager-states.ts';
import { exit, type PodRisk } from './pod-risk.ts';
import { findPodRisks } from './pod-risks.ts';
import { readPodInput } from './read-pod-input.ts';
import { type RiskFactsOptions, readRiskFacts } from './risk-facts.ts';
import type { HostRiskFacts, RiskInput } from './risk-input.ts';

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
  /** Whether the node is drained before the change, as for `readPodInput`. Default: it is not */
  readonly isDrained?: (() => Promise<boolean>) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds what a change of the configuration of a node would end, with the facts of its host and of the API
 * server. Only facts on which the change depends are read; those that cannot be read are unknown and cause no
 * finding.
 * @returns as `findPodRisks`
 */
export async function findRisksOnHost(options: RisksOnHostOptions): Promise<readonly PodRisk[]> {
  const {
    host,
    cluster,
    nodeName,
    minor,
    catalogue,
    flags,
    newFlags = [],
    removesManagerStates = false,
    signal,
    isDrained,
    ...change
  } = options;
  const rootDir = rootDirOf(flags);
  const [pods, facts, provider] = await Promise.all([
    cluster === null ? UNKNOWN : readPodInput(cluster, nodeName, change, { isDrained }),
    unlessFailed(readRiskFacts(host, { ...change, rootDir }, signal), signal),
    unlessFailed(providerRisks(host, { flags, newFlags, hidden: change.hidden }, signal), signal),
  ]);
  const { before, after } = change;
  const { evicted, ...ofCluster } = pods;
  const found = facts !== null && removesManagerStates ? { ...facts, managerPolicies: {} } : facts;
  const afterDrain = found === null || evicted.length === 0 ? found : { ...found, ...factsWithout(found, evicted) };
  return [...(provider ?? []), ...findPodRisks({ before, after, ...ofCluster, nodeName, minor, catalogue, host: afterDrain })];
}

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
  return [exit(`--${missing.flag}`, why)];
}

const UNKNOWN = { pods: null, evicted: [], node: null, dnsServices: null };

/** What the pods of a host use after the eviction of some; the memory and the CPUs that they free are unknown. */
function factsWithout({ podTasks }: HostRiskFacts, evicted: readonly string[]): Partial<HostRiskFacts> {
  const left = podTasks === null ? null : Object.fromEntries(Object.entries(podTasks).filter(([uid]) => !evicted.includes(uid)));
  return { podTasks: left, podsMemoryBytes: null, sharedCpus: null };
}

async function unlessFailed<T>(facts: Promise<T>, signal: AbortSignal | undefined): Promise<T | null> {
  try {
    return await facts;
  } catch (error) {
    if (signal?.aborted === true || !isAppError(error)) throw error;
    return null;
  }
}

/** The flags of the programs that give the kubelet credentials for registries, in the order in which it reads them. */
const CREDENTIAL_PROVIDER_FLAGS = ['image-credential-provider-bin-dir', 'image-credential-provider-config'] as const;

/**
 * Looks for the files of a credential provider as the kubelet does at its start: the directory, the configuration (a
 * file, or the files of a directory), and the program of each provider.
 * @param flags the values of both flags; the kubelet needs the second as soon as one is set
 * @returns a flag with which the kubelet exits ("Failed to register CRI auth plugins"), and why, as a clause; null: all exist
 * @throws the errors of `host.query`
 * @see kubernetes/kubernetes pkg/credentialprovider/plugin/plugin.go RegisterCredentialProviderPlugins, config.go
 *   readCredentialProviderConfig (1.36)
 */
async function missingCredentialProvider(
  host: Host,
  { binDir, config }: { readonly binDir: string; readonly config: string },
  signal?: AbortSignal,
): Promise<{ readonly flag: (typeof CREDENTIAL_PROVIDER_FLAGS)[number]; readonly why: string } | null> {
  const [ofBin, ofConfig] = CREDENTIAL_PROVIDER_FLAGS;
  if (binDir === '' && config === '') return null;
  if (binDir === '' || config === '') {
    const flag = binDir === '' ? ofBin : ofConfig;
    return { flag, why: `--${flag} is not set, but --${flag === ofBin ? ofConfig : ofBin} is` };
  }
  const found = await observe(
    host,
    combineFacts({ dir: fileFacts([binDir], STATE), files: fileFacts([config]), names: namesIn(config) }),
    signal,
  );
  if ((found.dir.get(binDir) ?? null) === null) return { flag: ofBin, why: `the directory ${binDir} does not exist on the host` };
  const file = found.files.get(config) ?? null;
  if (file === null) return { flag: ofConfig, why: `${config} does not exist on the host` };
  const inDirectory = file.type === 'directory' ? found.names.map((name) => `${config}/${name}`) : [];
  if (file.type === 'directory' && inDirectory.length === 0)
    return { flag: ofConfig, why: `the directory ${config} contains no file .json, .yaml or .yml` };
  const texts = file.type === 'directory' ? [...(await observe(host, fileFacts(inDirectory), signal)).values()] : [file];
  const programs = texts.flatMap((one) => providersIn(one?.content ?? '')).map((name) => `${binDir}/${name}`);
  if (programs.length === 0) return { flag: ofConfig, why: `${config} names no provider` };
  const present = await observe(host, fileFacts(programs, STATE), signal);
  const missing = programs.find((path) => !isExecutable(present.get(path) ?? null));
  if (missing === undefined) return null;
  const isThere = (present.get(missing) ?? null) !== null;
  return {
    flag: ofBin,
    why: `the program ${missing}, which ${config} names, ${isThere ? 'is not executable' : 'does not exist on the host'}`,
  };
}

/** Programs are large. */
const STATE = { content: false } as const;

function namesIn(directory: string) {
  return defineFact({ names: { kind: 'list', path: directory } }, ({ names }) =>
    (names ?? []).filter((name) => /\.(?:json|ya?ml)$/.test(name)).toSorted(),
  );
}

function providersIn(text: string): readonly string[] {
  const root = parseSource(text, 'config').documents[0]?.root ?? null;
  const value = root === null ? null : sourceToJson(root);
  const providers = isJsonObject(value) && Array.isArray(value.providers) ? value.providers : [];
  return providers.flatMap((one) => (isJsonObject(one) && typeof one.name === 'string' ? [one.name] : []));
}

function isExecutable(file: { readonly type: string; readonly mode: number } | null): boolean {
  return file?.type === 'file' && (file.mode & 0o111) !== 0;
}
