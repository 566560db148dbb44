import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/question.ts';
import { observe } from '../../host/observe.ts';
import { definePhase } from '../../host/phase.ts';
import { diffFile } from '../../host/plan/diff-file.ts';
import { encodeNodeMemory, NODE_MEMORY_PATH, type NodeMemory } from '../node-settings/node-memory.ts';

export interface RememberNodeInput {
  readonly memory: NodeMemory;
  /** False for a user who may not chown (an unprivileged `--rootfs`). */
  readonly mayChown: boolean;
}

/**
 * Keeps on the host what was declared for its node, so that `upgrade node` needs none of it again. It comes after the kubelet was found healthy with it: what
 * was rolled back is never remembered. A child of the phase that writes the kubelet's files: the two are run and skipped together.
 */
function rememberNode(parent: string) {
  return definePhase<RememberNodeInput, FileFact | null>({
    name: `${parent}/remember`,
    short: 'Store the declared node settings on the host for upgrades',
    observe: async ({ host, signal }) => (await observe(host, fileFacts([NODE_MEMORY_PATH]), signal)).get(NODE_MEMORY_PATH) ?? null,
    plan: (found, { memory, mayChown }) => {
      const wanted = { path: NODE_MEMORY_PATH, content: encodeNodeMemory(memory), mode: 0o600, owner: 'root:root' };
      const change = diffFile(found, wanted, { mayChown });
      return change === null ? { changes: [], noop: 'what was declared for this node is remembered' } : { changes: [change] };
    },
  });
}

/** Of init and join. */
export const rememberStartedNode = rememberNode('kubelet-start');

/** Of upgrade node. */
export const rememberUpgradedNode = rememberNode('kubelet-config');
