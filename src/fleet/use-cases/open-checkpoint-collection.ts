import { collectWorkflow } from '../../dynamic/workflows/collect-checkpoints.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { NamedHostPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import { readHostTargets } from './named-hosts.ts';
import type { OpenedCommand } from './run-workflow-on-hosts.ts';

export interface CheckpointCollectionRequest {
  readonly olderThan: { readonly seconds: number };
  /** The checkpoint directory of a kubelet up to 1.23; null: from its command line. */
  readonly checkpointDirectory: string | null;
  readonly run: RunSettings;
  readonly writing: WritingRequest;
}

/** Prepares `dynamic gc --host`: deletes the unused checkpoints on hosts. */
export async function openCheckpointCollection(
  services: NamedHostPorts,
  { olderThan, checkpointDirectory, run, writing }: CheckpointCollectionRequest,
  hosts: HostsRequest,
): Promise<OpenedCommand> {
  const options = { catalogue: await loadCatalogue(), directory: checkpointDirectory, olderThanSeconds: olderThan.seconds };
  return {
    workflow: {
      targets: await readHostTargets(services, hosts),
      cluster: null,
      planHost: (context, run) => planWorkflow(collectWorkflow, context, options, run),
      writing,
      run,
    },
    warnings: [],
    close: async () => undefined,
  };
}
