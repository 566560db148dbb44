import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { PodBefore } from './losses.ts';

/** The pods of a node before a trial, and whether a probe pod could be started then. */
export interface WorkloadBaseline {
  /** Null: not known. */
  readonly pods: readonly PodBefore[] | null;
  /** Reason why the trial uses no probe pod, as a clause; null: a probe pod started before the trial. */
  readonly noProbe: string | null;
  /** Directory of the static pods before the trial; null: none, or not known. */
  readonly staticPodPath: string | null;
}

/**
 * The node before the switch that starts a trial: problems that existed then are not caused by the
 * configuration in trial. A fact that is not known (null) is taken for healthy, so that its failure ends the
 * trial.
 */
export interface TrialBaseline extends WorkloadBaseline {
  readonly isReady: boolean | null;
  /** Pressure conditions of the Node. */
  readonly pressures: readonly string[];
  /** Whether the kubelet's API accepted the credential of the node. */
  readonly isCredentialAccepted: boolean | null;
  /** Average CPUs that the kubelet used since its start. Absent or null: not known, so that it is not compared. */
  readonly cpuShare?: number | null;
  /** As of `shutdownSeconds`. Absent: not known, so that the lock of the kubelet is not checked. */
  readonly shutdownSeconds?: number;
}

/**
 * The baseline of a trial that starts before the previous one has ended. Static pods, conditions and rights
 * that the previous configuration lost must return with the new one; other pods that it ended never return.
 * @param earlier baseline of the unfinished trial
 */
export function mergeBaselines(earlier: TrialBaseline | null, now: TrialBaseline): TrialBaseline {
  if (earlier === null) return now;
  const cpuShare = earlier.cpuShare ?? now.cpuShare;
  const shutdownSeconds = earlier.shutdownSeconds ?? now.shutdownSeconds;
  const names = new Set((now.pods ?? []).map(({ name }) => name));
  const lost = (earlier.pods ?? []).filter(({ name, isStatic }) => isStatic && !names.has(name));
  return {
    pods: now.pods === null && earlier.pods === null ? null : [...(now.pods ?? []), ...lost],
    noProbe: earlier.noProbe === null ? null : now.noProbe,
    staticPodPath: earlier.staticPodPath ?? now.staticPodPath,
    isReady: earlier.isReady === false ? now.isReady : earlier.isReady,
    pressures: now.pressures.filter((name) => earlier.pressures.includes(name)),
    isCredentialAccepted: earlier.isCredentialAccepted === false ? now.isCredentialAccepted : earlier.isCredentialAccepted,
    ...(cpuShare === undefined ? {} : { cpuShare }),
    ...(shutdownSeconds === undefined ? {} : { shutdownSeconds }),
  };
}

/** The baseline of a Node that was re-created during the trial: its pods were deleted with the previous Node. */
export function withoutPods(baseline: TrialBaseline | null): TrialBaseline | null {
  if (baseline === null) return null;
  return { ...baseline, pods: null, noProbe: baseline.noProbe ?? 'the Node was re-created during the trial' };
}

/** The baseline as a member of the state file. */
export function baselineToJson({ pods, ...facts }: TrialBaseline): JsonObject {
  return { ...facts, pods: pods === null ? null : pods.map(({ uid, name, isStatic }) => ({ uid, name, isStatic })) };
}

/** Reads that member; null: none. Files of earlier versions have only the pods. */
export function baselineFromJson(json: Json | undefined): TrialBaseline | null {
  if (!isJsonObject(json)) return null;
  const { noProbe, staticPodPath, isReady, pressures, isCredentialAccepted, cpuShare, shutdownSeconds } = json;
  const pods = Array.isArray(json.pods)
    ? json.pods.flatMap((pod: Json) =>
        isJsonObject(pod) && typeof pod.uid === 'string' && typeof pod.name === 'string'
          ? [{ uid: pod.uid, name: pod.name, isStatic: pod.isStatic === true }]
          : [],
      )
    : null;
  return {
    pods,
    noProbe: typeof noProbe === 'string' ? noProbe : null,
    staticPodPath: typeof staticPodPath === 'string' ? staticPodPath : null,
    isReady: typeof isReady === 'boolean' ? isReady : null,
    pressures: Array.isArray(pressures) ? pressures.filter((name: Json) => typeof name === 'string') : [],
    isCredentialAccepted: typeof isCredentialAccepted === 'boolean' ? isCredentialAccepted : null,
    ...(typeof cpuShare === 'number' ? { cpuShare } : {}),
    ...(typeof shutdownSeconds === 'number' ? { shutdownSeconds } : {}),
  };
}
