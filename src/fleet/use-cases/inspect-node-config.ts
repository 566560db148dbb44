import { isAppError } from '../../base/errors.ts';
import type { Backend } from '../../dynamic/status/node-config.ts';
import { hasAgent, type ReadAgent, readAgent } from '../../dynamic/workflows/read-agent.ts';
import { readNodes } from '../../dynamic/workflows/read-nodes.ts';
import { type ReadStore, readStore } from '../../dynamic/workflows/read-store.ts';
import { repairWorkflow } from '../../dynamic/workflows/repair-config.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { lazyCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import { isKubeconfigGiven, type KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { Assigner } from '../../kubelet/effective/node-source.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { ConnectionRequest } from './host-access.ts';
import { findTarget } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface InspectRequest {
  /** The host, by a name of the fleet file or by address; `localhost`: the local host. */
  readonly address: string;
  /** The fleet file; undefined: `fleet.yaml`, if it exists. */
  readonly file?: string | undefined;
  /** The checkpoint directory; null: from the command line of the kubelet. */
  readonly directory: string | null;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

/** The files of the agent, or of the kubelet's own dynamic configuration. */
export type InspectedHost = { readonly host: string; readonly assigner: InspectedAssigner } & (
  | { readonly agent: ReadAgent }
  | { readonly store: ReadStore }
);

/** The author of the Node's assignment; null: without a cluster, or without an assignment. `why`: the Node cannot be read. */
export type InspectedAssigner = Assigner | { readonly why: string } | null;

/**
 * Reads the dynamic configuration of a host, and with a kubeconfig the author of the assignment from its Node: of the agent if the host has one and no checkpoint directory was given,
 * else of the kubelet itself.
 */
export async function inspectNodeConfig(services: NodeCommandPorts, request: InspectRequest): Promise<InspectedHost> {
  const { directory } = request;
  const { signal } = services;
  const { target } = await findTarget(services, { ...request, name: request.address }, { changes: false });
  const catalogue = await loadCatalogue();
  const cluster = request.cluster.kubeconfig === undefined ? null : lazyCluster(services, request.cluster);
  const host = await services.connectHost(target);
  try {
    const opened = (await cluster?.open()) ?? null;
    if (directory === null && (await hasAgent(host, signal))) {
      const agent = await readAgent(host, catalogue, signal);
      return { host: host.name, agent, assigner: await assignerOf(opened, agent.nodeName, 'agent') };
    }
    const store = await readStore(host, { catalogue, directory, cluster: opened, signal });
    return { host: host.name, store, assigner: await assignerOf(opened, store.nodeName, 'native') };
  } finally {
    await cluster?.close();
    await host.close();
  }
}

async function assignerOf(cluster: Cluster | null, nodeName: string | null, backend: Backend): Promise<InspectedAssigner> {
  if (cluster === null || nodeName === null) return null;
  try {
    const [node] = await readNodes(cluster, [nodeName], { backend });
    return node === undefined || node.source.source === null ? null : node.assigner;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { why: error.message };
  }
}

/** Prepares `dynamic inspect HOST --repair`. */
export async function openRepair(
  services: NodeCommandPorts,
  request: InspectRequest & HostsSettings,
  { reporter, opened }: CommandScope,
): Promise<HostsCommand> {
  const { target } = await findTarget(services, { ...request, name: request.address }, { changes: true });
  const cluster = isKubeconfigGiven(request.cluster) ? lazyCluster(services, request.cluster, { writes: reporter }) : null;
  if (cluster !== null) opened(cluster);
  const options = { catalogue: await loadCatalogue(), directory: request.directory };
  return {
    targets: [target],
    cluster: (await cluster?.open()) ?? null,
    planHost: (context, run) => planWorkflow(repairWorkflow, context, options, run),
    run: request.run,
    warnings: [],
  };
}
