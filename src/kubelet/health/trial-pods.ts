import { messageOf } from '../../base/errors.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { isActive, type NodePod, podsOfNode, readPod } from '../workload/pod.ts';
import { readStaticPods } from '../workload/risk-facts.ts';
import type { WorkloadBaseline } from './baseline.ts';
import { type PodLoss, podLosses, runningPods, withoutStartErrors } from './losses.ts';
import { PROBE_NAME, PROBE_NAMESPACE, type ProbeResult } from './probe-pod.ts';
import {
  observeStaticProbe,
  type ProbedKubelet,
  readStaticProbe,
  removeStaleProbe,
  removeStaticProbe,
  type StaticProbe,
  type StaticProbePorts,
  startStaticProbe,
} from './static-probe.ts';

/** The pods of a node during a trial. */
export interface WorkloadObservation {
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

export interface WorkloadWatchOptions extends StaticProbePorts {
  readonly cluster: Cluster;
}

/** Time for the first list of the pods. */
const LIST_MS = 5_000;
const BASELINE_MS = 15_000;
const POLL_MS = 250;
const NOT_LISTED = 'the pods of the node could not be listed';

/** The probe pod of a trial. */
interface ProbeState {
  readonly running: StaticProbe | null;
  /** The result for a process of the kubelet: its probe pod is removed. */
  readonly result: { readonly pid: number; readonly seen: ProbeResult } | null;
}

const NO_PROBE: ProbeState = { running: null, result: null };

/** What follows for the probe pod: its result is known (null: none is used), it must be started, or read. */
type ProbeStep =
  | { readonly kind: 'known'; readonly probe: ProbeResult | null }
  | { readonly kind: 'start'; readonly pid: number }
  | { readonly kind: 'read'; readonly pid: number; readonly running: StaticProbe };

function nextStep({ running, result }: ProbeState, { noProbe }: WorkloadBaseline, pid: number | null, isListed: boolean): ProbeStep {
  if (noProbe !== null) return { kind: 'known', probe: null };
  if (result !== null && result.pid === pid) return { kind: 'known', probe: result.seen };
  if (pid === null || !isListed) return { kind: 'known', probe: { state: 'starting', seen: 'the kubelet is not up' } };
  return running?.pid === pid ? { kind: 'read', pid, running } : { kind: 'start', pid };
}

export function workloadWatch(options: WorkloadWatchOptions): WorkloadWatch {
  const { nodeName } = options;
  const list = podList(options);
  let state = NO_PROBE;

  const remove = async (): Promise<void> => {
    const { running } = state;
    state = { ...state, running: null };
    if (running !== null) await removeStaticProbe(options, running);
  };

  const start = async (kubelet: ProbedKubelet, pid: number | null): Promise<StaticProbe | string> => {
    const started = noRoomReason(list.pods, kubelet) ?? (await startStaticProbe(options, kubelet, pid));
    if (typeof started !== 'string') state = { ...state, running: started };
    return started;
  };

  /** Starts a probe pod with the kubelet before a trial: null if it started, otherwise the reason. */
  const startBaseline = async (kubelet: ProbedKubelet): Promise<string | null> => {
    const started = await start(kubelet, null);
    if (typeof started === 'string') return started;
    const seen = await poll<ProbeResult>(options, BASELINE_MS, () => {
      const current = readStaticProbe(started, nodeName, list.pods);
      return [current, current.state !== 'starting'];
    });
    await remove();
    if (seen.state === 'started') return null;
    return `a probe pod did not start before the change either: ${seen.state === 'starting' ? seen.seen : seen.why}`;
  };

  /** The result of the probe pod for a process. A result other than an error ends the probe. */
  const probe = async (step: Exclude<ProbeStep, { readonly kind: 'known' }>, before: WorkloadBaseline, kubelet: ProbedKubelet) => {
    if (step.kind === 'start') await remove();
    // A node that other pods have filled since shows nothing about the configuration.
    const isTooSmall = noRoomReason(list.pods, kubelet) !== null && (before.pods?.length ?? 0) >= kubelet.maxPods;
    const running = step.kind === 'read' ? step.running : await start(kubelet, step.pid);
    const isStarted = typeof running !== 'string';
    const seen: ProbeResult = isStarted
      ? await observeStaticProbe(options, running, list.pods)
      : { state: isTooSmall ? 'failed' : 'unusable', why: running };
    if (isStarted && (seen.state === 'starting' || seen.state === 'failed')) return seen;
    state = { ...state, result: { pid: step.pid, seen } };
    await remove();
    return seen;
  };

  return {
    before: async (kubelet, isHealthy) => {
      state = { ...state, result: null };
      list.start();
      await poll(options, LIST_MS, () => [null, list.pods !== null]);
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

/** Polls until the value is final or the time has passed, and returns it. */
function poll<T>(
  { clock, signal }: WorkloadWatchOptions,
  timeoutMs: number,
  read: () => readonly [value: T, isFinal: boolean],
): Promise<T> {
  return waitUntil<T, T>(
    { clock, signal },
    {
      probe: async () => {
        const [value, isFinal] = read();
        return isFinal ? { done: value } : { pending: value };
      },
      timeoutMs,
      pauseMs: () => POLL_MS,
      timedOut: (value) => value,
    },
  );
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
