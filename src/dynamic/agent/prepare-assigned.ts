import { isAppError, unlessRefused } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { configMapData, type KubeObject } from '../../kube/object.ts';
import { type Catalogue, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { type ObservedKubelet, observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { queryKubelet } from '../../kubelet/effective/query-kubelet.ts';
import type { ParsedHostFile } from '../../kubelet/effective/running-config.ts';
import { cgroupDriverIssue, runtimeCgroupDriver } from '../../kubelet/facts/cgroup-driver.ts';
import {
  ALLOW_POD_LOSS_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  type ConfigIdentity,
  type ConfigSource,
  describeSource,
  parseSourceAnnotation,
  RETRY_ANNOTATION,
} from '../../kubelet/layers/config-source.ts';
import { checkpointDirectory, PAYLOAD_FILE } from '../../kubelet/node-agent/layout.ts';
import { checkDirectories } from '../../kubelet/workload/check-directories.ts';
import { managerStateTexts, rootDirOf, unusableManagerStates } from '../../kubelet/workload/manager-states.ts';
import { podsOfNode } from '../../kubelet/workload/pod.ts';
import type { PodRisk } from '../../kubelet/workload/pod-risk.ts';
import { describeRisk } from '../../kubelet/workload/pod-risks.ts';
import { findRisksOnHost } from '../../kubelet/workload/risks-on-host.ts';
import { hasPodsToEvict } from '../../maintenance/forecast/drain-pod.ts';
import { type AgentOptions, canReplaceManagerState } from './agent-options.ts';
import type { ChangePolicy, PayloadNode } from './payload-changes.ts';
import { expectedConfigz, GROUP_LABEL, type PreparedPayload, preparePayload } from './prepare-payload.ts';
import type { Fault, SyncFailure } from './state.ts';

export interface AssignedObject {
  readonly source: ConfigSource;
  readonly object: KubeObject;
  readonly node: ReturnType<typeof readNodeProperties>;
}

/** A payload with the effects of the change on the pods of the node. */
export interface PreparedAssignment extends PreparedPayload {
  /** Findings that do not reject the payload, as sentences. */
  readonly podWarnings: readonly string[];
}

/**
 * Prepares the payload of an assignment and validates it for the current state of the node, also with the
 * kubelet binary. A payload that would end pods is rejected unless the operator allowed it for this
 * assignment. Nothing is changed.
 * @param limits.proven hashes of payloads that already ran on this node: the kubelet does not validate them again
 * @param limits.signer the signer of the ConfigMap, if its changes are limited
 * @throws the errors of observing the kubelet
 */
export async function prepareAssigned(
  { source, object, node }: AssignedObject,
  { proven, signer }: { readonly proven: readonly string[]; readonly signer?: ChangePolicy['signer'] },
  options: AgentOptions,
): Promise<PreparedAssignment> {
  const { host, catalogue, localConfig, allow, signal } = options;
  const kubelet = await observeKubelet(host, catalogue, signal);
  const { version, minor, flags } = kubelet;
  const { local } = await host.query({ local: { kind: 'file', path: localConfig } }, { signal });
  const prepared = preparePayload(
    { identity: identityOf(source, object), data: configMapData(object) },
    payloadNodeOf(kubelet, options, node.group, local?.content ?? ''),
    { allow, isDrained: node.isCordoned && (await isDrained(options)), proven, signer },
  );
  const { hash } = prepared.candidate;
  const accept = (podWarnings: readonly string[]): PreparedAssignment => ({ ...prepared, podWarnings });
  if (prepared.files === null || (hash !== null && proven.includes(hash))) return accept([]);
  const refuse = (cause: string, code: Fault['code'] = 'VALIDATION_FAILED'): PreparedAssignment => ({
    ...accept([]),
    files: null,
    refusal: { code, cause },
  });
  const directories = { before: kubelet.running.layered.config, after: prepared.config ?? {}, hidden: HIDDEN_FROM_AGENT };
  const [directoryIssue] = await checkDirectories(host, directories, signal);
  if (directoryIssue !== undefined) return refuse(`${directoryIssue.path}: ${directoryIssue.why}`);
  const wrongDriver = await driverIssue(host, prepared.config ?? {}, kubelet, signal);
  if (wrongDriver !== null) return refuse(wrongDriver);
  const asked = { host, path: 'kubelet', version, minor, flags, running: null, cgroupVersion: null };
  const acceptance = await queryKubelet(asked, prepared.files[PAYLOAD_FILE] ?? '', { catalogue, signal });
  if (acceptance.verdict === 'refused' && !acceptance.isHost) return refuse(`the kubelet refuses the configuration: ${acceptance.cause}`);
  const risks = await podRisks(prepared, kubelet, options);
  const losses = risks.filter(({ severity }) => severity === 'loss');
  if (losses.length > 0 && node.allowsPodLossOf !== describeSource(source)) return refuse(podLossCause(losses), 'NOT_ALLOWED');
  const [state] = await unusableStates(kubelet, prepared.config ?? {}, options);
  if (state !== undefined) return refuse(`${state.message}. ${state.hint}`);
  return accept(risks.map(describeRisk));
}

/** Whether the node has no pods that a drain would evict; false: unknown. */
async function isDrained({ cluster, nodeName }: AgentOptions): Promise<boolean> {
  const pods = await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(nodeName) }));
  return pods !== null && !hasPodsToEvict(pods.items);
}

export function identityOf(source: ConfigSource, { metadata: { uid = '', resourceVersion = '' } }: KubeObject): ConfigIdentity {
  return { ...source, uid, resourceVersion };
}

/** A node for the comparison with a payload. @param localText the local configuration */
export function payloadNodeOf(
  kubelet: ObservedKubelet,
  { nodeName, directory, catalogue, localConfig }: AgentOptions,
  group: string | null,
  localText: string,
): PayloadNode {
  const { version, minor, flags } = kubelet;
  return {
    name: nodeName,
    group,
    directory,
    minor,
    kubeletMinor: parseMinor(version) ?? minor,
    catalogue,
    local: { path: localConfig, text: localText },
    flags,
    dropIns: kubelet.setup.dropIns,
    running: kubelet.kubelet === null ? null : kubelet.running.layered.config,
    cgroupVersion: null,
  };
}

const REPORTED_RISKS = 3;

function podLossCause(losses: readonly PodRisk[]): string {
  const more = losses.length > REPORTED_RISKS ? ` and ${losses.length - REPORTED_RISKS} more findings` : '';
  return `${losses.slice(0, REPORTED_RISKS).map(describeRisk).join('; ')}${more}. To apply the configuration anyway, assign it again with --allow-pod-loss`;
}

/** Directories that the sandbox of the agent's unit hides or replaces. */
const HIDDEN_FROM_AGENT = ['/home/', '/root/', '/run/user/', '/tmp/', '/var/tmp/'];

/** What the change would end on this node. */
async function podRisks(
  { candidate: { hash }, files, config }: PreparedPayload,
  { running, flags, minor }: ObservedKubelet,
  { host, cluster, nodeName, catalogue, directory, allow, signal }: AgentOptions,
): Promise<readonly PodRisk[]> {
  const checkpoint = checkpointDirectory(directory, hash ?? '');
  const given = Object.fromEntries(Object.entries(files ?? {}).map(([name, text]) => [`${checkpoint}/${name}`, text]));
  const change = { before: running.layered.config, after: config ?? {}, given, hidden: HIDDEN_FROM_AGENT };
  const removesManagerStates = canReplaceManagerState(allow);
  return findRisksOnHost({ ...change, host, cluster, nodeName, minor, catalogue, flags, removesManagerStates, signal });
}

/** State files of the kubelet's managers with which neither the payload nor the previous configuration would start. */
async function unusableStates(
  { flags, running }: ObservedKubelet,
  after: JsonObject,
  { host, allow, signal }: AgentOptions,
): Promise<ReturnType<typeof unusableManagerStates>> {
  const rootDir = rootDirOf(flags);
  const texts = await observe(host, managerStateTexts(rootDir), signal);
  const change = { before: running.layered.config, after };
  return unusableManagerStates(change, rootDir, texts, { removesOutdated: canReplaceManagerState(allow) });
}

/** The kubelet would exit at its next start: its state files are unusable. */
export class KubeletNotStartableError extends Error {}

/**
 * Returns if the kubelet cannot be observed.
 * @throws KubeletNotStartableError
 */
export async function requireStartable(options: AgentOptions): Promise<void> {
  const kubelet = await observeKubelet(options.host, options.catalogue, options.signal).catch((error: unknown) => {
    if (!isAppError(error)) throw error;
    return null;
  });
  if (kubelet === null || kubelet.kubelet === null) return;
  const [state] = await unusableStates(kubelet, kubelet.running.layered.config, options);
  if (state !== undefined) throw new KubeletNotStartableError(`${state.message}. ${state.hint}`);
}

/** A kubelet with a cgroup driver other than its runtime's starts and becomes Ready, but cannot start pods. */
async function driverIssue(
  host: Host,
  desired: JsonObject,
  { running, flags }: ObservedKubelet,
  signal: AbortSignal,
): Promise<string | null> {
  if (desired.cgroupDriver === running.layered.config.cgroupDriver) return null;
  const socket = desired.containerRuntimeEndpoint ?? flags.findLast(({ name }) => name === 'container-runtime-endpoint')?.value;
  if (typeof socket !== 'string' || socket === '') return null;
  return cgroupDriverIssue(desired.cgroupDriver, await observe(host, runtimeCgroupDriver(socket), signal));
}

/** The configz fields that a kubelet with the payload must show. */
export function expectedOf(payload: ParsedHostFile, kubelet: ObservedKubelet, catalogue: Catalogue): JsonObject {
  const { minor, flags } = kubelet;
  return expectedConfigz(payload, { minor, catalogue, flags, dropIns: kubelet.setup.dropIns });
}

/**
 * Reads the assignment of a Node.
 * @param namespace namespace whose ConfigMaps the agent reads
 */
export function readNodeAssignment(
  node: KubeObject,
  namespace: string,
):
  | { readonly kind: 'nothing' }
  /** Invalid, or in a namespace that this agent does not read. */
  | { readonly kind: 'unusable'; readonly issue: SyncFailure }
  | { readonly kind: 'source'; readonly source: ConfigSource } {
  const { source, issue } = parseSourceAnnotation(node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]);
  if (issue !== null) return { kind: 'unusable', issue: { code: 'UNKNOWN_SOURCE', cause: `${CONFIG_SOURCE_ANNOTATION}: ${issue}` } };
  if (source === null) return { kind: 'nothing' };
  if (source.namespace === namespace) return { kind: 'source', source };
  const cause = `${describeSource(source)}: this agent reads only ConfigMaps of namespace ${namespace}`;
  return { kind: 'unusable', issue: { code: 'DOWNLOAD_FAILED', cause } };
}

/** Properties of a Node that affect how a ConfigMap is prepared for it. */
export function readNodeProperties({ metadata, spec }: KubeObject) {
  return {
    group: metadata.labels?.[GROUP_LABEL] ?? null,
    isCordoned: isJsonObject(spec) && spec.unschedulable === true,
    /** Value of the annotation that requests a retry of a rejected payload. */
    retry: metadata.annotations?.[RETRY_ANNOTATION] ?? null,
    /** The assignment that may end pods, as `describeSource` writes it. */
    allowsPodLossOf: metadata.annotations?.[ALLOW_POD_LOSS_ANNOTATION] ?? null,
  };
}

/** A key that is equal for equal results: a version of a ConfigMap, read for a Node with the same properties. */
export function preparationKey(
  source: ConfigSource,
  { metadata: { uid, resourceVersion } }: KubeObject,
  properties: ReturnType<typeof readNodeProperties>,
): string {
  const { group, isCordoned, retry, allowsPodLossOf } = properties;
  return JSON.stringify([describeSource(source), uid, resourceVersion, group, isCordoned, retry, allowsPodLossOf]);
}
