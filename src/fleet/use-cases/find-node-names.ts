import { usageError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import type { FleetFilePorts } from '../ports.ts';
import { selectHosts } from '../select.ts';
import { type FleetRequest, readFleet } from './load-fleet.ts';

/** Selection of nodes on the command line. */
export type NodeChoice =
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'selector'; readonly selector: LabelSelector }
  | ({ readonly kind: 'fleet' } & FleetRequest);

/**
 * The names of the selected nodes, in processing order: as given, in the order of the fleet file, or sorted
 * by name. The Node of a fleet host is its `nodeName`, otherwise the name of the host.
 * @throws AppError USAGE for an empty selection; errors of reading the fleet file and the Nodes
 */
export async function findNodeNames(services: FleetFilePorts, cluster: Cluster, choice: NodeChoice): Promise<readonly string[]> {
  if (choice.kind === 'names') return choice.names;
  if (choice.kind === 'selector') {
    const { text } = choice.selector;
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: text });
    if (items.length === 0) throw usageError(`--selector ${text}: no Node matches`, 'List the labels: kubectl get nodes --show-labels');
    return items.map(({ metadata }) => metadata.name).sort();
  }
  return nodesOfFleet(services, choice);
}

/** The names of the Nodes of the selected hosts of a fleet file, in the order of the file. */
export async function nodesOfFleet(services: FleetFilePorts, { file, selection }: FleetRequest): Promise<readonly string[]> {
  const fleet = await readFleet(services, { file });
  const hosts = selectHosts(fleet.hosts, selection);
  return [...new Set(hosts.map(({ name, nodeRegistration }) => (nodeRegistration.name ?? name).trim().toLowerCase()))];
}
