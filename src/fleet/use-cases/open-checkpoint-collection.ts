import { collectWorkflow } from '../../dynamic/workflows/collect-checkpoints.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { NamedHostPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { HostsCommand, HostsSettings } from './run-hosts.ts';

export interface CheckpointCollectionRequest extends HostsSettings {
  readonly olderThan: { readonly seconds: number };
  /** The checkpoint directory of a kubelet up to 1.23; null: from its command line. */
  readonly checkpointDirectory: string | null;
}

/** Prepares `dynamic gc --host`: deletes the unused checkpoints on hosts. */
export async function openCheckpointCollection(
  services: NamedHostPorts,
  { olderThan, checkpointDirectory, run }: CheckpointCollectionRequest,
  hosts: HostsRequest,
): Promise<HostsCommand> {
  const options = { catalogue: await loadCatalogue(), directory: checkpointDirectory, olderThanSeconds: olderThan.seconds };
  return {
    targets: await readHostTargets(services, hosts),
    cluster: null,
    planHost: (context, run) => planWorkflow(collectWorkflow, context, options, run),
    run,
    warnings: [],
  };
}
