import { type FollowNodesOptions, followNodes } from './follow-nodes.ts';
import type { AssessedNode } from './read-nodes.ts';

export interface WatchNodesOptions extends Omit<FollowNodesOptions, 'onChange'> {
  /** What became of the nodes' assignments: at first, whenever a Node or an Event changed, and now and then, for a loop shows by nothing being said. */
  readonly onNodes: (nodes: readonly AssessedNode[]) => void;
}

const POLL_AGAIN_MS = 10_000;

/**
 * Tells of Nodes until the signal is aborted.
 * @param names none: all
 */
export async function watchNodes(names: readonly string[], { onNodes, ...options }: WatchNodesOptions): Promise<void> {
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
