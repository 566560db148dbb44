import { isJsonObject, parseJsonObject } from '../base/json.ts';
import { conditionOf } from '../kube/node-conditions.ts';
import type { KubeObject } from '../kube/object.ts';
import { isTrue, objectsAt, textAt } from '../kubelet/documents/values.ts';

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
  /** The cordon outlives its run, until `uncordon` or `maintenance end`. */
  readonly isKept: boolean;
  /** What the node is cordoned for, as a clause. */
  readonly reason: string;
}

/**
 * Conditions of KEP-5683, which tell controllers and operators why a node is unavailable.
 * @see kubernetes/enhancements keps/sig-node/5683-lifecycle-conditions
 */
export const LIFECYCLE_CONDITIONS = ['MaintenancePlanned', 'DrainInProgress', 'Drained', 'MaintenanceInProgress'] as const;
export type LifecycleCondition = (typeof LIFECYCLE_CONDITIONS)[number];

/** The beginning of each message of a condition that this program writes. */
export const CONDITION_MARK = 'kubeletadm: ';

/** The owner of the cordon of a node; null: none, or an annotation that this program did not write. */
export function cordonOwner({ metadata }: KubeObject): CordonOwner | null {
  const found = parseJsonObject(metadata.annotations?.[CORDON_ANNOTATION] ?? '');
  if (!isJsonObject(found) || textAt(found, 'run') === '') return null;
  return {
    run: textAt(found, 'run'),
    operator: textAt(found, 'operator'),
    since: textAt(found, 'since'),
    renewed: textAt(found, 'renewed'),
    isKept: isTrue(found, 'isKept'),
    reason: textAt(found, 'reason'),
  };
}

export function isCordoned(node: KubeObject): boolean {
  return isTrue(node, 'spec.unschedulable');
}

/** Whether another run may take over a cordon: its run has ended without giving it back. */
export function isExpired({ isKept, renewed }: CordonOwner, now: Date): boolean {
  const at = Date.parse(renewed);
  return !isKept && !(now.getTime() - at < HOLD_MS);
}

/** Taints of nodes that somebody is about to remove, or that are down on purpose, with what they mean. */
const REMOVED: Readonly<Record<string, string>> = {
  'node.kubernetes.io/out-of-service': 'it is out of service',
  ToBeDeletedByClusterAutoscaler: 'the cluster autoscaler deletes it',
  'karpenter.sh/disrupted': 'Karpenter replaces it',
};

/** Why a node is left alone. */
export interface NodeObstacle {
  /** `removed` by somebody, in the `maintenance` of another, `held` by another run of this program, or `cordoned`. */
  readonly kind: 'removed' | 'maintenance' | 'held' | 'cordoned';
  /** A clause, e.g. `it is cordoned, not by kubeletadm`. */
  readonly why: string;
}

/**
 * Why a run does not touch a node that others hold; null: it may.
 * @param run id of the own run
 */
export function obstacleOf(node: KubeObject, { run, now }: { readonly run: string; readonly now: Date }): NodeObstacle | null {
  const taint = objectsAt(node, 'spec.taints').find(({ key }) => Object.hasOwn(REMOVED, String(key)));
  if (taint !== undefined) return { kind: 'removed', why: `${REMOVED[String(taint.key)]} (taint ${taint.key})` };
  const foreign = LIFECYCLE_CONDITIONS.flatMap((type) => conditionOf(node, type) ?? []).find(
    ({ status, message = '' }) => status === 'True' && !message.startsWith(CONDITION_MARK),
  );
  if (foreign !== undefined) {
    const { type, reason = '', message = '' } = foreign;
    const details = [reason, message].filter((text) => text !== '').join(': ');
    return { kind: 'maintenance', why: `its condition ${type} is True${details === '' ? '' : ` (${details})`}` };
  }
  const owner = cordonOwner(node);
  if (owner === null) return isCordoned(node) ? { kind: 'cordoned', why: 'it is cordoned, not by kubeletadm' } : null;
  if (owner.run === run || isExpired(owner, now)) return null;
  const whose = `${owner.operator} has cordoned it since ${owner.since} (${owner.reason}, run ${owner.run})`;
  return { kind: owner.isKept ? 'maintenance' : 'held', why: whose };
}
