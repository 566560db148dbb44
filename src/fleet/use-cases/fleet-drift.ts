import { isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Reporter } from '../../base/reporter.ts';
import { observe } from '../../host/access/observe.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { CONFIG_OVERRIDDEN } from '../../kubeadm/workflows/node/check-config-source.ts';
import { explainNodeKubelet } from '../../kubeadm/workflows/node/explain-kubelet.ts';
import type { Catalogue } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { decodeDeclaredFields } from '../../kubelet/documents/decode.ts';
import type { DriftEvidence } from '../drift/drift.ts';
import { type Drift, driftOf, hasDrift } from '../drift/drift.ts';
import { type KubeletStatus, observeKubeletStatus } from '../drift/host-status.ts';
import { hostHistory } from '../history/host-history.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import { type FleetPorts, type HostOutcome, runFleet } from '../run/fleet.ts';
import { fleetFailure } from '../run/fleet-failure.ts';
import { selectFleetHosts } from './find-node-names.ts';
import { type FleetMembersInput, fleetMembers } from './fleet-members.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { toCompare } from './fleet-request.ts';
import { fleetRules } from './fleet-rules.ts';
import { readFleet } from './load-fleet.ts';
import { openFleetCluster } from './open-fleet-cluster.ts';
import { clusterRoutes } from './open-fleet-run.ts';

const PARALLEL = 20;

/** The differences of a host from the fleet file. */
export interface HostDrift {
  readonly host: string;
  /** The Node of its kubelet, otherwise of the fleet file; null: unknown. */
  readonly node: string | null;
  readonly drift: readonly Drift[];
}

/**
 * Compares the selected hosts with the fleet file.
 * @param view.verbosity 1 or more includes the program's internal files
 * @param view.warning receives warnings about the fleet file
 * @returns `drifts`: the hosts that differ from the fleet file; `failure`: the problems of hosts that were not checked, null if none
 * @throws AppError with exit code 2 for an invalid file or selection; errors of opening the cluster
 */
export async function fleetDrift(
  services: FleetRunPorts & FleetFilePorts,
  given: FleetRunRequest,
  {
    reporter,
    ports,
    verbosity,
    warning,
  }: { readonly reporter: Reporter; readonly ports: FleetPorts; readonly verbosity: number; warning(problem: Problem): void },
) {
  const request = toCompare(given);
  const fleet = await readFleet(services, request);
  for (const one of fleet.warnings) warning(one);
  const hosts = await selectFleetHosts(services, fleet, request);
  const rules = fleetRules(request, hosts.length);
  const { cluster, file, hosts: all } = fleet;
  const through = await clusterRoutes(services, request, fleet, hosts);
  const { signal } = services;
  const catalogue = await loadCatalogue();
  const kubelets = new Map<string, KubeletStatus & Pick<DriftEvidence, 'history'>>();
  const access = await openFleetCluster(services, request, { cluster, file, reporter, writes: false, through });
  try {
    const tasks = hosts.map((host) => ({ host }));
    const connect: FleetMembersInput['connect'] = async (target, { name }, _queries, reporter) => {
      const host = await services.connectHost(target, reporter);
      try {
        const status = await observeKubeletStatus(host, catalogue, signal);
        kubelets.set(name, { ...status, history: await observe(host, hostHistory, signal) });
        return host;
      } catch (error) {
        await host.close();
        throw error;
      }
    };
    const members = await fleetMembers(services, request, {
      ...{ tasks, hosts: all, cluster, file, access, reporter, connect },
      ignoresHooks: true,
    });
    const result = await runFleet(members, rules, withoutOverrides(ports));
    const { outcomes } = result;
    const drifts = await inParallel(outcomes, PARALLEL, async (outcome): Promise<HostDrift> => {
      const kubelet = kubelets.get(outcome.host);
      const minor = kubelet?.minor ?? null;
      const decode = minor === null ? undefined : (declared: JsonObject) => decodeDeclaredFields(declared, { catalogue, minor });
      const options = { verbosity, kubelet, evidence: { history: kubelet?.history, decode } };
      const drift = driftOf(outcome, options);
      const node = kubelet?.node ?? outcome.node ?? null;
      if (!drift.some(({ field }) => field !== undefined) || access.admin === null) return { host: outcome.host, node, drift };
      const running = await runningFields(access.admin, kubelet?.node ?? null, catalogue);
      return { host: outcome.host, node, drift: driftOf(outcome, { ...options, evidence: { ...options.evidence, running } }) };
    });
    return {
      outcomes,
      drifts: drifts.filter(({ drift }, i) => drift.length > 0 || hasDrift(outcomes[i] as HostOutcome)),
      failure: fleetFailure(result, { signal, reads: true }),
    };
  } finally {
    await access.close();
  }
}

/** The fields of the running kubelet by its /configz; undefined: not readable. */
async function runningFields(cluster: Cluster, node: string | null, catalogue: Catalogue): Promise<DriftEvidence['running']> {
  if (node === null) return undefined;
  try {
    const { fields } = await explainNodeKubelet(cluster, node, catalogue);
    return new Map(fields.map(({ path, value }) => [path, value ?? null]));
  } catch (error) {
    if (!isAppError(error)) throw error;
    return undefined;
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
