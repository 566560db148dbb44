import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { Host } from '../../host/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { DEFAULT_PAUSE_IMAGE } from '../../kubeadm/control-plane/images.ts';
import { PAYLOAD_FILE } from '../../kubeadm/node-agent/layout.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../../kubelet/decode.ts';
import { readConfigz } from '../../kubelet/effective/configz.ts';
import { healthzUrl } from '../../kubelet/effective/healthz-url.ts';
import { type ObservedKubelet, observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { type ParsedHostFile, parseHostFile } from '../../kubelet/effective/running-config.ts';
import type { Observation } from '../../kubelet/health/assess.ts';
import type { TrialBaseline } from '../../kubelet/health/baseline.ts';
import { minorOfNode, type NodeReport, readNodeReport } from '../../kubelet/health/node-report.ts';
import { pauseImageOn } from '../../kubelet/health/run-probe.ts';
import { missingShutdownLock } from '../../kubelet/health/shutdown-lock.ts';
import type { ProbedKubelet } from '../../kubelet/health/static-probe.ts';
import type { WorkloadWatch } from '../../kubelet/health/trial-pods.ts';
import { shutdownField, shutdownSeconds } from '../../kubelet/workload/shutdown-risks.ts';
import type { CheckpointStore } from '../checkpoint-store.ts';
import { type ConfigzSource, ConfigzUnavailableError } from './configz-source.ts';
import { inspectKubelet } from './kubelet-control.ts';
import { expectedOf } from './prepare-assigned.ts';
import { differingFields } from './prepare-payload.ts';
import { createProcessFact, type FactReadFailure } from './process-fact.ts';
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

export interface KubeletWatchOptions {
  readonly host: Host;
  readonly nodeName: string;
  readonly cluster: Cluster;
  readonly store: CheckpointStore;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly configz: ConfigzSource;
  readonly workload: WorkloadWatch;
  /** Called with the reason why configz could not be read. */
  readonly onIssue: (message: string) => void;
  readonly signal: AbortSignal;
}

const DEFAULT_MAX_PODS = 110;

export function kubeletWatch(options: KubeletWatchOptions): KubeletWatch {
  const { host, nodeName, cluster, store, catalogue, clock, configz, workload, onIssue, signal } = options;
  let node: KubeObject | null = null;
  let whyNoNode = 'the Node has not been read yet';
  let switchedAt = clock.now().getTime();
  let cached: { readonly hash: string; readonly payload: ParsedHostFile } | null = null;
  const compared = createProcessFact<readonly string[]>(clock, onIssue);
  const proven = createProcessFact<true>(clock, onIssue);
  const started = createProcessFact<JsonObject>(clock, onIssue);

  const readPayload = async (hash: string | null): Promise<ParsedHostFile> => {
    if (hash !== null && cached?.hash === hash) return cached.payload;
    const files = hash === null ? null : await store.readCheckpoint(hash);
    const payload = parseHostFile({ path: PAYLOAD_FILE, text: files?.[PAYLOAD_FILE] ?? '' });
    if (hash !== null && files !== null) cached = { hash, payload };
    return payload;
  };

  /** The fields of the running configuration that differ from the payload. */
  const compare = async (payload: ParsedHostFile): Promise<readonly string[]> => {
    const kubelet = await observeKubelet(host, catalogue, signal);
    const reader = { minor: kubelet.minor, catalogue };
    return differingFields(readConfigz(await configz.query(kubelet), nodeName, reader), expectedOf(payload, kubelet, catalogue), reader);
  };

  /** Throws the reason why the process is not proven to have read that payload. */
  const prove = async (hash: string, ageMs: number | null): Promise<true> => {
    const found = await store.findCheckpoint(hash);
    const facts = { isWhole: found !== null && found.files !== null, changedAt: found?.changedAt ?? 0, ageMs, now: clock.now().getTime() };
    const why = assessProcess(facts);
    if (why !== null) throw new Error(why);
    return true;
  };

  /** Why the graceful shutdown that a trial changed is not in force, as a clause; null: in force, or not known. */
  const findShutdownIssue = async (pid: number, { shutdownSeconds: before }: TrialBaseline): Promise<string | null> => {
    if (before === undefined) return null;
    const config = await started.of(pid, async () => (await observeKubelet(host, catalogue, signal)).running.layered.config);
    const field = config === null || shutdownSeconds(config) === before ? null : shutdownField(config);
    return field === null ? null : missingShutdownLock(host, field, signal);
  };

  /** Null: not known. A Node with another UID is not the one on which the trial began. */
  const nodeOf = ({ nodeUid }: AgentState): KubeObject | null =>
    nodeUid === null || node?.metadata.uid === undefined || node.metadata.uid === nodeUid ? node : null;

  const unknownOf = ({ ready }: NodeReport, hasNode: boolean): readonly string[] => [
    ...(proven.issue === null ? [] : [proven.issue.why]),
    ...(!hasNode
      ? [node === null ? whyNoNode : `the Node ${nodeName} was re-created`]
      : ready === null
        ? ['the Node has reported no Ready condition since the kubelet was restarted']
        : []),
  ];

  /** @param ageMs null: unknown */
  const startOf = (ageMs: number | null): number => (ageMs === null ? switchedAt : clock.now().getTime() - ageMs);

  const inspect = async (state: AgentState): Promise<Observation> => {
    const desired = desiredPayload(state)?.hash ?? null;
    const own = nodeOf(state);
    const payload = await readPayload(desired);
    const { pid, ageMs, ...seen } = await inspectKubelet(host, {
      healthzUrl: healthzUrl(configOf(payload, catalogue, minorOfNode(node))),
      restarts: state.watch.restarts,
      sinceSeconds: switchedAt / 1000,
      signal,
    });
    const isDesired = desired !== null && seen.runs === desired && pid !== null;
    const isProven = isDesired && (await proven.of(pid, () => prove(desired, ageMs))) !== null;
    const isPointed = !isDesired || state.switching !== null || (await store.readPointer()) === desired;
    const isAsked = isDesired && seen.healthz?.ok !== false && own !== null;
    const differing = isAsked ? await compared.of(pid, () => compare(payload)) : null;
    const credentialRefusal = isAsked && differing === null ? refusalOf(compared.issue) : null;
    // Reports since the start of this process are about it, even if the agent was started later.
    const nodeReport = readNodeReport(own, startOf(ageMs));
    const observation = {
      ...seen,
      pid,
      ageMs,
      isProven,
      isPointed,
      differing,
      ...nodeReport,
      credentialRefusal,
      unknown: unknownOf(nodeReport, own !== null),
    };
    if (state.phase !== 'trial' || state.switching !== null || state.baseline === null) return observation;
    const isStarted = isProven && seen.healthz?.ok !== false;
    const shutdownIssue = isStarted && !state.mayLosePods ? await findShutdownIssue(pid, state.baseline) : null;
    // The pods of a Node that was deleted are deleted with it.
    if (own === null) return { ...observation, shutdownIssue };
    const isUp = isStarted && nodeReport.ready?.is === true;
    const kubelet = probedKubelet(configOf(payload, catalogue, minorOfNode(node)), node);
    const { losses, probe } = await workload.inspect(state.baseline, kubelet, isUp ? pid : null);
    return { ...observation, shutdownIssue, losses: state.mayLosePods ? [] : losses, probe };
  };

  /** True also if the credential is authenticated but may not read configz; null: not known. */
  const isAccepted = async (kubelet: ObservedKubelet): Promise<boolean | null> => {
    try {
      await configz.query(kubelet);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      const credential = error instanceof ConfigzUnavailableError ? error.credential : null;
      return credential === null ? null : credential === 'accepted';
    }
  };

  const recordBaseline = async (): Promise<TrialBaseline> => {
    // An agent that was restarted has not received its Node yet.
    const known = node ?? (await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }));
    if (known === null) throw new Error(`the Node ${nodeName} does not exist, so the trial was not started`);
    const kubelet = await observeKubelet(host, catalogue, signal);
    const { config } = kubelet.running.layered;
    const from = { healthzUrl: healthzUrl(config), restarts: null, sinceSeconds: switchedAt / 1000, signal };
    const { unit, healthz, ageMs, cpuShare = null } = await inspectKubelet(host, from);
    const { ready, pressures } = readNodeReport(known, startOf(ageMs));
    const isUp = unit?.activeState === 'active' && healthz?.ok !== false;
    const isReady = ready?.is ?? null;
    // A kubelet that is starting shows nothing about the credential.
    const isKnown = isUp || isReady === false;
    return {
      ...(await workload.before(probedKubelet(config, known), isUp && isNodeReady(known))),
      isReady,
      pressures,
      cpuShare,
      shutdownSeconds: shutdownSeconds(config),
      isCredentialAccepted: isKnown ? await isAccepted(kubelet) : null,
    };
  };

  return {
    nodeIs: (next) => {
      node = typeof next === 'string' ? null : next;
      if (typeof next === 'string') whyNoNode = next;
    },
    inspect,
    removeStaleProbePod: async () => {
      try {
        const { running } = await observeKubelet(host, catalogue, signal);
        await workload.removeStaleProbePod(probedKubelet(running.layered.config, node));
      } catch (error) {
        signal.throwIfAborted();
        onIssue(`cannot check whether an earlier agent left a probe pod: ${messageOf(error)}`);
      }
    },
    recordBaseline,
    beginSwitch: async (state) => {
      if (state.phase !== 'trial') await workload.end();
      switchedAt = clock.now().getTime();
      compared.forget();
      proven.forget();
      started.forget();
    },
  };
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

/** Evidence of the content that a process has read: the file on its command line, and the times of both. */
export interface ProcessFacts {
  /** The content of the checkpoint matches its name. */
  readonly isWhole: boolean;
  /** Time of the last write to its files, in Unix seconds. */
  readonly changedAt: number;
  /** Age of the process; null: unknown. */
  readonly ageMs: number | null;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** File times are rounded to seconds; a file time further in the future means that the clock was set back. */
const CLOCK_SLACK_MS = 1_000;

/**
 * Checks that a process was started with the content of the checkpoint on its command line: a kubelet reads
 * its configuration only at its start.
 * @returns the reason why that is not proven, as a clause; null: proven
 */
export function assessProcess({ isWhole, changedAt, ageMs, now }: ProcessFacts): string | null {
  if (!isWhole) return 'the configuration file of the kubelet was changed or removed';
  if (ageMs === null) return 'the start time of the kubelet is not known';
  const writtenAt = changedAt * 1000;
  if (writtenAt <= now - ageMs || writtenAt > now + CLOCK_SLACK_MS) return null;
  return 'the configuration file of the kubelet was written after the kubelet was started';
}
