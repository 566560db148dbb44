import { type FollowCollectionOptions, listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { assessNodeConfig } from '../status/assess-node-config.ts';
import { CONFIG_EVENT_REASON } from '../status/config-event.ts';
import { type Backend, readNodeConfig } from '../status/node-config.ts';
import { type AssessedNode, assessNodes, eventsByNode } from './read-nodes.ts';

interface FollowNodesOptions extends Pick<FollowCollectionOptions, 'cluster' | 'clock' | 'random' | 'onIssue' | 'longestDelayMs'> {
  readonly signal: AbortSignal;
  readonly backend?: Backend | undefined;
  readonly labelSelector?: string | undefined;
  /** Called after the first read and at each change of a Node or an Event. */
  readonly onChange: () => void;
}

/**
 * Watches Nodes and the configuration Events of their kubelets until the signal is aborted. Without the right
 * to watch, both are listed about every second.
 * @param names empty: all
 */
function followNodes(names: readonly string[], options: FollowNodesOptions) {
  const { backend, onChange, labelSelector } = options;
  const [only] = names.length === 1 ? names : [];
  const isNamed = new Set(names);
  let nodes: ReadonlyMap<string, KubeObject> | null = null;
  let events: ReadonlyMap<string, KubeObject> = new Map();
  let areEventsKnown = false;
  const change = (): void => {
    if (nodes !== null && areEventsKnown) onChange();
  };
  const nodeSelector = only === undefined ? { labelSelector } : { fieldSelector: `metadata.name=${only}` };
  const eventSelector = `involvedObject.kind=Node,reason=${CONFIG_EVENT_REASON}${only === undefined ? '' : `,involvedObject.name=${only}`}`;
  const following = [
    listWatch(
      { apiVersion: 'v1', kind: 'Node', ...nodeSelector },
      {
        ...options,
        onObjects: (objects) => {
          nodes = objects;
          change();
        },
      },
    ),
    listWatch(
      { apiVersion: 'v1', kind: 'Event', namespace: 'default', fieldSelector: eventSelector },
      {
        ...options,
        onObjects: (objects) => {
          events = objects;
          areEventsKnown = true;
          change();
        },
        // Events are optional: they only show the time of a change.
        onIssue: () => {
          areEventsKnown = true;
          change();
        },
      },
    ),
  ];
  return {
    /** The state of the nodes, from the data received so far; null: not complete yet. */
    validate: (now: Date): readonly AssessedNode[] | null => {
      if (nodes === null || !areEventsKnown) return null;
      const last = eventsByNode([...events.values()]);
      const chosen = [...nodes.values()].filter(({ metadata }) => names.length === 0 || isNamed.has(metadata.name));
      const validated = chosen.map((node) => {
        const config = readNodeConfig(node, backend);
        return { config, verdict: assessNodeConfig(config, last.get(config.name)?.at(-1) ?? null, now) };
      });
      return validated.sort((a, b) => (a.config.name < b.config.name ? -1 : 1));
    },
    /** Resolves when the signal was aborted. */
    ended: Promise.all(following),
  };
}

const POLL_AGAIN_MS = 10_000;

/**
 * Watches Nodes until the signal is aborted.
 * @param names empty: all
 * @param onNodes called after the first read, at each change of a Node or an Event, and at intervals, because a crash loop
 *   causes no change
 */
export async function watchNodes(
  names: readonly string[],
  options: Omit<FollowNodesOptions, 'onChange'>,
  onNodes: (nodes: readonly AssessedNode[]) => void,
): Promise<void> {
  const { clock, signal } = options;
  const notify = (): void => {
    const validated = followed.validate(clock.now());
    if (validated !== null) onNodes(validated);
  };
  const followed = followNodes(names, { ...options, onChange: notify });
  while (!signal.aborted) {
    await clock.sleep(POLL_AGAIN_MS, signal).catch(() => undefined);
    if (!signal.aborted) notify();
  }
  await followed.ended;
}

/** The current state of the nodes of a rollout. */
export type NodeFeed = Awaited<ReturnType<typeof openNodeFeed>>;

/** Limit of the retry delay, so that a recovered API server is noticed soon. */
const LONGEST_DELAY_MS = 5_000;
/** After a failed watch the nodes are listed: only a second failure means that the nodes cannot be read. */
const FAILURES_BY_KIND = 2;

/**
 * Opens a feed of nodes. The nodes are read once and then watched, so that reading the feed causes no
 * requests.
 * @throws AppError NODE_NOT_FOUND (exit code 2), and the errors of the first read
 */
export async function openNodeFeed(names: readonly string[], options: Omit<FollowNodesOptions, 'onChange' | 'onIssue' | 'longestDelayMs'>) {
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
    /**
     * Returns the nodes; deleted ones are missing.
     * @throws AppError as long as the nodes cannot be read
     */
    read: async (): Promise<readonly AssessedNode[]> => {
      if (failures.length >= FAILURES_BY_KIND) throw failures.at(-1);
      const validated = followed.validate(clock.now());
      if (validated !== null && !(await widenFor(validated))) {
        first = null;
        return validated;
      }
      // The watch has delivered nothing yet.
      return first ?? (await assessNodes(cluster, names, { now: clock.now(), backend }));
    },
    close: async (): Promise<void> => {
      stop.abort();
      await followed.ended;
    },
  };
}
