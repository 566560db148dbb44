import { type FollowNodesOptions, followNodes } from './follow-nodes.ts';
import { type AssessedNode, assessNodes } from './read-nodes.ts';

/** Nodes under way, as they are now. */
export interface NodeFeed {
  /**
   * Nodes of these names that are gone are not among them.
   * @throws AppError what keeps them from being told, for as long as it does
   */
  read(): Promise<readonly AssessedNode[]>;
  close(): Promise<void>;
}

export type NodeFeedOptions = Omit<FollowNodesOptions, 'onChange' | 'onIssue' | 'longestDelayMs'>;

/** Whoever waits wants to hear soon that the API server is back. */
const LONGEST_DELAY_MS = 5_000;
/** A watch that ends or may not be made is followed by a list: only when that fails as well nothing is told. */
const FAILURES_BY_KIND = 2;

/**
 * Opens a feed of nodes: read once, then followed by a watch, so that reading them costs the API server nothing.
 * @throws AppError NODE_NOT_FOUND (exit code 2), what the first reading throws
 */
export async function openNodeFeed(names: readonly string[], options: NodeFeedOptions): Promise<NodeFeed> {
  const { cluster, clock, backend, signal } = options;
  const stop = new AbortController();
  let failures: readonly unknown[] = [];
  let first: readonly AssessedNode[] | null = await assessNodes(cluster, names, { now: clock.now(), backend });
  const follow = (labelSelector: string | undefined, until: AbortSignal) =>
    followNodes(names, {
      ...options,
      labelSelector,
      signal: AbortSignal.any([signal, stop.signal, until]),
      longestDelayMs: LONGEST_DELAY_MS,
      onChange: () => {
        failures = [];
      },
      onIssue: (error) => {
        failures = [...failures, error];
      },
    });
  let widening = new AbortController();
  let followed = follow(options.labelSelector, widening.signal);
  let isByLabel = options.labelSelector !== undefined;

  /** A node that lost its label is still there. */
  const widenFor = async (validated: readonly AssessedNode[]): Promise<boolean> => {
    if (!isByLabel || validated.length === names.length) return false;
    const existing = new Set(validated.map(({ config }) => config.name));
    const missing = names.filter((name) => !existing.has(name));
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
      if (failures.length >= FAILURES_BY_KIND) throw failures.at(-1);
      const validated = followed.validate(clock.now());
      if (validated !== null && !(await widenFor(validated))) {
        first = null;
        return validated;
      }
      // Nothing was told yet.
      return first ?? (await assessNodes(cluster, names, { now: clock.now(), backend }));
    },
    close: async () => {
      stop.abort();
      await followed.ended;
    },
  };
}
