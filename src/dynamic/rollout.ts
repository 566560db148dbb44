/** Limits on how fast an assignment reaches many nodes. */
export interface AssignRules {
  /** Number of nodes that are updated first; other nodes start only after these succeeded. */
  readonly canary: number;
  /** Maximum number of nodes in progress or down at the same time. */
  readonly maxUnavailable: number;
  /**
   * `out`: unavailable nodes are last, and the first failure stops the rollout. `back`: nodes get their
   * previous assignment again; unavailable nodes are first, because the previous assignment may repair them,
   * and no failure stops the rollout.
   */
  readonly direction: 'out' | 'back';
}

/**
 * Stage of a node: `waiting` is not started · `in-progress` is assigned and not updated yet · `updated` runs
 * the desired configuration · `failed` was rolled back, or cannot be updated · `unreachable` was down before
 * its start and did not become Ready, so that the effect of the configuration is unknown · `replaced` has an
 * assignment of another operator.
 */
export type RolloutStage = 'waiting' | 'in-progress' | 'updated' | 'failed' | 'unreachable' | 'replaced';

/** A node of a rollout as it is now. */
export interface RolloutNode {
  readonly name: string;
  readonly stage: RolloutStage;
  readonly isReady: boolean;
}

/** The next action of a rollout. */
export type RolloutStep =
  /** Start these nodes together, as a batch. */
  | { readonly kind: 'begin'; readonly names: readonly string[]; readonly isCanary: boolean }
  /** A batch is in progress. */
  | { readonly kind: 'wait' }
  /** No node can start: unavailable nodes use up `maxUnavailable`. */
  | { readonly kind: 'blocked'; readonly down: readonly string[] }
  /** No further node is started. */
  | { readonly kind: 'stop'; readonly failed: readonly string[] }
  | { readonly kind: 'done' };

/**
 * Returns the next step of a rollout for the current state of its nodes, without side effects.
 *
 * A batch starts when the previous one is updated. Its size is the maximum allowed minus the number of
 * unavailable nodes. Unavailable nodes are started together: they make no further node unavailable, and their
 * result proves nothing.
 * @param nodes in start order
 */
export function nextRolloutStep(nodes: readonly RolloutNode[], { canary, maxUnavailable, direction }: AssignRules): RolloutStep {
  const named = (desired: (node: RolloutNode) => boolean): readonly string[] => nodes.filter(desired).map(({ name }) => name);
  if (nodes.some(({ stage }) => stage === 'in-progress')) return { kind: 'wait' };
  const failed = named(({ stage }) => stage === 'failed' || stage === 'replaced');
  if (failed.length > 0 && direction === 'out') return { kind: 'stop', failed };
  const waiting = nodes.filter(({ stage }) => stage === 'waiting');
  if (waiting.length === 0) return { kind: 'done' };
  const well = waiting.filter(({ isReady }) => isReady);
  if (well.length === 0 || (direction === 'back' && well.length < waiting.length))
    return { kind: 'begin', names: named(({ stage, isReady }) => stage === 'waiting' && !isReady), isCanary: false };
  const down = named(({ isReady }) => !isReady);
  const room = maxUnavailable - down.length;
  if (room <= 0) return { kind: 'blocked', down };
  const passed = named(({ stage }) => stage === 'updated').length;
  const isCanary = passed < canary;
  const size = Math.min(room, isCanary ? canary - passed : room);
  return { kind: 'begin', names: well.slice(0, size).map(({ name }) => name), isCanary };
}

/** A planned batch. */
export interface PlannedBatch {
  readonly names: readonly string[];
  readonly isCanary: boolean;
  /** The nodes are down, so that their result cannot be predicted. */
  readonly isDown: boolean;
}

/** The batches if every node succeeds; `blocked` names the unavailable nodes that prevent any start. */
export function planBatches(
  nodes: readonly RolloutNode[],
  rules: AssignRules,
): { readonly batches: readonly PlannedBatch[]; readonly blocked: readonly string[] } {
  const batches: PlannedBatch[] = [];
  let now = nodes.map((node) => (node.stage === 'in-progress' ? { ...node, stage: 'updated' as const } : node));
  for (;;) {
    const step = nextRolloutStep(now, rules);
    if (step.kind !== 'begin') return { batches, blocked: step.kind === 'blocked' ? step.down : [] };
    const isDown = now.some(({ name, isReady }) => step.names.includes(name) && !isReady);
    batches.push({ names: step.names, isCanary: step.isCanary, isDown });
    now = now.map((node) => (step.names.includes(node.name) ? { ...node, stage: 'updated' as const } : node));
  }
}

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
