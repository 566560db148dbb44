import { AppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { revealText } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import { DEFAULT_ALLOWED } from '../../host/plan/impact.ts';
import type { HostKubeconfig } from '../../kube/host-kubeconfig.ts';
import { zoneOfLabels } from '../../kube/node-place.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import { applyClusterDefaults } from '../../kubeadm/config/defaults.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import { proxyExceptions } from '../../kubeadm/config/proxy-exceptions.ts';
import type { NodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import type { ApiAccess } from '../../kubeadm/workflows/control-plane/api-access.ts';
import { initWorkflow } from '../../kubeadm/workflows/init.ts';
import { isControlPlane, type PlannedHost } from '../file/model.ts';
import { labelsOfHost } from '../file/select.ts';
import type { HostTarget } from '../host-target.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { FleetResult } from '../run/fleet.ts';
import type { FleetMember } from '../run/fleet-member.ts';
import { workflowMember } from '../run/workflow-member.ts';
import { withAdminAccess } from './admin-access.ts';
import { approvedMember } from './approved-member.ts';
import { drainingOf } from './draining.ts';
import { readFleetConfiguration } from './fleet-configuration.ts';
import {
  deferredMember,
  FIRST_CONTROL_PLANE,
  type FleetRunInput,
  type FleetTask,
  fleetMembers,
  OTHER_CONTROL_PLANES,
  WORKERS,
} from './fleet-members.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { fleetTargets } from './host-access.ts';
import { hostWriteOptions } from './host-writing.ts';
import { fleetInitOptions } from './init-options.ts';
import { openFleetCluster } from './open-fleet-cluster.ts';
import { installSources, planAfterPreparation } from './plan-prepared.ts';

interface ClusterBootstrapInput extends FleetRunInput {
  /** The control plane that bootstraps the cluster; its task has the operations that were approved, if the operator was asked. */
  readonly first: FleetTask;
  readonly claims: NodeClaims;
  /** Path of the new administrator kubeconfig. */
  readonly kubeconfig: string;
}

/** Drops join commands, which are meant for people: nodes of a fleet join with a temporary token. */
const LEFT_OUT = ['show-join-command'];

/**
 * The members of a run that bootstraps a cluster: the first control plane creates the cluster, the others
 * join as soon as its kubeconfig was saved locally.
 * @throws AppError with exit code 2: errors in `cluster.configuration`
 */
export async function planClusterBootstrap(
  services: FleetRunPorts,
  request: FleetRunRequest,
  input: ClusterBootstrapInput,
): Promise<{
  readonly first: FleetMember;
  /** A host that is planned after the cluster was bootstrapped; a plan shows that it waits. */
  later(host: PlannedHost): FleetMember;
  /** Writes the kubeconfig, unless another host required it already. */
  finish(result: FleetResult): Promise<void>;
  close(): Promise<void>;
}> {
  const { host: first } = input.first;
  const accesses: ApiAccess[] = [];
  const target = (await fleetTargets(services, request.connection, input.file))(first);
  const connect = (logsTo?: Reporter): Promise<Host> => services.connectHost(target, logsTo);
  const member = await bootstrapMember(services, request, { ...input, target, connect, opened: (access) => accesses.push(access) });
  let after: ReturnType<typeof openBootstrapped> | null = null;
  const onceRegistered = (): ReturnType<typeof openBootstrapped> => {
    after ??= openBootstrapped(services, request, { ...input, target, connect });
    return after;
  };
  return {
    first: {
      ...approvedMember(member, input.first, { replan: request.replan, compares: isKnown }),
      stage: FIRST_CONTROL_PLANE,
      isNeeded: true,
    },
    later: ({ name, role, ...host }) => ({
      name,
      zone: zoneOfLabels(labelsOfHost({ role, ...host })),
      stage: role === 'control-plane' ? OTHER_CONTROL_PLANES : WORKERS,
      isExclusive: role === 'control-plane',
      open: async (ports) => {
        if (ports.isInspection) return deferredMember(name, `waits for ${first.name} to bootstrap the cluster`).open(ports);
        const found = (await onceRegistered()).members.get(name);
        if (found === undefined) throw new Error(`${name} is not a member of the run`);
        return found.open(ports);
      },
    }),
    finish: async ({ outcomes }) => {
      const exists = outcomes.some(({ host, status }) => host === first.name && (status === 'changed' || status === 'unchanged'));
      // If other hosts required the kubeconfig, their errors were reported already.
      if (exists && after === null) await onceRegistered();
    },
    close: async () => {
      for (const access of accesses) await access.close();
      const opened = await after?.catch(() => null);
      await opened?.draining?.planned?.removeAll();
      await opened?.access.close();
    },
  };
}

interface FirstControlPlane extends ClusterBootstrapInput {
  readonly target: HostTarget;
  readonly connect: (logsTo?: Reporter) => Promise<Host>;
}

async function bootstrapMember(
  services: FleetRunPorts,
  request: FleetRunRequest,
  { opened, ...input }: FirstControlPlane & { readonly opened: (access: ApiAccess) => void },
): Promise<FleetMember> {
  const { file, reporter, target, connect, claims } = input;
  const { host: first } = input.first;
  const config = await readConfiguration(services, input);
  const skipPhases = [...LEFT_OUT, ...(config.init?.skipPhases ?? [])];
  const run = { ...request.run, skipPhases, allow: request.run.allow ?? DEFAULT_ALLOWED };
  const initRun = { ...run, skipPhases: LEFT_OUT };
  const workflowOptions = await fleetInitOptions(services, { run: initRun, first, file, reporter, config, given: null, opened });
  const clusterExceptions = proxyExceptions(applyClusterDefaults(config.cluster ?? {}));
  const sources = await installSources(services, { file, clusterExceptions, joinServer: null, bundle: request.bundle });
  return workflowMember({
    name: first.name,
    planHost: planAfterPreparation(first, sources, run)(initWorkflow, workflowOptions),
    connect,
    cluster: null,
    clock: services.clock,
    writing: await hostWriteOptions(services, request.writing)(target),
    claims,
  });
}

/** Saves the kubeconfig of the new cluster, and opens the members that join it. */
async function openBootstrapped(services: FleetRunPorts, request: FleetRunRequest, input: FirstControlPlane) {
  const { kubeconfig, first, target, connect, cluster, file, reporter } = input;
  const { text } = await newAdminKubeconfig(services, connect);
  await services.writeLocalFile(kubeconfig, revealText(text), { isPrivate: true });
  const message = `wrote ${kubeconfig}, the kubeconfig of the cluster administrator`;
  reporter.report({ level: 'info', code: 'KUBECONFIG_WRITTEN', message });
  const own = { ...request, cluster: { ...request.cluster, kubeconfig } };
  const access = await openFleetCluster(services, own, { cluster, file, reporter, writes: true, through: [target] });
  const tasks = input.tasks.filter((task) => task !== first);
  // Of the control planes, only the first exists.
  const draining = await drainingOf(services, request.run, tasks.length);
  const run = { cluster, file, reporter, claims: input.claims, tasks, hosts: [first.host], access, draining };
  const members = await fleetMembers(services, own, run);
  return { access, draining, members: new Map(members.map((each) => [each.name, each])) };
}

/**
 * Whether the changes of a phase are known before the cluster exists. A plan that is only shown has the objects of the new
 * cluster; when it is applied, the phases that create them are planned after the API server has started. The key pair
 * of service accounts is generated for each plan. The hooks are those of the fleet file, which is read once.
 */
function isKnown(phase: string, { phases }: HostPlan): boolean {
  const found = phases.find((one) => one.phase === phase);
  if (found === undefined || found.plan.deferred !== undefined || phase === 'certs/sa') return false;
  return !found.plan.changes.some(({ kind }) => kind === 'run-hook');
}

/**
 * @throws AppError CONTROL_PLANE_ENDPOINT_MISSING, exit code 2, for several control planes without an
 * endpoint: only the first one could be created
 */
async function readConfiguration(services: FleetRunPorts, { cluster, file, hosts }: ClusterBootstrapInput): Promise<LoadedConfig> {
  const controlPlanes = hosts.filter(isControlPlane);
  const config = await readFleetConfiguration(services, { cluster, file });
  if (controlPlanes.length > 1 && config.cluster?.controlPlaneEndpoint === undefined) throw noEndpoint(file, controlPlanes);
  return config;
}

function noEndpoint(file: string, controlPlanes: readonly PlannedHost[]): AppError {
  const names = controlPlanes.map(({ name }) => name).join(', ');
  const message = `${file}: ${names} are control planes, but no shared endpoint is configured`;
  const hint =
    'Set cluster.endpoint, or controlPlaneEndpoint in cluster.configuration, to a permanent address: a load balancer or a DNS name';
  return new AppError({ code: 'CONTROL_PLANE_ENDPOINT_MISSING', message, hint }, { exitCode: 2 });
}

/** The administrator's kubeconfig of a new cluster, from its first control plane. */
async function newAdminKubeconfig(services: FleetRunPorts, connect: () => Promise<Host>): Promise<HostKubeconfig> {
  const host = await connect();
  try {
    return await withAdminAccess(services, host, INCOMPLETE, async ({ kubeconfig }) => kubeconfig);
  } finally {
    await host.close();
  }
}

const INCOMPLETE = {
  message: `${ADMIN_CONF} does not exist, so the bootstrap of the cluster is not complete`,
  hint: 'Rerun kubeletadm apply, which resumes where it stopped',
};
