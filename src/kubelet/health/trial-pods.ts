import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { waitUntil } from '../../base/wait-until.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { journalCommand, oldestFirst } from '../../host/facts/journal.ts';
import type { Host } from '../../host/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { isActive, podsOfNode, readPod } from '../workload/pod.ts';
import { readStaticPods } from '../workload/risk-facts.ts';
import type { WorkloadBaseline } from './baseline.ts';
import { type PodLoss, podLosses, runningPods, withoutStartErrors } from './losses.ts';
import { PROBE_NAME, PROBE_NAMESPACE, type ProbeResult, podErrorIn, probePod, readProbe } from './probe-pod.ts';
import { PROBE_MS } from './signals.ts';

/** The pods of a node during a trial. */
export interface WorkloadObservation {
  /** Null: the pods before the trial, or the current ones, are not known. */
  readonly losses: readonly PodLoss[] | null;
  /** Null: no probe pod is used. */
  readonly probe: ProbeResult | null;
}

/** The members of a kubelet's configuration that a probe pod depends on. */
export interface ProbedKubelet {
  /** Absolute path of the directory; null: the kubelet runs no static pods. */
  readonly staticPodPath: string | null;
  readonly maxPods: number;
  /** Image of the probe pod. */
  readonly image: string;
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

export interface WorkloadWatchOptions {
  readonly host: Host;
  readonly nodeName: string;
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onIssue: (message: string) => void;
  readonly signal: AbortSignal;
}

/** Time for the first list of the pods. */
const LIST_MS = 5_000;
/** After this time the journal is read for an error about the probe pod. */
const EXPLAINED_MS = 3_000;
const JOURNAL_LINES = 300;
const BASELINE_MS = 15_000;
const POLL_MS = 250;
const NOT_LISTED = 'the pods of the node could not be listed';

interface RunningProbe {
  readonly pid: number | null;
  readonly name: string;
  readonly path: string;
  readonly startedAt: number;
}

export function workloadWatch({ host, nodeName, cluster, clock, random, onIssue, signal }: WorkloadWatchOptions): WorkloadWatch {
  const now = (): number => clock.now().getTime();
  let watching: AbortController | null = null;
  let pods: readonly KubeObject[] | null = null;
  let probe: RunningProbe | null = null;
  /** The result for a process of the kubelet; a started probe pod is removed. */
  let result: { readonly pid: number; readonly seen: ProbeResult } | null = null;

  const startWatching = (): void => {
    if (watching !== null) return;
    watching = new AbortController();
    const until = AbortSignal.any([signal, watching.signal]);
    void listWatch(
      { apiVersion: 'v1', kind: 'Pod', fieldSelector: podsOfNode(nodeName) },
      {
        cluster,
        clock,
        random,
        signal: until,
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
  };

  const startProbe = async ({ staticPodPath, image }: ProbedKubelet, pid: number | null): Promise<string | null> => {
    if (staticPodPath === null) return 'the kubelet has no staticPodPath';
    // Another name each time, so that the mirror pod of an earlier probe is not taken for this one.
    const name = `${PROBE_NAME}-${Math.floor(random() * 36 ** 5)
      .toString(36)
      .padStart(5, '0')}`;
    const path = probeFile(staticPodPath);
    const { directory } = await host.query({ directory: { kind: 'file', path: staticPodPath } }, { signal });
    if (directory?.type !== 'directory') return `${staticPodPath} is not a directory`;
    try {
      const content = encodeYaml(probePod({ name, image }));
      await host.perform([{ kind: 'write-file', path, mode: 0o600, owner: 'root:root', content }]);
    } catch (error) {
      signal.throwIfAborted();
      return `the manifest of the probe pod cannot be written: ${messageOf(error)}`;
    }
    probe = { pid, name, path, startedAt: now() };
    return null;
  };

  const removeProbe = async (): Promise<void> => {
    if (probe === null) return;
    const { path } = probe;
    probe = null;
    await host
      .perform([{ kind: 'remove-file', path }])
      .catch((error: unknown) => onIssue(`the manifest ${path} of the probe pod was not removed: ${messageOf(error)}`));
  };

  const readOwnProbe = ({ name }: RunningProbe): ProbeResult =>
    readProbe(pods?.find(({ metadata }) => metadata.namespace === PROBE_NAMESPACE && metadata.name === `${name}-${nodeName}`) ?? null);

  /** The last error of the kubelet about the probe pod, by its journal; null: none. */
  const explainProbe = async ({ name, startedAt }: RunningProbe): Promise<string | null> => {
    const since = `@${Math.floor(startedAt / 1000)}`;
    const argv = journalCommand({ unit: 'kubelet', since, lines: JOURNAL_LINES, bootOnly: false });
    const { journal } = await host.query({ journal: { kind: 'command', argv } }, { signal });
    return journal.exitCode === 0 ? podErrorIn(oldestFirst(journal.stdout), `${PROBE_NAMESPACE}/${name}-${nodeName}`) : null;
  };

  const readPods = () => (pods ?? []).map(readPod).filter(({ name }) => !name.startsWith(`${PROBE_NAMESPACE}/${PROBE_NAME}-`));

  /** Null: the pods before the trial, or the current ones, are not known. */
  const lossesSince = async ({ pods: before, noProbe, staticPodPath }: WorkloadBaseline): Promise<readonly PodLoss[] | null> => {
    if (before === null || pods === null) return null;
    const all = podLosses(before, readPods());
    const losses = noProbe === null ? withoutStartErrors(all) : all;
    if (staticPodPath === null || !losses.some(({ kind }) => kind === 'static-pod-gone')) return losses;
    // A user ends a static pod by removing its manifest.
    const manifests = (await readStaticPods(host, staticPodPath, signal)) ?? [];
    const kept = new Set(manifests.map(({ namespace, name }) => `${namespace}/${name}-${nodeName}`));
    return losses.filter(({ kind, pod }) => kind !== 'static-pod-gone' || kept.has(pod));
  };

  /** The reason why a probe pod shows nothing; null: it can be started. */
  const noCapacityReason = ({ maxPods }: ProbedKubelet): string | null => {
    const active = readPods().filter(isActive).length;
    return active < maxPods ? null : `the node has no room for a new pod (${active} of ${maxPods} pods)`;
  };

  /** Starts a probe pod with the kubelet before a trial: null if it started, otherwise the reason. */
  const startBaseline = async (kubelet: ProbedKubelet): Promise<string | null> => {
    const why = noCapacityReason(kubelet) ?? (await startProbe(kubelet, null));
    if (why !== null || probe === null) return why;
    const own = probe;
    const seen = await waitUntil<ProbeResult, ProbeResult>(
      { clock, signal },
      {
        probe: async () => {
          const current = readOwnProbe(own);
          return current.state === 'starting' ? { pending: current } : { done: current };
        },
        timeoutMs: BASELINE_MS,
        pauseMs: () => POLL_MS,
        timedOut: (current) => current,
      },
    );
    await removeProbe();
    if (seen.state === 'started') return null;
    return `a probe pod did not start before the change either: ${seen.state === 'starting' ? seen.seen : seen.why}`;
  };

  return {
    before: async (kubelet, isHealthy) => {
      result = null;
      startWatching();
      await waitUntil(
        { clock, signal },
        {
          probe: async () => (pods === null ? { pending: null } : { done: null }),
          timeoutMs: LIST_MS,
          pauseMs: () => POLL_MS,
          timedOut: () => null,
        },
      );
      const { staticPodPath } = kubelet;
      if (pods === null) return { pods: null, noProbe: NOT_LISTED, staticPodPath };
      const running = runningPods(readPods());
      const noProbe = isHealthy ? await startBaseline(kubelet) : 'the kubelet was not healthy before the change';
      return { pods: running, noProbe, staticPodPath };
    },
    inspect: async (before, kubelet, pid) => {
      startWatching();
      const losses = await lossesSince(before);
      if (before.noProbe !== null) return { losses, probe: null };
      if (result !== null && result.pid === pid) return { losses, probe: result.seen };
      if (pid === null || pods === null) return { losses, probe: { state: 'starting', seen: 'the kubelet is not up' } };
      if (probe?.pid !== pid) {
        await removeProbe();
        const noCapacity = noCapacityReason(kubelet);
        const why = noCapacity ?? (await startProbe(kubelet, pid));
        if (why !== null) {
          // A node that other pods have filled since shows nothing about the configuration.
          const isTooSmall = noCapacity !== null && (before.pods?.length ?? 0) >= kubelet.maxPods;
          const seen: ProbeResult = { state: isTooSmall ? 'failed' : 'unusable', why };
          result = { pid, seen };
          return { losses, probe: seen };
        }
      }
      const own = probe as RunningProbe | null;
      if (own === null) return { losses, probe: null };
      const seen = readOwnProbe(own);
      const waitedMs = now() - own.startedAt;
      if (seen.state === 'starting' && waitedMs >= EXPLAINED_MS) {
        const why = await explainProbe(own);
        if (why !== null) return { losses, probe: { state: 'failed', why } };
        if (waitedMs >= PROBE_MS.agent)
          return { losses, probe: { state: 'failed', why: `not started within ${PROBE_MS.agent / 1000} s: ${seen.seen}` } };
      }
      if (seen.state === 'started' || seen.state === 'unusable') {
        result = { pid, seen };
        await removeProbe();
      }
      return { losses, probe: seen };
    },
    removeStaleProbePod: async ({ staticPodPath }) => {
      if (staticPodPath === null) return;
      const path = probeFile(staticPodPath);
      const { file } = await host.query({ file: { kind: 'file', path, content: false } }, { signal });
      if (file !== null) await host.perform([{ kind: 'remove-file', path }]);
    },
    end: async () => {
      watching?.abort();
      watching = null;
      pods = null;
      result = null;
      await removeProbe();
    },
  };
}

function probeFile(staticPodPath: string): string {
  return `${staticPodPath}/${PROBE_NAME}.yaml`;
}
