import { definePhase } from '../../host/phase.ts';
import type { HostChange } from '../../host/plan/change.ts';
import type { Workflow } from '../../host/run-workflow.ts';
import type { Catalogue } from '../../kubelet/catalogue/catalogue.ts';
import { checkpointDirectory } from '../../kubelet/node-agent/layout.ts';
import { unneededCheckpoints } from '../agent/agent-report.ts';
import { reportStore, unusedCheckpoints } from '../native/native-report.ts';
import { nativeStorePaths } from '../native/native-store.ts';
import { hasAgent, readAgent } from './read-agent.ts';
import { readStore } from './read-store.ts';

interface CollectOptions {
  readonly catalogue: Catalogue;
  /** Directory of a kubelet up to 1.23; null: an agent, or the flag of the kubelet. */
  readonly directory: string | null;
  /** Younger checkpoints are kept, because they may be about to be used. */
  readonly olderThanSeconds: number;
}

/** Removes unneeded checkpoints of a host: kubelets up to 1.23 never do, and an agent keeps a few. */
const collect = definePhase<CollectOptions, readonly HostChange[]>({
  name: 'dynamic-gc',
  short: 'Remove unused checkpoints',
  observe: async ({ host, signal }, { catalogue, directory, olderThanSeconds }) => {
    const reason = 'the checkpoint is no longer used';
    if (directory === null && (await hasAgent(host, signal))) {
      const { reading } = await readAgent(host, catalogue, signal);
      const hashes = unneededCheckpoints(reading, olderThanSeconds);
      return hashes.map((hash) => ({ kind: 'remove-directory', path: checkpointDirectory(reading.directory, hash), reason }) as const);
    }
    const { reading } = await readStore(host, { catalogue, directory, signal });
    const { checkpoints } = nativeStorePaths(reading.directory);
    const unused = unusedCheckpoints(reading, reportStore(reading));
    return unused.map(
      ({ uid, resourceVersion }) => ({ kind: 'remove-directory', path: `${checkpoints}/${uid}/${resourceVersion}`, reason }) as const,
    );
  },
  plan: (changes) => (changes.length === 0 ? { changes, noop: 'all checkpoints are in use or too recent' } : { changes }),
});

/** `dynamic gc --host`. */
export const collectWorkflow: Workflow<CollectOptions, CollectOptions> = {
  name: 'dynamic gc',
  phases: [collect],
  prepare: async (_, options) => ({ input: options, warnings: [], refusals: [] }),
};
