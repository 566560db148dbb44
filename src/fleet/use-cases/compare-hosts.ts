import type { Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { ResolvedFleet, ResolvedHost } from '../file/model.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import type { FleetPorts, FleetResult } from '../run/fleet.ts';
import { planHosts } from '../run/plan-hosts.ts';
import { selectFleetHosts } from './find-node-names.ts';
import { type FleetMembersInput, fleetMembers } from './fleet-members.ts';
import { type FleetRunRequest, toCompare } from './fleet-request.ts';
import { fleetRules } from './fleet-rules.ts';
import { readFleet } from './load-fleet.ts';
import { type FleetAccess, openFleetCluster } from './open-fleet-cluster.ts';
import { clusterRoutes } from './open-fleet-run.ts';

export type ComparePorts = FleetRunPorts & FleetFilePorts;

export interface CompareView {
  readonly reporter: Reporter;
  readonly ports: FleetPorts;
  /** Receives warnings about the fleet file. */
  warning?(problem: Problem): void;
}

/**
 * Plans the selected hosts of a fleet, without hooks, to compare them with the fleet file.
 * @param inspect reads more about a connected host before the host is planned
 * @param use receives the fleet, its selected hosts and its cluster; `plan` plans the hosts
 * @throws AppError with exit code 2 for an invalid file or selection; errors of opening the cluster
 */
export async function compareHosts<T>(
  services: ComparePorts,
  given: FleetRunRequest,
  { reporter, ports, warning }: CompareView,
  inspect: FleetMembersInput['inspect'],
  use: (compared: {
    readonly fleet: ResolvedFleet;
    readonly hosts: readonly ResolvedHost[];
    readonly access: FleetAccess;
    readonly plan: () => Promise<FleetResult>;
  }) => Promise<T>,
): Promise<T> {
  const request = toCompare(given);
  const fleet = await readFleet(services, request);
  for (const one of fleet.warnings) warning?.(one);
  const hosts = await selectFleetHosts(services, fleet, request);
  const run = { tasks: hosts.map((host) => ({ host })), hosts: fleet.hosts, cluster: fleet.cluster, file: fleet.file, reporter };
  const through = await clusterRoutes(services, request, fleet, hosts);
  const access = await openFleetCluster(services, request, { ...run, writes: false, through });
  try {
    const members = await fleetMembers(services, request, { ...run, access, ignoresHooks: true, inspect });
    return await use({ fleet, hosts, access, plan: () => planHosts(members, fleetRules(request.rules, hosts.length), ports) });
  } finally {
    await access.close();
  }
}
