import { isActive, type NodePod } from '../workload/pod.ts';

/**
 * A way in which a change of a kubelet's configuration ends a pod that ran before.
 *
 * - `pod-rejected`: the restarted kubelet does not admit the pod (`OutOfpods`, `OutOfcpu`, `NodeAffinity`, ...)
 * - `pod-evicted`: the kubelet evicts the pod because the node is below an eviction threshold
 * - `static-pod-gone`: the kubelet no longer runs a static pod
 * - `pod-not-started`: the kubelet cannot start a container of the pod again (`RunContainerError`, ...)
 */
type PodLossKind = 'pod-rejected' | 'pod-evicted' | 'static-pod-gone' | 'pod-not-started';

/** A pod that ran before a change of the kubelet's configuration and does not run now. */
export interface PodLoss {
  readonly kind: PodLossKind;
  /** `NAMESPACE/NAME`. */
  readonly pod: string;
  /** The state of the pod as a clause, for example `OutOfpods: Node didn't have enough resource: pods`. */
  readonly seen: string;
}

/** A pod that ran before a change. */
export type PodBefore = Pick<NodePod, 'uid' | 'name' | 'isStatic'>;

/** The pods that a change must not end: running, not deleted, and without a container that cannot start. */
export function runningPods(pods: readonly NodePod[]): readonly PodBefore[] {
  return pods
    .filter((pod) => pod.phase === 'Running' && !pod.isTerminating && !pod.waiting.some(isStartError))
    .map(({ uid, name, isStatic }) => ({ uid, name, isStatic }));
}

/**
 * Compares the pods of a node with those that ran before a change. Pods that were deleted, have finished, or
 * fail for a reason of their own (`CrashLoopBackOff`, a failed probe, an exceeded limit) are no losses.
 */
export function podLosses(before: readonly PodBefore[], now: readonly NodePod[]): readonly PodLoss[] {
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
    if (waiting === undefined || !isActive(pod)) return [];
    const { reason, message } = waiting;
    return [{ kind: 'pod-not-started', pod: name, seen: `container ${waiting.name}: ${[reason, message].filter(Boolean).join(': ')}` }];
  });
}

/**
 * The losses that count if a probe pod is used: if the probe pod starts, a container that cannot be started
 * again fails for a reason of its own.
 */
export function withoutStartErrors(losses: readonly PodLoss[]): readonly PodLoss[] {
  return losses.filter(({ kind }) => kind !== 'pod-not-started');
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
