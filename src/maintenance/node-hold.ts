import { parseJsonObject } from '../base/json.ts';
import type { ThisProcess } from '../base/this-process.ts';
import { conditionOf, LIFECYCLE_CONDITIONS, type LifecycleCondition } from '../kube/node-conditions.ts';
import type { KubeObject } from '../kube/object.ts';
import { isTrue, numberAt, objectsAt, textAt } from '../kubelet/documents/values.ts';

/** The owner of a cordon, as JSON: which run of which operator has cordoned the node. */
export const CORDON_ANNOTATION = 'kubeletadm.dev/cordoned-by';

/** A run renews its cordons; after this time without a renewal, another run may take them over. */
export const HOLD_MS = 60_000;
/** Time between two renewals. */
export const RENEW_MS = 20_000;

/** The run that has cordoned a node. */
export interface CordonOwner {
  readonly run: string;
  readonly operator: string;
  /** RFC 3339. */
  readonly since: string;
  /** Last renewal, in RFC 3339. */
  readonly renewed: string;
  /** The process of the run and its machine. */
  readonly process: number;
  readonly machine: string;
  /** The cordon outlives its run, until `uncordon` or `maintenance end`. */
  readonly isKept: boolean;
  /** What the node is cordoned for, as a clause. */
  readonly reason: string;
}

/** The run that set lifecycle conditions, and the time of each, as JSON: other programs set conditions of the same types. */
export const CONDITIONS_ANNOTATION = 'kubeletadm.dev/conditions-by';

/** The run that set lifecycle conditions of a node last, and the types of those that no other program has set since. */
export function ownConditions(node: KubeObject): { readonly run: string; readonly types: readonly LifecycleCondition[] } {
  const found = parseJsonObject(node.metadata.annotations?.[CONDITIONS_ANNOTATION] ?? '') ?? {};
  const isOwn = (type: LifecycleCondition): boolean => {
    const { status, lastTransitionTime } = conditionOf(node, type) ?? {};
    return status === 'True' && lastTransitionTime === textAt(found, `since.${type}`);
  };
  return { run: textAt(found, 'run'), types: LIFECYCLE_CONDITIONS.filter(isOwn) };
}

/** The owner of the cordon of a node; null: none, or an annotation that this program did not write. */
export function cordonOwner({ metadata }: KubeObject): CordonOwner | null {
  const found = parseJsonObject(metadata.annotations?.[CORDON_ANNOTATION] ?? '');
  if (found === null || textAt(found, 'run') === '') return null;
  return {
    run: textAt(found, 'run'),
    operator: textAt(found, 'operator'),
    since: textAt(found, 'since'),
    renewed: textAt(found, 'renewed'),
    process: numberAt(found, 'process') ?? 0,
    machine: textAt(found, 'machine'),
    isKept: isTrue(found, 'isKept'),
    reason: textAt(found, 'reason'),
  };
}

export function isCordoned(node: KubeObject): boolean {
  return isTrue(node, 'spec.unschedulable');
}

/** The run that inspects nodes. */
interface OwnRun {
  readonly run: string;
  readonly self: ThisProcess;
  readonly now: Date;
}

/** Whether another run may take over a cordon: its run has ended without giving it back. */
export function isAbandoned({ isKept, renewed, process, machine }: CordonOwner, { self, now }: Pick<OwnRun, 'self' | 'now'>): boolean {
  if (isKept) return false;
  if (machine === self.machine && !self.isRunning(process)) return true;
  return !(now.getTime() - Date.parse(renewed) < HOLD_MS);
}

/** Taints of nodes that are about to be removed, or that are down on purpose, with what they mean. */
const REMOVED: Readonly<Record<string, string>> = {
  'node.kubernetes.io/out-of-service': 'it is out of service',
  ToBeDeletedByClusterAutoscaler: 'the cluster autoscaler deletes it',
  'karpenter.sh/disrupted': 'Karpenter replaces it',
};

/** Why a node is left alone. */
export interface NodeObstacle {
  /**
   * `removed` by a component of the cluster · in the `maintenance` of another operator · `held` by a run of this program in progress ·
   * `cordoned` by hand, or by an earlier command of the same operator.
   */
  readonly kind: 'removed' | 'maintenance' | 'held' | 'cordoned';
  /** A clause, e.g. `it is cordoned, not by kubeletadm`. */
  readonly why: string;
}

/** Why a run does not touch a node that others hold; null: it may. */
export function obstacleOf(node: KubeObject, own: OwnRun): NodeObstacle | null {
  const taint = objectsAt(node, 'spec.taints').find(({ key }) => Object.hasOwn(REMOVED, String(key)));
  if (taint !== undefined) return { kind: 'removed', why: `${REMOVED[String(taint.key)]} (taint ${taint.key})` };
  const { types } = ownConditions(node);
  const foreign = LIFECYCLE_CONDITIONS.flatMap((type) => (types.includes(type) ? [] : (conditionOf(node, type) ?? []))).find(
    ({ status }) => status === 'True',
  );
  if (foreign !== undefined) {
    const { type, reason = '', message = '' } = foreign;
    const details = [reason, message].filter((text) => text !== '').join(': ');
    return { kind: 'maintenance', why: `its condition ${type} is True${details === '' ? '' : ` (${details})`}` };
  }
  const owner = cordonOwner(node);
  if (owner === null) return isCordoned(node) ? { kind: 'cordoned', why: 'it is cordoned, not by kubeletadm' } : null;
  if (owner.run === own.run || isAbandoned(owner, own)) return null;
  // Another client has uncordoned it, and the annotation is left.
  if (owner.isKept && !isCordoned(node)) return null;
  if (!owner.isKept) return heldBy(owner);
  return { kind: owner.operator === own.self.name ? 'cordoned' : 'maintenance', why: heldBy(owner).why };
}

/** A node that a run in progress holds. */
export function heldBy({ operator, since, reason }: CordonOwner): NodeObstacle {
  return { kind: 'held', why: `${operator} has cordoned it since ${since} (${reason})` };
}
