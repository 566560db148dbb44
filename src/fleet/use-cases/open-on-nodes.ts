import type { DynamicHostOptions } from '../../dynamic/workflows/observe-dynamic-host.ts';
import type { PlanOnHost } from '../../host/run-workflow.ts';
import { type KubeconfigRequest, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { ConnectionRequest } from './host-access.ts';
import { findTargets } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface NodesRequest extends HostsSettings {
  /** Names of the fleet file, or addresses. */
  readonly addresses: readonly string[];
  /** The fleet file; undefined: `fleet.yaml`, if it exists. */
  readonly file?: string | undefined;
  /** Null: the one registered by the host. */
  readonly nodeName: string | null;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

/** Prepares a workflow on the named hosts, with the cluster of these nodes. @throws the errors of `openCluster` */
export async function openOnNodes(
  services: NodeCommandPorts,
  { addresses: names, nodeName, cluster: named, run, ...request }: NodesRequest,
  { scope, plannerOf }: { readonly scope: CommandScope; readonly plannerOf: (common: DynamicHostOptions) => Promise<PlanOnHost> },
): Promise<HostsCommand> {
  const targets = (await findTargets(services, { ...request, names }, { changes: true })).map(({ target }) => target);
  const catalogue = await loadCatalogue();
  const opened = await openCluster(services, named, { writes: scope.reporter });
  const { cluster, warnings } = opened;
  if (cluster !== null) scope.opened(cluster);
  const planHost = await plannerOf({
    templates: await services.templates(),
    catalogue,
    nodeName,
    trust: operatorNodeTrust(services, opened),
  });
  return { targets, cluster, planHost, run, inspectsFirst: true, warnings };
}
