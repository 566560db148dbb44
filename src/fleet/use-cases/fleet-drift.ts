import { isAppError } from '../../base/errors.ts';
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
import { declaredConfiguration } from '../file/inventory-document.ts';
import { hostHistory } from '../history/host-history.ts';
import type { FleetPorts, HostOutcome } from '../run/fleet.ts';
import { fleetFailure } from '../run/fleet-failure.ts';
import { warnOfClusterDifferences } from './cluster-differences.ts';
import { type ComparePorts, type CompareView, compareHosts } from './compare-hosts.ts';
import type { FleetMembersInput } from './fleet-members.ts';
import type { FleetRunRequest } from './fleet-request.ts';

const PARALLEL = 20;

export interface HostDrift {
  readonly host: string;
  /** The Node of its kubelet, otherwise of the fleet file; null: unknown. */
  readonly node: string | null;
  readonly drift: readonly Drift[];
}

/**
 * Compares the selected hosts with the fleet file.
 * @param view.verbosity 1 or more includes the program's internal files
 * @returns `drifts`: the hosts that differ from the fleet file; `failure`: the problems of hosts that were not checked, null if none
 * @throws AppError with exit code 2 for an invalid file or selection; errors of opening the cluster
 */
export async function fleetDrift(
  services: ComparePorts,
  request: FleetRunRequest,
  { verbosity, ...view }: CompareView & { readonly verbosity: number },
) {
  const { signal } = services;
  const catalogue = await loadCatalogue();
  const kubelets = new Map<string, KubeletStatus & Pick<DriftEvidence, 'history'>>();
  const inspect: FleetMembersInput['inspect'] = async (host, { name }) => {
    const status = await observeKubeletStatus(host, catalogue, signal);
    kubelets.set(name, { ...status, history: await observe(host, hostHistory, signal) });
    return host;
  };
  const own = { ...view, ports: withoutOverrides(view.ports) };
  return compareHosts(services, request, own, inspect, async ({ fleet, hosts, access: { cluster, admin }, plan }) => {
    await warnOfClusterDifferences(services, cluster, { ...fleet, reporter: view.reporter });
    const result = await plan();
    const { outcomes } = result;
    const declared = new Map(hosts.map((host) => [host.name, declaredConfiguration(host)]));
    const drifts = await inParallel(outcomes, PARALLEL, async (outcome): Promise<HostDrift> => {
      const { host } = outcome;
      const kubelet = kubelets.get(host);
      const minor = kubelet?.minor ?? null;
      const decode = minor === null ? undefined : (fields: JsonObject) => decodeDeclaredFields(fields, { catalogue, minor });
      const evidence = { history: kubelet?.history, decode, declared: declared.get(host) };
      const drift = driftOf(outcome, { verbosity, kubelet, evidence });
      const node = kubelet?.node ?? outcome.node ?? null;
      if (!drift.some(({ field }) => field !== undefined) || admin === null) return { host, node, drift };
      const running = await runningFields(admin, kubelet?.node ?? null, catalogue);
      return { host, node, drift: driftOf(outcome, { verbosity, kubelet, evidence: { ...evidence, running } }) };
    });
    return {
      outcomes,
      drifts: drifts.filter(({ drift }, i) => drift.length > 0 || hasDrift(outcomes[i] as HostOutcome)),
      failure: fleetFailure(result, { signal, only: 'reads' }),
    };
  });
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
