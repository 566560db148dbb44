import type { KubeObject } from '../../kube/object.ts';
import { numberAt, objectsAt, textAt, valueAt } from '../../kubelet/documents/values.ts';
import { controllerOf, type DrainKind, drainKind } from '../../kubelet/workload/drain-kind.ts';
import { readPod } from '../../kubelet/workload/pod.ts';

/** Which pods a drain may evict; the flags of kubectl drain. */
export interface DrainRules {
  /** Leave pods of DaemonSets on the node instead of refusing the drain. */
  readonly ignoreDaemonSets: boolean;
  /** Evict pods with emptyDir volumes, whose data is lost. */
  readonly deleteEmptyDirData: boolean;
  /** Evict pods without a controller, which no controller creates again. */
  readonly force: boolean;
  /** The options that permit the loss of pods and of data, if they are not those of kubectl drain. */
  readonly lossOption?: string;
  /** Seconds in place of the grace period of each pod; null: that of the pod. */
  readonly gracePeriodSeconds: number | null;
  /** Whether a pod with these labels is evicted; others stay, and the node counts as drained. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
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
  readonly kind: DrainKind;
  readonly controller: ReturnType<typeof controllerOf>;
  /** Names of emptyDir volumes: their data is lost. */
  readonly emptyDirs: readonly string[];
  /** Names of hostPath volumes: their data stays on the node. */
  readonly hostPaths: readonly string[];
  readonly graceSeconds: number;
  readonly object: KubeObject;
}

const DEFAULT_GRACE_SECONDS = 30;

/** Reads a pod for a drain. */
export function readDrainPod(object: KubeObject): DrainPod {
  const { metadata } = object;
  const { uid, name, phase, isReady, isTerminating } = readPod(object);
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
    kind: drainKind(object),
    controller: controllerOf(object),
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
  return pods.some((pod) => drainKind(pod) === 'evictable');
}
