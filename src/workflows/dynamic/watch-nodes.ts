import { CONFIG_EVENT_REASON } from '../../core/dynamic/config-event.ts';
import { judgeNodeConfig } from '../../core/dynamic/judge-node-config.ts';
import { type Backend, readNodeConfig } from '../../core/dynamic/node-config.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { type FollowCollectionOptions, followCollection } from '../../engine/follow-collection.ts';
import { eventsByNode, type JudgedNode } from './read-nodes.ts';

export interface WatchNodesOptions extends Pick<FollowCollectionOptions, 'cluster' | 'clock' | 'random' | 'onTrouble'> {
  readonly signal: AbortSignal;
  readonly backend?: Backend | undefined;
  /** What became of the nodes' assignments: at first, whenever a Node or an Event changed, and now and then, for a loop shows by nothing being said. */
  readonly onNodes: (nodes: readonly JudgedNode[]) => void;
}

const LOOK_AGAIN_MS = 10_000;

/**
 * Follows Nodes and what their kubelets say of changes, by one watch each, until the signal is aborted.
 * @param names none: all
 */
export async function watchNodes(names: readonly string[], options: WatchNodesOptions): Promise<void> {
  const { clock, signal, backend, onNodes } = options;
  const [only] = names.length === 1 ? names : [];
  let nodes: ReadonlyMap<string, KubeObject> | null = null;
  let events: ReadonlyMap<string, KubeObject> = new Map();
  let areEventsKnown = false;
  const tell = (): void => {
    if (nodes === null || !areEventsKnown) return;
    const last = eventsByNode([...events.values()]);
    const chosen = [...nodes.values()].filter(({ metadata }) => names.length === 0 || names.includes(metadata.name));
    const judged = chosen.map((node) => {
      const config = readNodeConfig(node, backend);
      return { config, verdict: judgeNodeConfig(config, last.get(config.name)?.at(-1) ?? null, clock.now()) };
    });
    onNodes(judged.sort((a, b) => (a.config.name < b.config.name ? -1 : 1)));
  };
  const nodeSelector = only === undefined ? {} : { fieldSelector: `metadata.name=${only}` };
  const eventSelector = `involvedObject.kind=Node,reason=${CONFIG_EVENT_REASON}${only === undefined ? '' : `,involvedObject.name=${only}`}`;
  await Promise.all([
    followCollection(
      { apiVersion: 'v1', kind: 'Node', ...nodeSelector },
      {
        ...options,
        onObjects: (objects) => {
          nodes = objects;
          tell();
        },
      },
    ),
    followCollection(
      { apiVersion: 'v1', kind: 'Event', namespace: 'default', fieldSelector: eventSelector },
      {
        ...options,
        onObjects: (objects) => {
          events = objects;
          areEventsKnown = true;
          tell();
        },
        // Events only tell since when.
        onTrouble: () => {
          areEventsKnown = true;
          tell();
        },
      },
    ),
    (async () => {
      while (!signal.aborted) {
        await clock.sleep(LOOK_AGAIN_MS, signal).catch(() => undefined);
        if (!signal.aborted) tell();
      }
    })(),
  ]);
}
