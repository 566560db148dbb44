import type { AppError, Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { CONFIG_OVERRIDDEN } from '../../kubeadm/workflows/check-config-source.ts';
import { loadCatalogue } from '../../kubelet/load-catalogue.ts';
import { type Drift, driftOf, hasDrift, type PendingChanges } from '../drift.ts';
import { type FleetPorts, type HostOutcome, runFleet } from '../fleet.ts';
import { fleetFailure } from '../fleet-failure.ts';
import { type KubeletStatus, observeKubeletStatus } from '../host-status.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import { selectFleetHosts } from './find-node-names.ts';
import { type FleetMembersInput, fleetMembers } from './fleet-members.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { fleetRules } from './fleet-rules.ts';
import { directoryOf, readFleet } from './load-fleet.ts';
import { openFleetCluster } from './open-fleet-cluster.ts';
import { clusterRoutes } from './open-fleet-run.ts';

/** The differences of a host from the fleet file. */
export interface HostDrift {
  readonly host: string;
  readonly drift: readonly Drift[];
}

export interface FleetDrift {
  readonly outcomes: readonly HostOutcome[];
  /** What the running kubelet of each host has not read. */
  readonly kubelets: ReadonlyMap<string, PendingChanges>;
  /** The hosts that differ from the fleet file. */
  readonly drifts: readonly HostDrift[];
  /** The problems of hosts that were not checked; null: all hosts were. */
  readonly failure: AppError | null;
}

/** Observers of the hosts, and of warnings about the fleet file. */
export interface FleetDriftView {
  readonly reporter: Reporter;
  readonly ports: FleetPorts;
  warning(problem: Problem): void;
}

/**
 * Compares the selected hosts with the fleet file.
 * @throws AppError with exit code 2 for an invalid file or selection; errors of opening the cluster
 */
export async function fleetDrift(
  services: FleetRunPorts & FleetFilePorts,
  request: FleetRunRequest,
  { reporter, ports, warning }: FleetDriftView,
): Promise<FleetDrift> {
  const fleet = await readFleet(services, request);
  for (const one of fleet.warnings) warning(one);
  const hosts = await selectFleetHosts(services, fleet, request);
  const rules = fleetRules(request.rules, { total: hosts.length, dryRun: true });
  const { cluster, file, hosts: all } = fleet;
  const directory = directoryOf(services, file);
  const through = await clusterRoutes(services, request, { hosts: all, chosen: hosts, directory });
  const { signal } = services;
  const catalogue = await loadCatalogue();
  const kubelets = new Map<string, KubeletStatus>();
  const access = await openFleetCluster(services, request.cluster, { cluster, file, dryRun: true, reporter, writes: false, through });
  try {
    const tasks = hosts.map((host) => ({ host }));
    const connect: FleetMembersInput['connect'] = async (target, { name }, _queries, reporter) => {
      const host = await services.connectHost(target, reporter);
      try {
        kubelets.set(name, await observeKubeletStatus(host, catalogue, signal));
        return host;
      } catch (error) {
        await host.close();
        throw error;
      }
    };
    const members = await fleetMembers(
      services,
      // A field that a ConfigMap overrides is drift, and no failure.
      { ...request, podLoss: 'ignore', allow: 'unsafe', ignorePreflightErrors: [...request.ignorePreflightErrors, CONFIG_OVERRIDDEN] },
      { tasks, cluster, file, directory, access, dryRun: true, ignoresHooks: true, reporter, connect },
    );
    const result = await runFleet(members, rules, withoutOverrides(ports));
    const { outcomes } = result;
    const drifts = outcomes.flatMap((outcome) => {
      const drift = driftOf(outcome, { verbosity: request.verbosity, kubelet: kubelets.get(outcome.host) });
      return hasDrift(outcome) || drift.length > 0 ? [{ host: outcome.host, drift }] : [];
    });
    return { outcomes, kubelets, drifts, failure: fleetFailure(result, { signal, reads: true }) };
  } finally {
    await access.close();
  }
}

/** Drops the warnings that the result contains as drift. */
function withoutOverrides(ports: FleetPorts): FleetPorts {
  const reporterOf = (host: string): Reporter => {
    const reporter = ports.reporterOf(host);
    return { report: (event) => (event.code === CONFIG_OVERRIDDEN ? undefined : reporter.report(event)) };
  };
  return { ...ports, reporterOf };
}
