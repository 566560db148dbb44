import { usageError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { FleetFilePorts } from '../ports.ts';
import { selectHosts } from '../select.ts';
import { readFleet } from './load-fleet.ts';

/** Selection of nodes on the command line. */
export interface NodeChoice {
  readonly names: readonly string[];
  /** A label selector for Nodes in kubectl's syntax. */
  readonly selector: string | undefined;
  readonly groups: readonly string[];
  /** The fleet file of the groups; undefined: the default. */
  readonly fleetFile: string | undefined;
}

/**
 * The names of the selected nodes, in processing order: as given, in the order of the fleet file, or sorted
 * by name. The Node of a fleet host is its `nodeName`, otherwise the name of the host.
 * @throws AppError USAGE for an empty selection; errors of reading the fleet file and the Nodes
 */
export async function findNodeNames(services: FleetFilePorts, cluster: Cluster, choice: NodeChoice): Promise<readonly string[]> {
  const { names, selector, groups, fleetFile } = choice;
  if (names.length > 0) return names;
  if (selector !== undefined) {
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: selector });
    if (items.length === 0) throw usageError(`--selector ${selector}: no Node matches`, 'List the labels: kubectl get nodes --show-labels');
    return items.map(({ metadata }) => metadata.name).sort();
  }
  const fleet = await readFleet(services, { file: fleetFile });
  const hosts = selectHosts(fleet.hosts, { limit: [], groups });
  return [...new Set(hosts.map(({ name, nodeRegistration }) => (nodeRegistration.name ?? name).trim().toLowerCase()))];
}
