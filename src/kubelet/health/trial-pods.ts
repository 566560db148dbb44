import { messageOf } from '../../base/errors.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { isActive, type NodePod, podsOfNode, readPod } from '../workload/pod.ts';
import { readStaticPods } from '../workload/risk-facts.ts';
import type { WorkloadBaseline } from './baseline.ts';
import { type PodLoss, podLosses, runningPods } from './baseline.ts';
import { PROBE_NAME, PROBE_NAMESPACE, type ProbeResult } from './probe-pod.ts';
import { type ProbeDriver, type ProbedKubelet, type ProbeOutcome, runProbe, type StaticProbePorts, staticProbe } from './run-probe.ts';
import { PROBE_MS } from './signals.ts';

export interface WorkloadWatchOptions extends StaticProbePorts {
  readonly cluster: Cluster;
}

/** Watches the pods of a node during trials, and starts probe pods. */
export type WorkloadWatch = ReturnType<typeof workloadWatch>;

/** Time for the first list of the pods. */
const LIST_MS = 5_000;
const BASELINE_MS = 15_000;
const POLL_MS = 250;
/** After this time the journal is read for an error about the probe pod. */
const EXPLAINED_MS = 3_000;
const NOT_LISTED = 'the pods of the node could not be listed';

/** The probe pod for a process of the kubelet. */
interface TrialProbe {
  readonly pid: number;
  readonly startedAt: number;
  /** Null: no pod was created. */
  readonly driver: ProbeDriver<ProbeResult | ProbeOutcome> | null;
  /** Null: not known yet. Afterwards the pod is removed. */
  readonly result: ProbeResult | null;
}

export function workloadWatch(options: WorkloadWatchOptions) {
  const { clock, signal } = options;
  const list = podList(options);
  const newDriver = (kubelet: ProbedKubelet) => staticProbe(options, kubelet, () => list.pods);
  const trial = trialProbe(options, newDriver);

  /** Starts a probe pod with the kubelet before a trial: null if it started, otherwise the reason. */
  const startBaseline = async (kubelet: ProbedKubelet): Promise<string | null> => {
    const noRoom = noRoomReason(list.pods, kubelet);
    if (noRoom !== null) return noRoom;
    const wait = { timeoutMs: BASELINE_MS, pauseMs: () => POLL_MS, failedMs: 0 };
    const outcome = await runProbe({ clock, signal }, newDriver(kubelet), wait);
    if (outcome.state === 'started') return null;
    return outcome.state === 'not-run' ? outcome.why : `a probe pod did not start before the change either: ${outcome.why}`;
  };

  return {
    /** Records the pods before a trial, and starts a first probe pod if the kubelet is healthy. */
    before: async (kubelet: ProbedKubelet, isHealthy: boolean): Promise<WorkloadBaseline> => {
      trial.forgetResult();
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
    /**
     * Compares the pods with those before the trial. Once the kubelet is up, a probe pod is started for its
     * process.
     * @param pid process of the kubelet if it is up with the configuration of the trial; null: it is not
     * @returns `losses` null: the pods before the trial, or the current ones, are not known; `probe` null: no probe pod is used
     */
    inspect: async (before: WorkloadBaseline, kubelet: ProbedKubelet, pid: number | null) => {
      list.start();
      const losses = await lossesSince(options, before, list.pods);
      return { losses, probe: before.noProbe === null ? await trial.inspect(before, list.pods, kubelet, pid) : null };
    },
    /** Ends the watch and removes the probe pod. */
    end: async (): Promise<void> => {
      list.end();
      trial.forgetResult();
      await trial.end();
    },
  };
}

/** Starts and reads the probe pod of a trial, another one for each process of the kubelet. */
function trialProbe({ clock }: WorkloadWatchOptions, newDriver: (kubelet: ProbedKubelet) => NonNullable<TrialProbe['driver']>) {
  let probe: TrialProbe | null = null;

  const finish = async (ended: TrialProbe, result: ProbeResult): Promise<ProbeResult> => {
    probe = { ...ended, result };
    await ended.driver?.remove();
    return result;
  };

  /** Removes a probe pod without a result. */
  const end = async (): Promise<void> => {
    if (probe === null || probe.result !== null) return;
    const { driver } = probe;
    probe = null;
    await driver?.remove();
  };

  return {
    end,
    forgetResult: (): void => {
      if (probe?.result !== null) probe = null;
    },
    /** The result for a process of the kubelet; null: it is not up. A result other than an error ends the probe. */
    inspect: async (
      before: WorkloadBaseline,
      pods: readonly KubeObject[] | null,
      kubelet: ProbedKubelet,
      pid: number | null,
    ): Promise<ProbeResult> => {
      const known = probe?.pid === pid ? probe : null;
      if (known !== null && known.result !== null) return known.result;
      if (pid === null || pods === null) return { state: 'starting', seen: 'the kubelet is not up' };
      const now = clock.now().getTime();
      if (known === null) {
        await end();
        const noRoom = noRoomReason(pods, kubelet);
        // A node that other pods have filled since shows nothing about the configuration.
        const state = (before.pods?.length ?? 0) >= kubelet.maxPods ? 'failed' : 'unusable';
        if (noRoom !== null) return finish({ pid, startedAt: now, driver: null, result: null }, { state, why: noRoom });
      }
      const running = known ?? { pid, startedAt: now, driver: newDriver(kubelet), result: null };
      probe = running;
      const seen = await observeRunning(running, now);
      return seen.state === 'starting' || seen.state === 'failed' ? seen : finish(running, seen);
    },
  };
}

/** Reads a probe pod: failed if the kubelet has logged an error about it, or does not start it in time. */
async function observeRunning({ driver, startedAt }: TrialProbe, now: number): Promise<ProbeResult> {
  const seen = (await driver?.observe()) ?? { state: 'starting', seen: 'not created' };
  if (seen.state === 'not-run') return { state: 'unusable', why: seen.why };
  if (seen.state !== 'starting' || now - startedAt < EXPLAINED_MS) return seen;
  const error = (await driver?.explain()) ?? null;
  if (error !== null) return { state: 'failed', why: error };
  const isLate = now - startedAt >= PROBE_MS.agent;
  return isLate ? { state: 'failed', why: `not started within ${PROBE_MS.agent / 1000} s: ${seen.seen}` } : seen;
}

/** The pods of a node, kept up to date between `start` and `end`; null: not known. */
function podList({ cluster, clock, random, nodeName, onIssue, signal }: WorkloadWatchOptions) {
  let watching: AbortController | null = null;
  let pods: readonly KubeObject[] | null = null;
  return {
    get pods(): readonly KubeObject[] | null {
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
  const losses = podLosses(before, ownPods(pods), noProbe === null);
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
