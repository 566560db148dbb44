import type { Host } from '../../host/access/host.ts';
import type { KubeObject } from '../../kube/object.ts';
import { isActive, isProbe, type NodePod, readPod } from '../workload/pod.ts';
import { readStaticPods } from '../workload/risk-facts.ts';
import { type PodLoss, podLosses, runningPods, type WorkloadBaseline } from './baseline.ts';
import type { ProbeResult } from './probe-pod.ts';
import { type ProbeDriver, type ProbedKubelet, runProbe } from './run-probe.ts';

const BASELINE_MS = 15_000;

interface PodWatchPorts extends Omit<Parameters<typeof runProbe>[0], 'host'> {
  readonly host: Host;
  readonly nodeName: string;
  /** Lists the pods of the node. A text: why they are not known. */
  readonly source: {
    read(options: { readonly isFirst: boolean }): Promise<readonly KubeObject[] | string>;
    end(): void;
  };
  readonly newProbe: (kubelet: ProbedKubelet) => ProbeDriver;
  /** `failedMs`, `pauseMs`: as of `runProbe`, before the change. */
  readonly before: Pick<Parameters<typeof runProbe>[2], 'failedMs' | 'pauseMs'>;
  /**
   * After the change: the time after which errors that are logged about the probe pod count, and after which a pod that has not
   * started counts as failed; `needsImage`: so does a pod without its image.
   */
  readonly after: Readonly<Record<'explainedMs' | 'lateMs', number>> & { readonly needsImage: boolean };
}

/** The probe pod for a process of the kubelet. */
interface Probe {
  readonly pid: number;
  readonly startedAt: number;
  /** Whether the API server has shown the pod. */
  isSeen: boolean;
  /** Null: no pod was created. */
  readonly driver: ProbeDriver | null;
  /** Null: not known yet. Afterwards the pod is removed. */
  readonly result: ProbeResult | null;
}

export type PodWatch = ReturnType<typeof podWatch>;

/** Watches the pods of a node during a change of its kubelet, and starts probe pods: for an agent, and for a command over SSH. */
export function podWatch(ports: PodWatchPorts) {
  const { source } = ports;
  const probe = changeProbe(ports);
  let pods: readonly KubeObject[] | string = 'the pods of the node have not been listed yet';
  return {
    /**
     * Records the pods before a change, and starts a first probe pod.
     * @param noProbe why no probe pod is started, as a clause; null: it is
     */
    before: async (kubelet: ProbedKubelet, noProbe: string | null): Promise<WorkloadBaseline> => {
      probe.forgetResult();
      const { staticPodPath } = kubelet;
      const listed = await source.read({ isFirst: true });
      pods = listed;
      if (typeof listed === 'string') return { pods: null, noProbe: listed, staticPodPath };
      const running = runningPods(ownPods(listed));
      return { pods: running, noProbe: noProbe ?? noRoomReason(listed, kubelet) ?? (await tryProbe(ports, kubelet)), staticPodPath };
    },
    /** Lists the pods, and compares them with those before the change. `why`: they are not known */
    losses: async (before: WorkloadBaseline): Promise<{ readonly losses: readonly PodLoss[] | null; readonly why: string | null }> => {
      pods = await source.read({ isFirst: false });
      if (typeof pods === 'string') return { losses: null, why: pods };
      return { losses: await lossesSince(ports, before, pods), why: null };
    },
    /**
     * Starts a probe pod for a process of the kubelet, and reads it. A result other than an error ends the probe.
     * @param pid null: the kubelet is not up with the new configuration
     * @returns null: no probe pod is used
     */
    probe: async (before: WorkloadBaseline, kubelet: ProbedKubelet, pid: number | null): Promise<ProbeResult | null> =>
      before.noProbe === null ? probe.inspect(before, pods, kubelet, pid) : null,
    /** Ends the watch and removes the probe pod. */
    end: async (): Promise<void> => {
      source.end();
      await probe.end();
    },
  };
}

/** The probe pod of a change, another one for each process of the kubelet. */
function changeProbe({ clock, newProbe, after }: PodWatchPorts) {
  let probe: Probe | null = null;
  const end = async (): Promise<void> => {
    const ended = probe;
    probe = null;
    if (ended?.result === null) await ended.driver?.remove();
  };
  const finish = async (ended: Probe, result: ProbeResult): Promise<ProbeResult> => {
    probe = { ...ended, result };
    await ended.driver?.remove();
    return result;
  };
  return {
    end,
    forgetResult: (): void => {
      if (probe?.result !== null) probe = null;
    },
    inspect: async (
      before: WorkloadBaseline,
      pods: readonly KubeObject[] | string,
      kubelet: ProbedKubelet,
      pid: number | null,
    ): Promise<ProbeResult> => {
      const known = probe?.pid === pid ? probe : null;
      if (known !== null && known.result !== null) return known.result;
      const now = clock.now().getTime();
      if (pid === null || typeof pods === 'string') {
        // A pod cannot be late while the kubelet is not up, or not seen.
        if (probe?.result === null) probe = { ...probe, startedAt: now };
        return { state: 'starting', seen: 'the kubelet is not up' };
      }
      if (known === null) {
        await end();
        const noRoom = noRoomReason(pods, kubelet);
        // A node that other pods have filled since shows nothing about the configuration.
        const state = (before.pods?.length ?? 0) >= kubelet.maxPods ? 'failed' : 'unusable';
        if (noRoom !== null) return finish({ pid, startedAt: now, isSeen: false, driver: null, result: null }, { state, why: noRoom });
      }
      const running = known ?? { pid, startedAt: now, isSeen: false, driver: newProbe(kubelet), result: null };
      probe = running;
      const seen = await observeProbe(running, now, after);
      return seen.state === 'starting' || seen.state === 'failed' ? seen : finish(running, seen);
    },
  };
}

/** Starts a probe pod before a change: null if it started, otherwise the reason. */
async function tryProbe({ newProbe, before, ...context }: PodWatchPorts, kubelet: ProbedKubelet): Promise<string | null> {
  const outcome = await runProbe(context, newProbe(kubelet), { ...before, timeoutMs: BASELINE_MS });
  if (outcome.state === 'started') return null;
  return outcome.state === 'not-run' ? outcome.why : `a probe pod did not start before the change: ${outcome.why}`;
}

/** Reads a probe pod: failed if the kubelet has logged an error about it, or does not start it in time. */
async function observeProbe(probe: Probe, now: number, { explainedMs, lateMs, needsImage }: PodWatchPorts['after']): Promise<ProbeResult> {
  const { driver, startedAt } = probe;
  const seen = (await driver?.observe()) ?? { state: 'starting', seen: 'not created' };
  if (seen.state === 'not-run') return { state: 'unusable', why: seen.why };
  const isLate = now - startedAt >= lateMs;
  // A missing answer shows nothing about a pod that has not started so far.
  if (seen.state === 'unknown') return isLate && !probe.isSeen ? { state: 'unusable', why: seen.seen } : { ...seen, state: 'starting' };
  probe.isSeen = true;
  if (seen.state === 'unusable' && needsImage) return { ...seen, state: 'failed' };
  if (seen.state !== 'starting') return seen;
  const error = now - startedAt < explainedMs ? null : ((await driver?.explain()) ?? null);
  if (error !== null) return { state: 'failed', why: error };
  return isLate ? { state: 'failed', why: `not started within ${lateMs / 1000} s: ${seen.seen}` } : seen;
}

function ownPods(pods: readonly KubeObject[]): readonly NodePod[] {
  return pods.filter((pod) => !isProbe(pod)).map(readPod);
}

/** The pods that are lost since a change began. */
async function lossesSince(
  { host, nodeName, signal }: PodWatchPorts,
  { pods: before, noProbe, staticPodPath }: WorkloadBaseline,
  pods: readonly KubeObject[],
): Promise<readonly PodLoss[] | null> {
  if (before === null) return null;
  const losses = podLosses(before, ownPods(pods), noProbe === null);
  if (staticPodPath === null || !losses.some(({ kind }) => kind === 'static-pod-gone')) return losses;
  // A user ends a static pod by removing its manifest.
  const manifests = (await readStaticPods(host, staticPodPath, signal)) ?? [];
  const kept = new Set(manifests.map(({ namespace, name }) => `${namespace}/${name}-${nodeName}`));
  return losses.filter(({ kind, pod }) => kind !== 'static-pod-gone' || kept.has(pod));
}

/** The reason why the node admits no probe pod; null: it can be started. */
function noRoomReason(pods: readonly KubeObject[], { maxPods }: ProbedKubelet): string | null {
  const active = ownPods(pods).filter(isActive).length;
  return active < maxPods ? null : `the node has no room for a new pod (${active} of ${maxPods} pods)`;
}
