import { type FollowNodesOptions, followNodes } from './follow-nodes.ts';
import { type AssessedNode, assessNodes } from './read-nodes.ts';

/** The current state of the nodes of a rollout. */
export interface NodeFeed {
  /**
   * Returns the nodes; deleted ones are missing.
   * @throws AppError as long as the nodes cannot be read
   */
  read(): Promise<readonly AssessedNode[]>;
  close(): Promise<void>;
}

type NodeFeedOptions = Omit<FollowNodesOptions, 'onChange' | 'onIssue' | 'longestDelayMs'>;

/** Limit of the retry delay, so that a recovered API server is noticed soon. */
const LONGEST_DELAY_MS = 5_000;
/** After a failed watch the nodes are listed: only a second failure means that the nodes cannot be read. */
const FAILURES_BY_KIND = 2;

/**
 * Opens a feed of nodes. The nodes are read once and then watched, so that reading the feed causes no
 * requests.
 * @throws AppError NODE_NOT_FOUND (exit code 2), and the errors of the first read
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

  /** A node that lost its label still exists. */
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
      // The watch has delivered nothing yet.
      return first ?? (await assessNodes(cluster, names, { now: clock.now(), backend }));
    },
    close: async () => {
      stop.abort();
      await followed.ended;
    },
  };
}
