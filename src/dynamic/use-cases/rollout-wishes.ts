import type { AssignRules } from '../rollout.ts';

/** How an assignment is to go out, as the command line says it. */
export interface RolloutOptions {
  readonly wait: 'trial' | 'good' | 'none';
  readonly onFailure: 'stop' | 'revert';
  readonly timeoutMs: number;
  /** Null: half a minute with several nodes, none with one. */
  readonly minReadyMs: number | null;
  rulesFor(total: number): AssignRules;
}

const MIN_READY_MS = 30_000;

/** How long nodes have to be well before they count. Those that are to be good were well through a whole trial. */
export function minReadyOf({ wait, minReadyMs }: RolloutOptions, total: number): number {
  if (minReadyMs !== null) return minReadyMs;
  return total > 1 && wait === 'trial' ? MIN_READY_MS : 0;
}
