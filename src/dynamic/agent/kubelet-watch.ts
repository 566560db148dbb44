import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { Host } from '../../host/host.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { DEFAULT_PAUSE_IMAGE } from '../../kubeadm/control-plane/images.ts';
import { PAYLOAD_FILE } from '../../kubeadm/node-agent/layout.ts';
import { healthzUrl } from '../../kubeadm/render/node-design.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../../kubelet/decode.ts';
import { readConfigz } from '../../kubelet/effective/configz.ts';
import { observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { type ParsedHostFile, parseHostFile } from '../../kubelet/effective/running-config.ts';
import { pauseImageOn } from '../../kubelet/workload/run-probe.ts';
import type { CheckpointStore } from '../checkpoint-store.ts';
import { type ConfigzSource, ConfigzUnavailableError } from './configz-source.ts';
import type { Observation } from './health.ts';
import { inspectKubelet } from './kubelet-control.ts';
import { minorOfNode, type NodeReport, readNodeReport } from './node-report.ts';
import { expectedOf } from './prepare-assigned.ts';
import { differingFields } from './prepare-payload.ts';
import { createProcessFact } from './process-fact.ts';
import { type AgentState, desiredPayload } from './state.ts';
import type { ProbedKubelet, WorkloadBaseline, WorkloadWatch } from './workload-watch.ts';

/** Observes a kubelet: on its host, by its configz and through its Node. */
export interface KubeletWatch {
  /** Null: the API server is unreachable, and the state of the Node is unknown. */
  nodeIs(node: KubeObject | null): void;
  inspect(state: AgentState): Promise<Observation>;
  /**
   * Observes the kubelet a last time before a switch, with the pods of the node if the switch starts a trial.
   * Later observations are about the new process.
   */
  observeBeforeSwitch(state: AgentState): Promise<KubeletBeforeSwitch>;
  /** Removes the probe pod of an agent that was killed. */
  removeStaleProbePod(): Promise<void>;
}

/** A kubelet before a switch. */
export interface KubeletBeforeSwitch {
  /** Null: the observation failed. */
  readonly last: Observation | null;
  /** Null: the switch starts no trial. */
  readonly workload: WorkloadBaseline | null;
}

export interface KubeletWatchOptions {
  readonly host: Host;
  readonly nodeName: string;
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
  const { host, nodeName, store, catalogue, clock, configz, workload, onIssue, signal } = options;
  let node: KubeObject | null = null;
  let switchedAt = clock.now().getTime();
  /**
   * The previous kubelet accepted the credential of the node: a refusal by the next one is caused by its
   * configuration.
   */
  let wasAccepted = false;
  let cached: { readonly hash: string; readonly payload: ParsedHostFile } | null = null;
  const compared = createProcessFact<readonly string[]>(clock, onIssue);
  const proven = createProcessFact<true>(clock, onIssue);

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

  /**
   * Reason why the API server is locked out as well, because it authenticates to kubelets with a certificate
   * of the same CA; null: no evidence.
   */
  const credentialRefusalOf = (differing: readonly string[] | null): string | null =>
    wasAccepted && differing === null && compared.issue?.isRefusal === true
      ? `the kubelet API no longer accepts the credential of this node: ${compared.issue.why}`
      : null;

  const unknownOf = ({ ready }: NodeReport): readonly string[] => [
    ...(proven.issue === null ? [] : [proven.issue.why]),
    ...(node === null
      ? ['the API server is unreachable, or the Node does not exist']
      : ready === null
        ? ['the Node has reported no Ready condition since the kubelet was restarted']
        : []),
  ];

  const inspect = async (state: AgentState): Promise<Observation> => {
    const desired = desiredPayload(state)?.hash ?? null;
    const payload = await readPayload(desired);
    const { pid, ageMs, ...seen } = await inspectKubelet(host, {
      healthzUrl: healthzUrl(configOf(payload, catalogue, minorOfNode(node))),
      restarts: state.watch.restarts,
      sinceSeconds: switchedAt / 1000,
      signal,
    });
    const isDesired = desired !== null && seen.runs === desired && pid !== null;
    const isProven = isDesired && (await proven.of(pid, () => prove(desired, ageMs))) !== null;
    const isAsked = isDesired && seen.healthz?.ok !== false && node !== null;
    const differing = isAsked ? await compared.of(pid, () => compare(payload)) : null;
    const credentialRefusal = isAsked ? credentialRefusalOf(differing) : null;
    // Reports since the start of this process are about it, even if the agent was started later.
    const nodeReport = readNodeReport(node, ageMs === null ? switchedAt : clock.now().getTime() - ageMs);
    const observation = { ...seen, ageMs, isProven, differing, ...nodeReport, credentialRefusal, unknown: unknownOf(nodeReport) };
    if (state.phase !== 'trial' || state.workload === null) return observation;
    const isUp = isProven && seen.healthz?.ok !== false && nodeReport.ready?.is === true;
    const kubelet = probedKubelet(configOf(payload, catalogue, minorOfNode(node)), node);
    const { losses, probe } = await workload.inspect(state.workload, kubelet, isUp ? pid : null);
    return { ...observation, losses: state.mayLosePods ? [] : losses, probe };
  };

  /** The pods before a trial; null: the switch starts none, or continues one. */
  const recordWorkload = async (state: AgentState, last: Observation | null): Promise<WorkloadBaseline | null> => {
    if (state.phase !== 'trial' || state.workload !== null || state.switching?.to !== state.assigned.hash) return null;
    const { running } = await observeKubelet(host, catalogue, signal);
    const isHealthy = last?.unit?.activeState === 'active' && last.healthz?.ok !== false && node !== null && isNodeReady(node);
    return workload.before(probedKubelet(running.layered.config, node), isHealthy);
  };

  /** True also if the credential is authenticated but may not read configz. */
  const isAccepted = (): Promise<boolean> =>
    observeKubelet(host, catalogue, signal)
      .then(configz.query)
      .then(
        () => true,
        (error: unknown) => error instanceof ConfigzUnavailableError && error.credential === 'accepted',
      );

  return {
    nodeIs: (next) => {
      node = next;
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
    observeBeforeSwitch: async (state) => {
      const last = await inspect(state).catch(() => null);
      if (state.phase !== 'trial') await workload.end();
      const before = await recordWorkload(state, last).catch((error: unknown) => {
        signal.throwIfAborted();
        onIssue(`the pods that ran before the change could not be listed: ${messageOf(error)}`);
        return null;
      });
      // Needed in a trial only: a rollback must not wait for a hung kubelet.
      wasAccepted = state.phase === 'trial' && node !== null && (await isAccepted());
      switchedAt = clock.now().getTime();
      compared.forget();
      proven.forget();
      return { last, workload: before };
    },
  };
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
