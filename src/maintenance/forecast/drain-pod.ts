import type { KubeObject } from '../../kube/object.ts';
import { numberAt, objectsAt, textAt, valueAt } from '../../kubelet/documents/values.ts';
import { isActive, readPod } from '../../kubelet/workload/pod.ts';

/** Which pods a drain may evict; the flags of kubectl drain. */
export interface DrainRules {
  /** Leave pods of DaemonSets on the node instead of refusing the drain. */
  readonly ignoreDaemonSets: boolean;
  /** Evict pods with emptyDir volumes, whose data is lost. */
  readonly deleteEmptyDirData: boolean;
  /** Evict pods without a controller, which no controller creates again. */
  readonly force: boolean;
  /** Seconds in place of the grace period of each pod; null: that of the pod. */
  readonly gracePeriodSeconds: number | null;
  /** Whether a pod with these labels is evicted; others stay, and the node counts as drained. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
}

/** The controller of a pod. */
interface PodController {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** A pod for the decisions of a drain. */
export interface DrainPod {
  /** `NAMESPACE/NAME`. */
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** Empty: not scheduled. */
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly phase: string;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /**
   * `evictable` is moved by a drain · `daemon-set` stays, its controller ignores cordons · `mirror` shows a static pod,
   * which only its node can stop · `finished` occupies nothing.
   */
  readonly kind: 'evictable' | 'daemon-set' | 'mirror' | 'finished';
  readonly controller: PodController | null;
  /** Names of emptyDir volumes: their data is lost. */
  readonly emptyDirs: readonly string[];
  /** Names of hostPath volumes: their data stays on the node. */
  readonly hostPaths: readonly string[];
  readonly graceSeconds: number;
  readonly object: KubeObject;
}

const DEFAULT_GRACE_SECONDS = 30;

/** Reads a pod with the rules of kubectl drain. @see k8s.io/kubectl pkg/drain/filters.go (1.36) */
export function readDrainPod(object: KubeObject): DrainPod {
  const { metadata } = object;
  const { uid, name, phase, isReady, isTerminating, isStatic } = readPod(object);
  const owner = objectsAt(object, 'metadata.ownerReferences').find(({ controller }) => controller === true);
  const controller =
    owner === undefined
      ? null
      : { apiVersion: textAt(owner, 'apiVersion'), kind: textAt(owner, 'kind'), name: textAt(owner, 'name'), uid: textAt(owner, 'uid') };
  const isOfDaemonSet = controller?.kind === 'DaemonSet' && controller.apiVersion.startsWith('apps/');
  const kind = isStatic ? 'mirror' : !isActive({ phase }) ? 'finished' : isOfDaemonSet ? 'daemon-set' : 'evictable';
  const volumesWith = (source: string): readonly string[] =>
    objectsAt(object, 'spec.volumes').flatMap((volume) => (valueAt(volume, source) === undefined ? [] : [textAt(volume, 'name')]));
  return {
    name,
    namespace: metadata.namespace ?? '',
    uid,
    node: textAt(object, 'spec.nodeName'),
    labels: metadata.labels ?? {},
    phase,
    isReady,
    isTerminating,
    kind,
    controller,
    emptyDirs: volumesWith('emptyDir'),
    hostPaths: volumesWith('hostPath'),
    graceSeconds: numberAt(object, 'spec.terminationGracePeriodSeconds') ?? DEFAULT_GRACE_SECONDS,
    object,
  };
}

/** Whether a drain ends only after this pod has left its node. */
export function isToEvict({ kind, labels }: Pick<DrainPod, 'kind' | 'labels'>, rules: Pick<DrainRules, 'selects'>): boolean {
  return kind === 'evictable' && rules.selects(labels);
}

/** Whether pods remain that a drain would evict: a node without them is drained. */
export function hasPodsToEvict(pods: readonly KubeObject[]): boolean {
  return pods.some((pod) => readDrainPod(pod).kind === 'evictable');
}
