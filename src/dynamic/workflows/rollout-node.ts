import type { AppError } from '../../base/errors.ts';
import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import type { AssessedNode } from './read-nodes.ts';
import { NOTICE_MS, type RolloutOutcome, type RolloutStage } from './rollout.ts';

/** A node and its new assignment; null: none. */
export interface RolloutTarget {
  readonly name: string;
  readonly desired: ConfigSource | null;
  /**
   * Required current assignment, unless `desired` is assigned already: a node with another one is not
   * changed. Absent: any.
   */
  readonly expected?: ConfigSource | null | undefined;
}

/** A node of a rollout and its progress. */
export interface RolloutNode {
  readonly target: RolloutTarget;
  stage: RolloutStage;
  validated: AssessedNode;
  error: AppError | null;
  isTouched: boolean;
  beganAt: number;
  wasDown: boolean;
  /**
   * The status already showed the desired source before the assignment was changed to it: it proves nothing
   * until the kubelet had time to use the previous assignment.
   */
  wasShown: boolean;
  /** Time since which the node is updated without interruption. */
  updatedSince: number | null;
  /** The last failure or rollback, in milliseconds since the epoch; null: none is known. */
  failedAt: number | null;
  /** Before its assignment, the API server reached the kubelet. */
  wasReached: boolean;
  readonly initial: ConfigSource | null;
  /** A Node with a smaller resourceVersion was read before the assignment; null: not assigned by this run. */
  keptVersion: number | null;
  reported: string;
  isGone: boolean;
}

/** Whether another client has changed the assignment of a node since the rollout read or changed it. */
export function isReplaced({ stage, target, validated, initial, keptVersion }: RolloutNode): boolean {
  const { source, resourceVersion } = validated.config;
  if (source.issue === null && sameSource(source.source, target.desired)) return false;
  if (stage === 'queued') return !sameSource(source.source, initial);
  // The watch may lag behind the rollout's own assignment.
  if (keptVersion !== null && Number(resourceVersion) < keptVersion) return false;
  return stage === 'in-progress' || stage === 'changed';
}

/**
 * Whether the source was assigned recently, and the kubelet has not restarted since: its status may be from
 * an earlier assignment.
 */
export function isJustAssigned({ config, verdict }: AssessedNode, desired: ConfigSource | null, now: number): boolean {
  const at = config.assigner?.at?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (config.backend !== 'native' || config.status === null || !sameSource(config.status.assigned, desired)) return false;
  return Math.abs(now - at) < NOTICE_MS && (verdict.since === null || verdict.since.getTime() < at);
}

/** Ignores a verdict that is based on a status older than the assignment. */
export function unproven(node: AssessedNode): AssessedNode {
  if (!['trial', 'good', 'local', 'rejected'].includes(node.verdict.state)) return node;
  const why = 'the kubelet has not reported since this assignment and may be restarting to use the previous assignment';
  return { ...node, verdict: { ...node.verdict, state: 'waiting', why, hint: null } };
}

export function outcomeOf({ target, stage, validated, error, isTouched, beganAt, updatedSince }: RolloutNode): RolloutOutcome {
  return { name: target.name, desired: target.desired, stage, validated, error, isTouched, beganAt, updatedSince };
}
