import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { isActive, type NodePod } from '../workload/pod.ts';

/** The pods of a node before a trial, and whether a probe pod could be started then. */
export interface WorkloadBaseline {
  /** Null: not known. */
  readonly pods: readonly Pick<NodePod, 'uid' | 'name' | 'isStatic'>[] | null;
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

/** A pod that ran before a change of the kubelet's configuration and does not run now. */
export interface PodLoss {
  /** A signal of the pods of a node: see signals.ts. */
  readonly kind: 'pod-rejected' | 'pod-evicted' | 'static-pod-gone' | 'pod-not-started';
  /** `NAMESPACE/NAME`. */
  readonly pod: string;
  /** The state of the pod as a clause, for example `OutOfpods: Node didn't have enough resource: pods`. */
  readonly seen: string;
}

/** The pods that a change must not end: running, not deleted, and without a container that cannot start. */
export function runningPods(pods: readonly NodePod[]): NonNullable<WorkloadBaseline['pods']> {
  return pods
    .filter((pod) => pod.phase === 'Running' && !pod.isTerminating && !pod.waiting.some(isStartError))
    .map(({ uid, name, isStatic }) => ({ uid, name, isStatic }));
}

/**
 * Compares the pods of a node with those that ran before a change. Pods that were deleted, have finished, or
 * fail for a reason of their own (`CrashLoopBackOff`, a failed probe, an exceeded limit) are no losses.
 * @param usesProbe if a probe pod starts, a container that cannot be started again fails for a reason of its own
 */
export function podLosses(before: NonNullable<WorkloadBaseline['pods']>, now: readonly NodePod[], usesProbe = false): readonly PodLoss[] {
  const byUid = new Map(now.map((pod) => [pod.uid, pod]));
  const byName = new Map(now.filter(isActive).map((pod) => [pod.name, pod]));
  return before.flatMap(({ uid, name, isStatic }): readonly PodLoss[] => {
    // The kubelet may create a mirror pod again, with another uid.
    const pod = isStatic ? (byName.get(name) ?? byUid.get(uid)) : byUid.get(uid);
    if (pod === undefined) return isStatic ? [{ kind: 'static-pod-gone', pod: name, seen: 'the static pod is gone' }] : [];
    if (pod.isTerminating) return isStatic ? [{ kind: 'static-pod-gone', pod: name, seen: 'the static pod is being stopped' }] : [];
    const kind = failureKind(pod);
    if (kind !== null) return [{ kind, pod: name, seen: [pod.reason, pod.message].filter(Boolean).join(': ') }];
    const waiting = pod.waiting.find(isStartError);
    if (usesProbe || waiting === undefined || !isActive(pod)) return [];
    const { reason, message } = waiting;
    return [{ kind: 'pod-not-started', pod: name, seen: `container ${waiting.name}: ${[reason, message].filter(Boolean).join(': ')}` }];
  });
}

/**
 * Reasons of the kubelet's admission.
 * @see kubernetes/kubernetes pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/kubelet.go rejectPod (1.36)
 */
const REJECTED =
  /^(?:OutOf.+|NodeAffinity|NodeName|UnexpectedAdmissionError|InsufficientResource|TopologyAffinityError|SMTAlignmentError|AppArmor|SysctlForbidden|PodOSSelectorNodeLabelDoesNotMatch|PodOSNotSupported|PodFeatureUnsupported|.+AdmissionError|InvalidNodeInfo|InitContainerRestartPolicyForbidden|SupplementalGroupsPolicyNotSupported|PodLevelResources.+)$/;

/** An eviction because of the node, not because the pod exceeded a limit of its own. */
const LOW_ON = /\bThe node (?:was low on resource|had condition)/;

function failureKind({ phase, reason, message }: NodePod): 'pod-rejected' | 'pod-evicted' | null {
  if (phase !== 'Failed') return null;
  if (reason === 'Evicted') return LOW_ON.test(message) ? 'pod-evicted' : null;
  return REJECTED.test(reason) ? 'pod-rejected' : null;
}

/** The runtime or the kubelet could not start the container; the container's own program did not run. */
function isStartError({ reason }: { readonly reason: string }): boolean {
  return /^(?:RunContainerError|CreateContainerError|PreStartHookError|CreatePodSandboxError)$/.test(reason);
}
