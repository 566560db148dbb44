import type { RunTime } from '../../base/clock.ts';
import type { AppError } from '../../base/errors.ts';
import type { ThisProcess } from '../../base/this-process.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import { isControlPlaneNode, zoneOfLabels } from '../../kube/node-place.ts';
import type { ConfigSource } from '../../kubelet/layers/config-source.ts';
import type { GateRecord, GateStop } from '../../maintenance/gates/batch-gates.ts';
import type { MemberState, RolloutRules } from '../../maintenance/next-step.ts';
import type { Progress } from '../status/assess-node-config.ts';
import type { Backend } from '../status/node-config.ts';
import type { AssignedBy, RecordedRun } from './assign-config.ts';
import type { AssessedNode } from './read-nodes.ts';

/**
 * State of a node in a rollout: `in-progress` is assigned and not updated yet · `changed` runs the desired configuration ·
 * `failed` was rolled back, or cannot be updated · `unreachable` was down before its start and did not become Ready, so
 * that the effect of the configuration is unknown · `replaced` has an assignment of another operator ·
 * `skipped` is in the maintenance of others.
 */
export type RolloutStage = Extract<MemberState, 'queued' | 'in-progress' | 'changed' | 'failed' | 'unreachable' | 'replaced' | 'skipped'>;

export interface RolloutOptions {
  readonly wait: 'trial' | 'good' | 'none';
  readonly onFailure: 'stop' | 'revert';
  /** A gate that fails may restore the previous assignments. Default: false. */
  readonly gatesRevert?: boolean;
  readonly timeoutMs: number;
  /** Null: 30 seconds with several nodes, none with one. */
  readonly minReadyMs: number | null;
  rulesFor(total: number): RolloutRules;
  /** The canaries by name or label, in place of their number. Absent: not named. */
  readonly canaryNodes?: readonly string[] | LabelSelector | undefined;
}

/** Whether a failure may restore the previous assignments. */
export function mayRevert({ onFailure, gatesRevert = false }: Pick<RolloutOptions, 'onFailure' | 'gatesRevert'>): boolean {
  return onFailure === 'revert' || gatesRevert;
}

/** How nodes are assigned a configuration. */
export interface AssignmentSettings {
  /** Undefined: detected from each Node. */
  readonly backend: Backend | undefined;
  readonly rollout: RolloutOptions;
  /** The operator accepts that the assignment ends pods; such findings are reported as warnings. */
  readonly allowPodLoss: boolean;
  /** `--reason`, recorded with each assignment. */
  readonly reason: string | undefined;
}

export interface RolloutPorts extends RunTime {
  /** A random number from 0 up to 1. */
  random(): number;
  readonly self: Pick<ThisProcess, 'name'>;
}

/** The author, time, reason and permission of an assignment. */
export function assignedBy(
  { self, clock }: Pick<RolloutPorts, 'self' | 'clock'>,
  { allowPodLoss, reason, recorded }: Pick<AssignmentSettings, 'allowPodLoss' | 'reason'> & { readonly recorded: RecordedRun },
): AssignedBy {
  return { by: self.name, at: clock.now(), allowPodLoss, reason, recorded };
}

const MIN_READY_MS = 30_000;

/** Time that a node must be Ready before it is updated. With `wait: good` the complete trial replaces this time. */
export function minReadyOf({ wait, minReadyMs }: RolloutOptions, total: number): number {
  if (minReadyMs !== null) return minReadyMs;
  return total > 1 && wait === 'trial' ? MIN_READY_MS : 0;
}

/** A node as a member of a rollout. Control planes are changed after the workers, one at a time. */
export function rolloutMember({ name, labels, isReady }: AssessedNode['config'], state: MemberState) {
  const isExclusive = isControlPlaneNode(labels);
  return { name, state, isDown: !isReady, zone: zoneOfLabels(labels), stage: isExclusive ? 1 : 0, isExclusive };
}

/** A kubelet up to 1.23 notices a new assignment within 12 s and sends an Event before it restarts. */
export const NOTICE_MS = 20_000;

/**
 * The state of a node whose change is in progress.
 * @param elapsedMs time since its start
 * @param updatedMs time since which it is updated without interruption; null: it is not
 */
export function assessMember(
  progress: Progress,
  limits: {
    readonly elapsedMs: number;
    readonly updatedMs: number | null;
    readonly minReadyMs: number;
    readonly timeoutMs: number;
    readonly wasDown: boolean;
  },
): Extract<RolloutStage, 'in-progress' | 'changed' | 'failed' | 'unreachable'> {
  const { elapsedMs, updatedMs, minReadyMs, timeoutMs, wasDown } = limits;
  if (progress === 'failed') return 'failed';
  if (progress === 'updated') return updatedMs !== null && updatedMs >= minReadyMs ? 'changed' : 'in-progress';
  if (elapsedMs < timeoutMs) return 'in-progress';
  return wasDown ? 'unreachable' : 'failed';
}

/** A kubelet that was rolled back starts within this time, also if the minimum Ready time is less. */
const RECOVERY_MS = 10_000;

/**
 * The time until which a failed node counts as unavailable: its agent reports a rollback before the kubelet has started again,
 * and the Node stays Ready meanwhile.
 */
export function recoveryEnd(failedAt: number, minReadyMs: number): number {
  return failedAt + Math.max(RECOVERY_MS, minReadyMs);
}

/** Callbacks for the progress of a rollout. */
export interface RolloutListener {
  /** Called once, with the rules of the rollout. */
  starts?(rules: RolloutRules): void;
  /** `number` starts at 1; `down` are nodes of the rollout that are already unavailable. */
  batch?(batch: {
    readonly number: number;
    readonly names: readonly string[];
    readonly isCanary: boolean;
    readonly down: readonly string[];
  }): void;
  /** `isNew` is false if the node already had the assignment. */
  assigned?(name: string, desired: ConfigSource | null, isNew: boolean): void;
  onEventNotCreated?(name: string, error: AppError): void;
  /** Before the assignment, the API server did not reach the kubelet of the node, so this is not required after it. */
  onUnreached?(name: string, why: string): void;
  /** Called at each state change of a node in progress. */
  state?(node: AssessedNode): void;
  ended?(outcome: RolloutOutcome): void;
  /** No node can start because these are unavailable. */
  blocked?(down: readonly string[]): void;
  /** No node can start, because the kubelets of these may be restarting after a failure; `leftMs` is the time limit. */
  recovering?(names: readonly string[], leftMs: number): void;
  /** A gate between batches has ended. */
  gate?(gate: GateRecord): void;
  /** The API server is unreachable; null: reachable again. */
  issue?(error: AppError | null): void;
  progress?(nodes: readonly RolloutOutcome[]): void;
}

/** The current or final state of a node. */
export interface RolloutOutcome {
  readonly name: string;
  /** The new assignment; null: none. */
  readonly desired: ConfigSource | null;
  readonly stage: RolloutStage;
  readonly validated: AssessedNode;
  readonly error: AppError | null;
  readonly isTouched: boolean;
  /** Start of the node, in milliseconds since the epoch. */
  readonly beganAt: number;
  /** Time since which the node is updated without interruption, in milliseconds since the epoch; null: it is not. */
  readonly updatedSince: number | null;
}

export interface RolloutResult {
  /** In the order of the targets. */
  readonly outcomes: readonly RolloutOutcome[];
  /** Unavailable nodes that prevented the start of others. */
  readonly blocked: readonly string[];
  /** More nodes failed than the rules allow. */
  readonly isStopped: boolean;
  /** The gate or window that ended the rollout. */
  readonly gate?: GateStop;
}
