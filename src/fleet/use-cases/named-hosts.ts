import { usageError } from '../../base/errors.ts';
import type { HostTarget } from '../host-target.ts';
import type { FleetFilePorts, HostConnections } from '../ports.ts';
import { declaredNode, selectHosts } from '../select.ts';
import { hostsOfNodes, selectFleetHosts } from './find-node-names.ts';
import { fleetTargets } from './fleet-members.ts';
import type { FleetHostsRequest } from './fleet-request.ts';
import { readHostTarget } from './host-access.ts';
import { directoryOf, fleetFileOf, readFleet } from './load-fleet.ts';

/** Hosts by name or address, or by a selection. */
export interface NamedHostsRequest extends FleetHostsRequest {
  /** Names of the fleet file or addresses; empty: the selection applies. */
  readonly hosts: readonly string[];
}

/** The chosen hosts with their connections. */
export interface NamedHosts {
  readonly names: readonly string[];
  readonly targetOf: (name: string) => Promise<HostTarget>;
  /** Whether hosts were selected by group or pattern. */
  readonly isSelection: boolean;
}

/**
 * The named hosts, or those of `--group` and `--limit`. Names are looked up in the fleet file if one exists.
 * A name that is not in the default fleet file is an address.
 * @param use.changes the hosts are changed: a Node selects a host only if the fleet file declares it
 * @throws AppError with exit code 2
 */
export async function namedHosts(
  services: FleetFilePorts & Pick<HostConnections, 'connectHost'>,
  request: NamedHostsRequest,
  { changes }: { readonly changes: boolean },
): Promise<NamedHosts> {
  const { hosts: given, connection } = request;
  const isSelection = given.length === 0;
  const isNamed = isSelection || request.file !== undefined;
  if (!isNamed && !(await services.input.exists(fleetFileOf(request.file))))
    return { names: given, targetOf: (name) => readHostTarget(services, name, connection), isSelection };
  const fleet = await readFleet(services, request);
  const ofFleet = await fleetTargets(services, connection, directoryOf(services, fleet.file));
  const hosts = new Map(fleet.hosts.map((host) => [host.name, host]));
  const others = isNamed ? given.filter((name) => !hosts.has(name)) : [];
  const nodes = changes
    ? new Map(fleet.hosts.map((host) => [declaredNode(host) ?? host.name, host.name] as const))
    : await hostsOfNodes(services, fleet, { names: others, connection });
  const unknown = others.find((name) => !nodes.has(name));
  if (unknown !== undefined)
    throw usageError(`${fleet.file} has no host or nodeName ${unknown}`, `List the hosts: kubeletadm fleet inventory -f ${fleet.file}`);
  return {
    names: isSelection
      ? (changes ? selectHosts(fleet.hosts, request.selection) : await selectFleetHosts(services, fleet, request)).map(({ name }) => name)
      : [...new Set(given.map((name) => nodes.get(name) ?? name))],
    targetOf: async (name) => {
      const host = hosts.get(name);
      return host === undefined ? readHostTarget(services, name, connection) : ofFleet(host);
    },
    isSelection,
  };
}
