/** How fast an assignment goes out to many nodes. */
export interface AssignRules {
  /** So many nodes go first, and must be there before any other is begun. */
  readonly canary: number;
  /** So many nodes at most are under way or down at a time. */
  readonly maxUnavailable: number;
  /**
   * `out`: nodes that are down come last, and the first failure stops it. `back`: nodes get back what they had; those that are down come first, for that is
   * what may bring them up, and no failure stops it.
   */
  readonly direction: 'out' | 'back';
}

/**
 * Where a node is: `waiting` is not begun · `under-way` was assigned and is not there yet · `passed` is where it was to come · `failed` went back, or will
 * not come there · `unreached` was down before it was begun, and did not come: nobody knows what it makes of it ·
 * `replaced` was assigned something else by another operator.
 */
export type RolloutStage = 'waiting' | 'under-way' | 'passed' | 'failed' | 'unreached' | 'replaced';

/** A node of a rollout as it is now. */
export interface RolloutNode {
  readonly name: string;
  readonly stage: RolloutStage;
  readonly isReady: boolean;
}

/** What is to be done next. */
export type RolloutStep =
  /** These are a batch: begin them at once. */
  | { readonly kind: 'begin'; readonly names: readonly string[]; readonly isCanary: boolean }
  /** A batch is under way. */
  | { readonly kind: 'wait' }
  /** None may be begun: nodes that are down take up all there is. */
  | { readonly kind: 'blocked'; readonly down: readonly string[] }
  /** None is begun any more. */
  | { readonly kind: 'stop'; readonly failed: readonly string[] }
  | { readonly kind: 'done' };

/**
 * The next step of a rollout, by what is known of its nodes now: pure.
 *
 * A batch is begun when the one before is there. It is as large as the rules allow, less the nodes that are down already, whoever took them down. Nodes
 * that are down are begun together: that takes down no other, and what they make of it proves nothing.
 * @param nodes in the order in which they are to be begun
 */
export function nextStep(nodes: readonly RolloutNode[], { canary, maxUnavailable, direction }: AssignRules): RolloutStep {
  const named = (desired: (node: RolloutNode) => boolean): readonly string[] => nodes.filter(desired).map(({ name }) => name);
  if (nodes.some(({ stage }) => stage === 'under-way')) return { kind: 'wait' };
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
  const passed = named(({ stage }) => stage === 'passed').length;
  const isCanary = passed < canary;
  const size = Math.min(room, isCanary ? canary - passed : room);
  return { kind: 'begin', names: well.slice(0, size).map(({ name }) => name), isCanary };
}

/** A batch as it is planned. */
export interface PlannedBatch {
  readonly names: readonly string[];
  readonly isCanary: boolean;
  /** They are down: nobody knows whether they will take it. */
  readonly isDown: boolean;
}

/** The batches that come when every node gets there; `blocked` names those whose being down keeps any from being begun. */
export function planBatches(
  nodes: readonly RolloutNode[],
  rules: AssignRules,
): { readonly batches: readonly PlannedBatch[]; readonly blocked: readonly string[] } {
  const batches: PlannedBatch[] = [];
  let now = nodes.map((node) => (node.stage === 'under-way' ? { ...node, stage: 'passed' as const } : node));
  for (;;) {
    const step = nextStep(now, rules);
    if (step.kind !== 'begin') return { batches, blocked: step.kind === 'blocked' ? step.down : [] };
    const isDown = now.some(({ name, isReady }) => step.names.includes(name) && !isReady);
    batches.push({ names: step.names, isCanary: step.isCanary, isDown });
    now = now.map((node) => (step.names.includes(node.name) ? { ...node, stage: 'passed' as const } : node));
  }
}
