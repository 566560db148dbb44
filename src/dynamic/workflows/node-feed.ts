import { type FollowNodesOptions, followNodes } from './follow-nodes.ts';
import { type JudgedNode, judgeNodes } from './read-nodes.ts';

/** Nodes under way, as they are now. */
export interface NodeFeed {
  /**
   * Nodes of these names that are gone are not among them.
   * @throws AppError what keeps them from being told, for as long as it does
   */
  read(): Promise<readonly JudgedNode[]>;
  close(): Promise<void>;
}

export type NodeFeedOptions = Omit<FollowNodesOptions, 'onChange' | 'onTrouble' | 'longestDelayMs'>;

/** Whoever waits wants to hear soon that the API server is back. */
const LONGEST_DELAY_MS = 5_000;
/** A watch that ends or may not be made is followed by a list: only when that fails as well nothing is told. */
const FAILURES_OF_TROUBLE = 2;

/**
 * Opens a feed of nodes: read once, then followed by a watch, so that reading them costs the API server nothing.
 * @throws AppError NODE_NOT_FOUND (exit code 2), what the first reading throws
 */
export async function openNodeFeed(names: readonly string[], options: NodeFeedOptions): Promise<NodeFeed> {
  const { cluster, clock, backend, signal } = options;
  const stop = new AbortController();
  let failures: readonly unknown[] = [];
  let first: readonly JudgedNode[] | null = await judgeNodes(cluster, names, { now: clock.now(), backend });
  const follow = (labelSelector: string | undefined, until: AbortSignal) =>
    followNodes(names, {
      ...options,
      labelSelector,
      signal: AbortSignal.any([signal, stop.signal, until]),
      longestDelayMs: LONGEST_DELAY_MS,
      onChange: () => {
        failures = [];
      },
      onTrouble: (error) => {
        failures = [...failures, error];
      },
    });
  let widening = new AbortController();
  let followed = follow(options.labelSelector, widening.signal);
  let isByLabel = options.labelSelector !== undefined;

  /** A node that lost its label is still there. */
  const widenFor = async (judged: readonly JudgedNode[]): Promise<boolean> => {
    if (!isByLabel || judged.length === names.length) return false;
    const there = new Set(judged.map(({ config }) => config.name));
    const missing = names.filter((name) => !there.has(name));
    const found = await Promise.all(missing.map((name) => cluster.get({ apiVersion: 'v1', kind: 'Node', name })));
    if (found.every((node) => node === null)) return false;
    isByLabel = false;
    widening.abort();
    widening = new AbortController();
    followed = follow(undefined, widening.signal);
    return true;
  };

  return {
    read: async () => {
      if (failures.length >= FAILURES_OF_TROUBLE) throw failures.at(-1);
      const judged = followed.judge(clock.now());
      if (judged !== null && !(await widenFor(judged))) {
        first = null;
        return judged;
      }
      // Nothing was told yet.
      return first ?? (await judgeNodes(cluster, names, { now: clock.now(), backend }));
    },
    close: async () => {
      stop.abort();
      await followed.ended;
    },
  };
}
