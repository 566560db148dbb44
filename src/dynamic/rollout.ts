import type { MemberState, RolloutRules } from '../maintenance/next-step.ts';

/**
 * State of a node in a rollout: `in-progress` is assigned and not updated yet · `changed` runs the desired configuration ·
 * `failed` was rolled back, or cannot be updated · `unreachable` was down before its start and did not become Ready, so
 * that the effect of the configuration is unknown · `replaced` has an assignment of another operator.
 */
export type RolloutStage = Extract<MemberState, 'queued' | 'in-progress' | 'changed' | 'failed' | 'unreachable' | 'replaced'>;

/** Options of a rollout on the command line. */
export interface RolloutOptions {
  readonly wait: 'trial' | 'good' | 'none';
  readonly onFailure: 'stop' | 'revert';
  readonly timeoutMs: number;
  /** Null: 30 seconds with several nodes, none with one. */
  readonly minReadyMs: number | null;
  rulesFor(total: number): RolloutRules;
}

const MIN_READY_MS = 30_000;

/**
 * Time that a node must be Ready before it is updated. With `wait: good` the complete trial replaces this
 * time.
 */
export function minReadyOf({ wait, minReadyMs }: RolloutOptions, total: number): number {
  if (minReadyMs !== null) return minReadyMs;
  return total > 1 && wait === 'trial' ? MIN_READY_MS : 0;
}
