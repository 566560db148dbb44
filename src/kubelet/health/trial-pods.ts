import { messageOf } from '../../base/errors.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { isActive, type NodePod, podsOfNode, readPod } from '../workload/pod.ts';
import { readStaticPods } from '../workload/risk-facts.ts';
import type { WorkloadBaseline } from './baseline.ts';
import { type PodLoss, podLosses, runningPods, withoutStartErrors } from './baseline.ts';
import { PROBE_NAME, PROBE_NAMESPACE, type ProbeResult } from './probe-pod.ts';
import { type ProbedKubelet, removeStaleProbe, runProbe, type StaticProbe, type StaticProbePorts, staticProbe } from './run-probe.ts';
import { PROBE_MS } from './signals.ts';

/** The pods of a node during a trial. */
interface WorkloadObservation {
  /** Null: the pods before the trial, or the current ones, are not known. */
  readonly losses: readonly PodLoss[] | null;
  /** Null: no probe pod is used. */
  readonly probe: ProbeResult | null;
}

/** Watches the pods of a node during trials, and starts probe pods. */
export interface WorkloadWatch {
  /** Records the pods before a trial, and starts a first probe pod if the kubelet is healthy. */
  before(kubelet: ProbedKubelet, isHealthy: boolean): Promise<WorkloadBaseline>;
  /**
   * Compares the pods with those before the trial. Once the kubelet is up, a probe pod is started for its
   * process.
   * @param pid process of the kubelet if it is up with the configuration of the trial; null: it is not
   */
  inspect(before: WorkloadBaseline, kubelet: ProbedKubelet, pid: number | null): Promise<WorkloadObservation>;
  /** Ends the watch and removes the probe pod. */
  end(): Promise<void>;
  /** Removes the probe pod of an agent that was killed. */
  removeStaleProbePod(kubelet: ProbedKubelet): Promise<void>;
}

interface WorkloadWatchOptions extends StaticProbePorts {
  readonly cluster: Cluster;
}

/** Time for the first list of the pods. */
const LIST_MS = 5_000;
const BASELINE_MS = 15_000;
const POLL_MS = 250;
/** After this time the journal is read for an error about the probe pod. */
const EXPLAINED_MS = 3_000;
const NOT_LISTED = 'the pods of the node could not be listed';

/** A probe pod that was started for a process of the kubelet. */
interface RunningProbe {
  readonly pid: number;
  readonly driver: StaticProbe;
  readonly startedAt: number;
}

/** The probe pod of a trial. */
interface ProbeState {
  readonly running: RunningProbe | null;
  /** The result for a process of the kubelet: its probe pod is removed. */
  readonly result: { readonly pid: number; readonly seen: ProbeResult } | null;
}

const NO_PROBE: ProbeState = { running: null, result: null };

/** What follows for the probe pod: its result is known (null: none is used), it must be started, or read. */
type ProbeStep =
  | { readonly kind: 'known'; readonly probe: ProbeResult | null }
  | { readonly kind: 'start'; readonly pid: number }
  | { readonly kind: 'read'; readonly running: RunningProbe };

function nextStep({ running, result }: ProbeState, { noProbe }: WorkloadBaseline, pid: number | null, isListed: boolean): ProbeStep {
  if (noProbe !== null) return { kind: 'known', probe: null };
  if (result !== null && result.pid === pid) return { kind: 'known', probe: result.seen };
  if (pid === null || !isListed) return { kind: 'known', probe: { state: 'starting', seen: 'the kubelet is not up' } };
  return running?.pid === pid ? { kind: 'read', running } : { kind: 'start', pid };
}

export function workloadWatch(options: WorkloadWatchOptions): WorkloadWatch {
  const { clock, signal } = options;
  const list = podList(options);
  let state = NO_PROBE;
  const newProbe = (kubelet: ProbedKubelet): StaticProbe => staticProbe(options, kubelet, () => list.pods);

  const remove = async (): Promise<void> => {
    const { running } = state;
    state = { ...state, running: null };
    await running?.driver.remove();
  };

  /** Starts a probe pod with the kubelet before a trial: null if it started, otherwise the reason. */
  const startBaseline = async (kubelet: ProbedKubelet): Promise<string | null> => {
    const noRoom = noRoomReason(list.pods, kubelet);
    if (noRoom !== null) return noRoom;
    const wait = { timeoutMs: BASELINE_MS, pauseMs: () => POLL_MS, failedMs: 0 };
    const outcome = await runProbe({ clock, signal }, newProbe(kubelet), wait);
    if (outcome.state === 'started') return null;
    return outcome.state === 'not-run' ? outcome.why : `a probe pod did not start before the change either: ${outcome.why}`;
  };

  const end = async (pid: number, seen: ProbeResult): Promise<ProbeResult> => {
    state = { ...state, result: { pid, seen } };
    await remove();
    return seen;
  };

  /** The result of the probe pod for a process. A result other than an error ends the probe. */
  const probe = async (step: Exclude<ProbeStep, { readonly kind: 'known' }>, before: WorkloadBaseline, kubelet: ProbedKubelet) => {
    if (step.kind === 'start') {
      await remove();
      const noRoom = noRoomReason(list.pods, kubelet);
      // A node that other pods have filled since shows nothing about the configuration.
      const isTooSmall = (before.pods?.length ?? 0) >= kubelet.maxPods;
      if (noRoom !== null) return end(step.pid, { state: isTooSmall ? 'failed' : 'unusable', why: noRoom });
    }
    const now = clock.now().getTime();
    const running = step.kind === 'read' ? step.running : { pid: step.pid, driver: newProbe(kubelet), startedAt: now };
    state = { ...state, running };
    const seen = await observeRunning(running, now);
    return seen.state === 'starting' || seen.state === 'failed' ? seen : end(running.pid, seen);
  };

  return {
    before: async (kubelet, isHealthy) => {
      state = { ...state, result: null };
      list.start();
      await waitUntil(
        { clock, signal },
        {
          probe: async () => (list.pods === null ? { pending: null } : { done: null }),
          timeoutMs: LIST_MS,
          pauseMs: () => POLL_MS,
          timedOut: () => null,
        },
      );
      const { staticPodPath } = kubelet;
      if (list.pods === null) return { pods: null, noProbe: NOT_LISTED, staticPodPath };
      const running = runningPods(ownPods(list.pods));
      const noProbe = isHealthy ? await startBaseline(kubelet) : 'the kubelet was not healthy before the change';
      return { pods: running, noProbe, staticPodPath };
    },
    inspect: async (before, kubelet, pid) => {
      list.start();
      const losses = await lossesSince(options, before, list.pods);
      const step = nextStep(state, before, pid, list.pods !== null);
      return { losses, probe: step.kind === 'known' ? step.probe : await probe(step, before, kubelet) };
    },
    removeStaleProbePod: (kubelet) => removeStaleProbe(options, kubelet),
    end: async () => {
      list.end();
      state = { ...state, result: null };
      await remove();
    },
  };
}

/** Reads a probe pod: failed if the kubelet has logged an error about it, or does not start it in time. */
async function observeRunning({ driver, startedAt }: RunningProbe, now: number): Promise<ProbeResult> {
  const seen = await driver.observe();
  if (seen.state === 'not-run') return { state: 'unusable', why: seen.why };
  if (seen.state !== 'starting' || now - startedAt < EXPLAINED_MS) return seen;
  const error = await driver.explain();
  if (error !== null) return { state: 'failed', why: error };
  const isLate = now - startedAt >= PROBE_MS.agent;
  return isLate ? { state: 'failed', why: `not started within ${PROBE_MS.agent / 1000} s: ${seen.seen}` } : seen;
}

/** The pods of a node, kept up to date between `start` and `end`. */
interface PodList {
  /** Null: not known. */
  readonly pods: readonly KubeObject[] | null;
  start(): void;
  end(): void;
}

function podList({ cluster, clock, random, nodeName, onIssue, signal }: WorkloadWatchOptions): PodList {
  let watching: AbortController | null = null;
  let pods: PodList['pods'] = null;
  return {
    get pods() {
      return pods;
    },
    start: () => {
      if (watching !== null) return;
      watching = new AbortController();
      void listWatch(
        { apiVersion: 'v1', kind: 'Pod', fieldSelector: podsOfNode(nodeName) },
        {
          ...{ cluster, clock, random, signal: AbortSignal.any([signal, watching.signal]) },
          onObjects: (objects) => {
            pods = [...objects.values()];
          },
          onIssue: (error) => {
            // Pods seen earlier may have changed since.
            pods = null;
            onIssue(`${NOT_LISTED}: ${messageOf(error)}`);
          },
        },
      );
    },
    end: () => {
      watching?.abort();
      watching = null;
      pods = null;
    },
  };
}

/** The pods of a node without probe pods. */
function ownPods(pods: readonly KubeObject[] | null): readonly NodePod[] {
  return (pods ?? []).map(readPod).filter(({ name }) => !name.startsWith(`${PROBE_NAMESPACE}/${PROBE_NAME}-`));
}

/** The pods that are lost since a trial began; null: not known. */
async function lossesSince(
  { host, nodeName, signal }: WorkloadWatchOptions,
  { pods: before, noProbe, staticPodPath }: WorkloadBaseline,
  pods: readonly KubeObject[] | null,
): Promise<readonly PodLoss[] | null> {
  if (before === null || pods === null) return null;
  const all = podLosses(before, ownPods(pods));
  const losses = noProbe === null ? withoutStartErrors(all) : all;
  if (staticPodPath === null || !losses.some(({ kind }) => kind === 'static-pod-gone')) return losses;
  // A user ends a static pod by removing its manifest.
  const manifests = (await readStaticPods(host, staticPodPath, signal)) ?? [];
  const kept = new Set(manifests.map(({ namespace, name }) => `${namespace}/${name}-${nodeName}`));
  return losses.filter(({ kind, pod }) => kind !== 'static-pod-gone' || kept.has(pod));
}

/** The reason why the node admits no probe pod; null: it can be started. */
function noRoomReason(pods: readonly KubeObject[] | null, { maxPods }: ProbedKubelet): string | null {
  const active = ownPods(pods).filter(isActive).length;
  return active < maxPods ? null : `the node has no room for a new pod (${active} of ${maxPods} pods)`;
}
