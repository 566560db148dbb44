import { type FollowNodesOptions, followNodes } from './follow-nodes.ts';
import type { AssessedNode } from './read-nodes.ts';

export interface WatchNodesOptions extends Omit<FollowNodesOptions, 'onChange'> {
  /**
   * Called after the first read, at each change of a Node or an Event, and at intervals, because a crash loop
   * causes no change.
   */
  readonly onNodes: (nodes: readonly AssessedNode[]) => void;
}

const POLL_AGAIN_MS = 10_000;

/**
 * Watches Nodes until the signal is aborted.
 * @param names empty: all
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
