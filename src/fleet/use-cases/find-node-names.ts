import { usageError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { FleetFilePorts } from '../ports.ts';
import { selectHosts } from '../select.ts';
import { readFleet } from './load-fleet.ts';

/** What the command line says of the nodes it means, before the cluster is asked. */
export interface NodeChoice {
  readonly names: readonly string[];
  /** Of Nodes, as kubectl takes it. */
  readonly selector: string | undefined;
  readonly groups: readonly string[];
  /** The fleet file of the groups; undefined: the default. */
  readonly fleetFile: string | undefined;
}

/**
 * The names of the nodes that are meant, in the order in which they are to be worked on: as given, as the fleet file has them, or by name. A host of a fleet
 * is the Node of its `nodeName`, else of its own name.
 * @throws AppError USAGE when that is nobody, and what reading the fleet file and the Nodes throws
 */
export async function findNodeNames(services: FleetFilePorts, cluster: Cluster, choice: NodeChoice): Promise<readonly string[]> {
  const { names, selector, groups, fleetFile } = choice;
  if (names.length > 0) return names;
  if (selector !== undefined) {
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: selector });
    if (items.length === 0)
      throw usageError(`--selector ${selector}: no Node has such labels`, 'kubectl get nodes --show-labels tells them');
    return items.map(({ metadata }) => metadata.name).sort();
  }
  const fleet = await readFleet(services, { file: fleetFile });
  const hosts = selectHosts(fleet.hosts, { limit: [], groups });
  return [...new Set(hosts.map(({ name, nodeRegistration }) => (nodeRegistration.name ?? name).trim().toLowerCase()))];
}
