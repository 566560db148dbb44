import type { RunTime } from '../../base/clock.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { hasAgent, type ReadAgent, readAgent } from '../../dynamic/workflows/read-agent.ts';
import { type ReadStore, readStore } from '../../dynamic/workflows/read-store.ts';
import { repairWorkflow } from '../../dynamic/workflows/repair-config.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { clusterOnUse } from '../../kubeadm/use-cases/cluster-on-use.ts';
import { isKubeconfigGiven, type KubeconfigRequest, type OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { loadCatalogue } from '../../kubelet/catalogue.ts';
import type { HostConnections } from '../ports.ts';
import { type ConnectionRequest, readHostTarget } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import type { OpenedCommand } from './run-workflow-on-hosts.ts';

export interface InspectRequest {
  /** The host; `localhost`: the local host. */
  readonly address: string;
  /** The checkpoint directory; null: from the command line of the kubelet. */
  readonly directory: string | null;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

/** Ports of `dynamic inspect`. */
export type InspectPorts = LocalFiles & OpenClusterPorts & Pick<RunTime, 'signal'> & Pick<HostConnections, 'connectHost'>;

/** The files of the agent, or of the kubelet's own dynamic configuration. */
export type InspectedHost = { readonly host: string } & ({ readonly agent: ReadAgent } | { readonly store: ReadStore });

/**
 * Reads the dynamic configuration of a host: of the agent if the host has one and no checkpoint directory was given,
 * else of the kubelet itself.
 */
export async function inspectNodeConfig(services: InspectPorts, request: InspectRequest): Promise<InspectedHost> {
  const { directory } = request;
  const { signal } = services;
  const target = await readHostTarget(services, request.address, request.connection);
  const catalogue = await loadCatalogue();
  const cluster = request.cluster.kubeconfig === undefined ? null : clusterOnUse(services, request.cluster);
  const host = await services.connectHost(target);
  try {
    if (directory === null && (await hasAgent(host, signal))) return { host: host.name, agent: await readAgent(host, catalogue, signal) };
    const store = await readStore(host, { catalogue, directory, cluster: (await cluster?.open()) ?? null, signal });
    return { host: host.name, store };
  } finally {
    await cluster?.close();
    await host.close();
  }
}

/** Prepares `dynamic inspect HOST --repair`. */
export async function openRepair(
  services: InspectPorts,
  request: InspectRequest & { readonly dryRun: boolean; readonly writing: WritingRequest },
  reporter: Reporter,
): Promise<OpenedCommand> {
  const target = await readHostTarget(services, request.address, request.connection);
  const cluster = isKubeconfigGiven(request.cluster) ? clusterOnUse(services, request.cluster, { writes: reporter }) : null;
  const close = async (): Promise<void> => cluster?.close();
  try {
    const options = { catalogue: await loadCatalogue(), directory: request.directory };
    return {
      workflow: {
        targets: [target],
        cluster: (await cluster?.open()) ?? null,
        planHost: (context, run) => planWorkflow(repairWorkflow, context, options, run),
        writing: request.writing,
        dryRun: request.dryRun,
        skipPhases: [],
      },
      warnings: [],
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
