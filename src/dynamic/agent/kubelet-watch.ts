import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { Host } from '../../host/access/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { DEFAULT_PAUSE_IMAGE } from '../../kubeadm/control-plane/images.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { decodeKubeletConfiguration } from '../../kubelet/documents/decode.ts';
import { readConfigz } from '../../kubelet/effective/configz.ts';
import { healthzUrl } from '../../kubelet/effective/healthz-url.ts';
import { type ObservedKubelet, observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { type ParsedHostFile, parseHostFile } from '../../kubelet/effective/running-config.ts';
import type { Observation } from '../../kubelet/health/assess.ts';
import type { TrialBaseline } from '../../kubelet/health/baseline.ts';
import { minorOfNode, readNodeReport } from '../../kubelet/health/observe-change.ts';
import type { PodWatch } from '../../kubelet/health/pod-watch.ts';
import { type ProbedKubelet, pauseImageOn, removeStaleProbe } from '../../kubelet/health/run-probe.ts';
import { missingShutdownLock } from '../../kubelet/health/shutdown-lock.ts';
import { PAYLOAD_FILE } from '../../kubelet/node-agent/layout.ts';
import { shutdownField, shutdownSeconds } from '../../kubelet/workload/shutdown-risks.ts';
import type { CheckpointStore } from './checkpoint-store.ts';
import { type ConfigzSource, ConfigzUnavailableError } from './configz-source.ts';
import { inspectKubelet } from './kubelet-control.ts';
import { expectedOf } from './prepare-assigned.ts';
import { differingFields } from './prepare-payload.ts';
import { createProcessFact, type FactReadFailure, type ProcessFact } from './process-fact.ts';
import { type AgentState, desiredPayload } from './state.ts';

/** Observes a kubelet: on its host, by its configz and through its Node. */
export interface KubeletWatch {
  /** @param node reason as a clause: the state of the Node is not known */
  nodeIs(node: KubeObject | string): void;
  inspect(state: AgentState): Promise<Observation>;
  /**
   * Observes the kubelet and its node before a switch that starts a trial.
   * @throws Error when the kubelet or the Node cannot be read
   */
  recordBaseline(): Promise<TrialBaseline>;
  /** Later observations are about the new process. */
  beginSwitch(state: AgentState): Promise<void>;
  /** Removes the probe pod of an agent that was killed. */
  removeStaleProbePod(): Promise<void>;
}

interface KubeletWatchOptions {
  readonly host: Host;
  readonly nodeName: string;
  readonly cluster: Cluster;
  readonly store: CheckpointStore;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly configz: ConfigzSource;
  readonly workload: PodWatch;
  /** Called with the reason why configz could not be read. */
  readonly onIssue: (message: string) => void;
  readonly signal: AbortSignal;
}

const DEFAULT_MAX_PODS = 110;
const NOT_HEALTHY = 'the kubelet was not healthy before the change';

interface Watch extends KubeletWatchOptions {
  readonly readPayload: (hash: string | null) => Promise<ParsedHostFile>;
  /** The Node, which events replace between two observations. Null: not known. */
  node: KubeObject | null;
  whyNoNode: string;
  /** Start of the last switch. */
  switchedAt: number;
  /** Facts that are read once for each process. */
  readonly compared: ProcessFact<readonly string[]>;
  readonly proven: ProcessFact<true>;
  readonly started: ProcessFact<JsonObject>;
}

export function kubeletWatch(options: KubeletWatchOptions): KubeletWatch {
  const { catalogue, host, clock, workload, onIssue, signal } = options;
  const fact = <T>(): ProcessFact<T> => createProcessFact<T>(clock, onIssue);
  const watch: Watch = {
    ...options,
    readPayload: payloadReader(options.store),
    node: null,
    whyNoNode: 'the Node has not been read yet',
    switchedAt: clock.now().getTime(),
    compared: fact(),
    proven: fact(),
    started: fact(),
  };
  return {
    nodeIs: (next) => {
      watch.node = typeof next === 'string' ? null : next;
      if (typeof next === 'string') watch.whyNoNode = next;
    },
    inspect: (state) => inspect({ ...watch }, state),
    removeStaleProbePod: async () => {
      try {
        const { running } = await observeKubelet(host, catalogue, signal);
        await removeStaleProbe({ host, signal }, probedKubelet(running.layered.config, watch.node));
      } catch (error) {
        signal.throwIfAborted();
        onIssue(`cannot check whether an earlier agent left a probe pod: ${messageOf(error)}`);
      }
    },
    recordBaseline: () => recordBaseline({ ...watch }),
    beginSwitch: async (state) => {
      if (state.phase !== 'trial') await workload.end();
      watch.switchedAt = clock.now().getTime();
      for (const one of [watch.compared, watch.proven, watch.started]) one.forget();
    },
  };
}

async function inspect(watch: Watch, state: AgentState): Promise<Observation> {
  const { host, node, store, catalogue, compared, proven, workload, switchedAt, signal } = watch;
  const desired = desiredPayload(state)?.hash ?? null;
  const own = nodeOf(watch, state);
  const payload = await watch.readPayload(desired);
  const config = configOf(payload, catalogue, minorOfNode(node));
  const since = { restarts: state.watch.exits.restarts, sinceSeconds: switchedAt / 1000, signal };
  const { pid, ageMs, ...seen } = await inspectKubelet(host, { healthzUrl: healthzUrl(config), ...since });
  const isDesired = desired !== null && seen.runs === desired && pid !== null;
  const isProven = isDesired && (await proven.of(pid, () => prove(watch, desired, ageMs))) !== null;
  const isPointed = !isDesired || state.switching !== null || (await store.readPointer()) === desired;
  const isAsked = isDesired && seen.healthz?.ok !== false && own !== null;
  const differing = isAsked ? await compared.of(pid, () => compare(watch, payload)) : null;
  const credentialRefusal = isAsked && differing === null ? refusalOf(compared.issue) : null;
  // Reports since the start of this process are about it, even if the agent was started later.
  const nodeReport = readNodeReport(own, startOf(watch, ageMs));
  const unknown = unknownOf(watch, nodeReport, own !== null);
  const observation = { ...seen, pid, ageMs, isProven, isPointed, differing, ...nodeReport, credentialRefusal, unknown };
  if (state.phase !== 'trial' || state.switching !== null || state.baseline === null) return observation;
  const isStarted = isProven && seen.healthz?.ok !== false;
  const shutdownIssue = isStarted && !state.mayLosePods ? await findShutdownIssue(watch, pid, state.baseline) : null;
  // The pods of a Node that was deleted are deleted with it.
  if (own === null) return { ...observation, shutdownIssue };
  const isUp = isStarted && nodeReport.ready?.is === true;
  const { losses } = await workload.losses(state.baseline);
  const probe = await workload.probe(state.baseline, probedKubelet(config, node), isUp ? pid : null);
  return { ...observation, shutdownIssue, losses: state.mayLosePods ? [] : losses, probe };
}

async function recordBaseline(watch: Watch): Promise<TrialBaseline> {
  const { host, node, nodeName, cluster, catalogue, workload, switchedAt, signal } = watch;
  // An agent that was restarted has not received its Node yet.
  const known = node ?? (await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }));
  if (known === null) throw new Error(`the Node ${nodeName} does not exist, so the trial was not started`);
  const kubelet = await observeKubelet(host, catalogue, signal);
  const { config } = kubelet.running.layered;
  const from = { healthzUrl: healthzUrl(config), restarts: null, sinceSeconds: switchedAt / 1000, signal };
  const { unit, healthz, ageMs, cpuShare = null } = await inspectKubelet(host, from);
  const { ready, pressures } = readNodeReport(known, startOf(watch, ageMs));
  const isUp = unit?.activeState === 'active' && healthz?.ok !== false;
  const isReady = ready?.is ?? null;
  // A kubelet that is starting shows nothing about the credential.
  const isKnown = isUp || isReady === false;
  return {
    ...(await workload.before(probedKubelet(config, known), isUp && isNodeReady(known) ? null : NOT_HEALTHY)),
    isReady,
    pressures,
    cpuShare,
    shutdownSeconds: shutdownSeconds(config),
    isCredentialAccepted: isKnown ? await isAccepted(watch, kubelet) : null,
  };
}

function payloadReader(store: CheckpointStore): Watch['readPayload'] {
  let cached: { readonly hash: string; readonly payload: ParsedHostFile } | null = null;
  return async (hash) => {
    if (hash !== null && cached?.hash === hash) return cached.payload;
    const files = hash === null ? null : await store.readCheckpoint(hash);
    const payload = parseHostFile({ path: PAYLOAD_FILE, text: files?.[PAYLOAD_FILE] ?? '' });
    if (hash !== null && files !== null) cached = { hash, payload };
    return payload;
  };
}

/** The fields of the running configuration that differ from the payload. */
async function compare({ host, catalogue, configz, nodeName, signal }: Watch, payload: ParsedHostFile): Promise<readonly string[]> {
  const kubelet = await observeKubelet(host, catalogue, signal);
  const reader = { minor: kubelet.minor, catalogue };
  return differingFields(readConfigz(await configz.query(kubelet), nodeName, reader), expectedOf(payload, kubelet, catalogue), reader);
}

/** Throws the reason why the process is not proven to have read that payload. */
async function prove({ store, clock }: Watch, hash: string, ageMs: number | null): Promise<true> {
  const found = await store.findCheckpoint(hash);
  const isWhole = found !== null && found.files !== null;
  const why = assessProcess({ isWhole, changedAt: found?.changedAt ?? 0, ageMs, now: clock.now().getTime() });
  if (why !== null) throw new Error(why);
  return true;
}

/** Why the graceful shutdown that a trial changed is not in force, as a clause; null: in force, or not known. */
async function findShutdownIssue(
  { host, catalogue, started, signal }: Watch,
  pid: number,
  { shutdownSeconds: before }: TrialBaseline,
): Promise<string | null> {
  if (before === undefined) return null;
  const config = await started.of(pid, async () => (await observeKubelet(host, catalogue, signal)).running.layered.config);
  const field = config === null || shutdownSeconds(config) === before ? null : shutdownField(config);
  return field === null ? null : missingShutdownLock(host, field, signal);
}

/** Null: not known. A Node with another UID is not the one on which the trial began. */
function nodeOf({ node }: Watch, { nodeUid }: AgentState): KubeObject | null {
  return nodeUid === null || node?.metadata.uid === undefined || node.metadata.uid === nodeUid ? node : null;
}

function unknownOf(
  { proven, node, nodeName, whyNoNode }: Watch,
  { ready }: Pick<Observation, 'ready'>,
  hasNode: boolean,
): readonly string[] {
  const unproven = proven.issue === null ? [] : [proven.issue.why];
  if (!hasNode) return [...unproven, node === null ? whyNoNode : `the Node ${nodeName} was re-created`];
  return ready === null ? [...unproven, 'the Node has reported no Ready condition since the kubelet was restarted'] : unproven;
}

/** @param ageMs null: unknown */
function startOf({ clock, switchedAt }: Watch, ageMs: number | null): number {
  return ageMs === null ? switchedAt : clock.now().getTime() - ageMs;
}

/** True also if the credential is authenticated but may not read configz; null: not known. */
async function isAccepted({ configz, signal }: Watch, kubelet: ObservedKubelet): Promise<boolean | null> {
  try {
    await configz.query(kubelet);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    const credential = error instanceof ConfigzUnavailableError ? error.credential : null;
    return credential === null ? null : credential === 'accepted';
  }
}

function refusalOf(issue: FactReadFailure | null): NonNullable<Observation['credentialRefusal']> | null {
  if (issue === null || issue.credential === null || issue.credential === 'accepted') return null;
  return { why: issue.why, isRejection: issue.credential === 'rejected', needsApproval: issue.credential === 'no-certificate' };
}

/** The members of a configuration that a probe pod depends on. @param node null: not known */
function probedKubelet({ staticPodPath, maxPods }: JsonObject, node: KubeObject | null): ProbedKubelet {
  const isDirectory = typeof staticPodPath === 'string' && staticPodPath.startsWith('/');
  return {
    staticPodPath: isDirectory ? trimTrailing(staticPodPath, '/') : null,
    maxPods: typeof maxPods === 'number' ? maxPods : DEFAULT_MAX_PODS,
    image: (node === null ? null : pauseImageOn(node)) ?? DEFAULT_PAUSE_IMAGE,
  };
}

function configOf({ source }: ParsedHostFile, catalogue: Catalogue, minor: Minor): JsonObject {
  const document = source.documents[0];
  return document === undefined ? {} : decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value;
}

/** File times are rounded to seconds; a file time further in the future means that the clock was set back. */
const CLOCK_SLACK_MS = 1_000;

/**
 * Checks that a process was started with the content of the checkpoint on its command line: a kubelet reads
 * its configuration only at its start.
 * @param facts `isWhole`: the content of the checkpoint matches its name; `changedAt`: time of the last write to its files, in
 *   Unix seconds; `ageMs`: of the process, null: unknown; `now`: milliseconds since 1970
 * @returns the reason why that is not proven, as a clause; null: proven
 */
export function assessProcess({
  isWhole,
  changedAt,
  ageMs,
  now,
}: Readonly<{ isWhole: boolean; changedAt: number; ageMs: number | null; now: number }>): string | null {
  if (!isWhole) return 'the configuration file of the kubelet was changed or removed';
  if (ageMs === null) return 'the start time of the kubelet is not known';
  const writtenAt = changedAt * 1000;
  if (writtenAt <= now - ageMs || writtenAt > now + CLOCK_SLACK_MS) return null;
  return 'the configuration file of the kubelet was written after the kubelet was started';
}
