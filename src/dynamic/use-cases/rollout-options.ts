import type { AssignRules } from '../rollout.ts';

/** Options of a rollout on the command line. */
export interface RolloutOptions {
  readonly wait: 'trial' | 'good' | 'none';
  readonly onFailure: 'stop' | 'revert';
  readonly timeoutMs: number;
  /** Null: 30 seconds with several nodes, none with one. */
  readonly minReadyMs: number | null;
  rulesFor(total: number): AssignRules;
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
