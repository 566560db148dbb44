import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { observe } from '../../host/observe.ts';
import { definePhase } from '../../host/phase.ts';
import { diffDirectory } from '../../host/plan/diff-file.ts';

/**
 * Creates the directory of the agent's state and checkpoints, for root only. The sandbox of the agent's unit
 * forbids writes elsewhere.
 */
export const agentDirectory = definePhase<string | null, FileFact | null>({
  name: 'agent-directory',
  short: 'Create the state and checkpoint directory of the agent',
  observe: async ({ host, signal }, path) => (path === null ? null : ((await observe(host, fileFacts([path]), signal)).get(path) ?? null)),
  plan: (found, path) => {
    if (path === null) return { changes: [] };
    const change = diffDirectory(found, path, 0o700);
    return change === null ? { changes: [], noop: `${path} exists` } : { changes: [change] };
  },
});
