import { AppError, usageError } from '../../base/errors.ts';
import { type NodeClaims, nodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import type { DrainForecastDocument } from '../../maintenance/forecast/forecast-document.ts';
import { isControlPlane, type PlannedHost } from '../file/model.ts';
import type { HostTarget } from '../host-target.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { FleetResult } from '../run/fleet.ts';
import type { FleetMember } from '../run/fleet-member.ts';
import { warnOfClusterDifferences } from './cluster-differences.ts';
import { announceDrains, drainingOf, forecastRun } from './draining.ts';
import { type FleetRunInput, fleetMembers } from './fleet-members.ts';
import type { FleetHostsRequest, FleetRunRequest } from './fleet-request.ts';
import { fleetTargets } from './host-access.ts';
import { resolveFleetPath } from './load-fleet.ts';
import { type FleetAccess, openFleetCluster } from './open-fleet-cluster.ts';

/** The members of a run, and their cluster. */
interface OpenFleetRun {
  readonly members: readonly FleetMember[];
  /** Null: the first control plane still has to bootstrap the cluster. */
  readonly access: FleetAccess | null;
  /** The Node claims of the hosts, for `runFleet`. */
  readonly claims: NodeClaims;
  /** The drains of a planned run; null: no node is drained, or the drains are not known. */
  forecast(outcomes: FleetResult['outcomes']): Promise<DrainForecastDocument | null>;
  /** Marks the Nodes that approved plans will drain. */
  announce(planned: FleetResult['outcomes']): Promise<void>;
  /** Call it when all hosts are done, unless they were only planned. */
  finish(result: FleetResult): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the cluster of a fleet and turns its hosts into members of a run. If the configured kubeconfig does
 * not exist and the fleet has control planes, the first one bootstraps the cluster and the kubeconfig is
 * saved.
 * @throws errors of opening the cluster
 */
export async function openFleetRun(services: FleetRunPorts, request: FleetRunRequest, input: FleetRunInput): Promise<OpenFleetRun> {
  const { cluster, file, reporter } = input;
  const kubeconfig = await kubeconfigToMake(services, request, input);
  if (kubeconfig !== null) return openBringUp(services, request, input, kubeconfig);
  const through = await clusterRoutes(
    services,
    request,
    input,
    input.tasks.map(({ host }) => host),
  );
  const access = await openFleetCluster(services, request, { cluster, file, reporter, writes: true, through });
  try {
    await warnOfClusterDifferences(services, access.cluster, input);
    const claims = nodeClaims();
    const draining = await drainingOf(services, request.run, input.tasks.length);
    const members = await fleetMembers(services, request, { ...input, access, claims, draining });
    return {
      members,
      access,
      claims,
      forecast: (outcomes) => forecastRun(draining, access.cluster, outcomes),
      announce: (planned) => announceDrains(draining, access.cluster, planned),
      finish: async () => undefined,
      close: async () => {
        await draining?.planned?.removeAll();
        await access.close();
      },
    };
  } catch (error) {
    await access.close();
    throw error;
  }
}

/**
 * The path of the configured kubeconfig, if the file does not exist and a control plane could create it; else
 * null.
 */
async function kubeconfigToMake(
  services: FleetRunPorts,
  request: FleetRunRequest,
  { cluster, file, hosts, tasks }: FleetRunInput,
): Promise<string | null> {
  if (tasks.length === 0) return null;
  const named = request.cluster.kubeconfig ?? (cluster.kubeconfig && resolveFleetPath(cluster.kubeconfig, file, services.homeDirectory));
  if (!named || !hosts.some(isControlPlane) || (await services.input.exists(named))) return null;
  return named;
}

/**
 * The hosts from which the API server may be reachable: the control planes of the fleet, then the hosts of
 * the run.
 * @param chosen those of the run
 */
export async function clusterRoutes(
  services: FleetRunPorts,
  { connection }: FleetHostsRequest,
  { hosts, file }: Pick<FleetRunInput, 'hosts' | 'file'>,
  chosen: readonly PlannedHost[],
): Promise<readonly HostTarget[]> {
  const targetOf = await fleetTargets(services, connection, file);
  return [...hosts.filter(isControlPlane), ...chosen.filter((host) => !isControlPlane(host))].map(targetOf);
}

async function openBringUp(
  services: FleetRunPorts,
  request: FleetRunRequest,
  input: FleetRunInput,
  kubeconfig: string,
): Promise<OpenFleetRun> {
  const { tasks, hosts } = input;
  const controlPlane = hosts.find(isControlPlane);
  const first = tasks.find(({ host }) => host.name === controlPlane?.name);
  if (first === undefined) {
    const message = `${kubeconfig} does not exist, so ${controlPlane?.name} must bootstrap the cluster first, but this run excludes ${controlPlane?.name}`;
    throw usageError(
      message,
      `Remove --limit, or include ${controlPlane?.name}. If the cluster already exists, pass its kubeconfig with --kubeconfig`,
    );
  }
  if (first.operations !== undefined && first.origin !== 'approved')
    throw new AppError(
      {
        code: 'PLAN_STALE',
        message: `the plan was created for an existing cluster, but its kubeconfig ${kubeconfig} does not exist`,
        hint: 'Create a new plan: kubeletadm plan --out FILE',
      },
      { exitCode: 2 },
    );
  const { planClusterBootstrap } = await import('./plan-cluster-bootstrap.ts');
  const claims = nodeClaims();
  const bootstrap = await planClusterBootstrap(services, request, { ...input, first, kubeconfig, claims });
  const members = tasks.map(({ host }) => (host === first.host ? bootstrap.first : bootstrap.later(host)));
  return {
    members,
    access: null,
    claims,
    forecast: async () => null,
    announce: async () => undefined,
    finish: (result) => bootstrap.finish(result),
    close: () => bootstrap.close(),
  };
}
