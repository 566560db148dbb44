import { fileFacts } from '../core/facts/file-facts.ts';
import type { FileFact } from '../core/facts/question.ts';
import { diffDirectory } from '../core/plan/diff-file.ts';
import { observe } from '../engine/observe.ts';
import { definePhase } from '../engine/phase.ts';

/** Creates the directory of the agent's state and checkpoints, for root alone: the sandbox of its unit lets it write nowhere else. */
export const agentDirectory = definePhase<string | null, FileFact | null>({
  name: 'agent-directory',
  short: "Create the directory of the agent's state and checkpoints",
  observe: async ({ host, signal }, path) => (path === null ? null : ((await observe(host, fileFacts([path]), signal)).get(path) ?? null)),
  plan: (found, path) => {
    if (path === null) return { changes: [] };
    const change = diffDirectory(found, path, 0o700);
    return change === null ? { changes: [], noop: `${path} exists` } : { changes: [change] };
  },
});
