import { AppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import { DEFAULT_RUN, type RunSettings } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { emptyConfig } from '../../kubeadm/config/load.ts';
import { controlPlaneInputs } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { durationMs, isForKubelet } from '../../kubeadm/use-cases/node-options.ts';
import type { ApiAccess } from '../../kubeadm/workflows/control-plane/api-access.ts';
import { connectAndObserveControlPlane } from '../../kubeadm/workflows/control-plane/control-plane-state.ts';
import { initWorkflow } from '../../kubeadm/workflows/init.ts';
import type { JoinOptions } from '../../kubeadm/workflows/join.ts';
import { type JoinControlPlaneOptions, joinControlPlaneWorkflow } from '../../kubeadm/workflows/join-control-plane.ts';
import { isControlPlane, type PlannedHost, type ResolvedFleet } from '../file/model.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { FleetMember } from '../run/fleet-member.ts';
import { type WorkflowMember, workflowMember } from '../run/workflow-member.ts';
import { type ControlPlaneSettings, registrationOf } from './fleet-configuration.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { fleetInitOptions } from './init-options.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import type { PlanPrepared } from './plan-prepared.ts';

export interface JoiningMemberInput {
  readonly common: Omit<WorkflowMember, 'planHost' | 'connect' | 'cluster'> & {
    readonly cluster: Cluster;
    readonly connect: (reporter?: Reporter) => Promise<Host>;
  };
  readonly planOf: PlanPrepared;
  readonly join: JoinOptions;
  /** Settings of all control planes; the settings of the host override them. */
  readonly settings: ControlPlaneSettings;
}

/**
 * A host of a fleet that joins as an additional control plane.
 * @param certificateKey decrypts the uploaded certificates
 */
export async function joiningMember(
  services: FleetRunPorts,
  { common, planOf, join, settings }: JoiningMemberInput,
  certificateKey: Secret,
): Promise<FleetMember> {
  const accesses: ApiAccess[] = [];
  const { localAPIEndpoint: { bindPort } = {}, timeouts = {} } = settings.init;
  const patches = settings.patches ?? [];
  const options: JoinControlPlaneOptions = {
    ...join,
    controlPlane: true,
    nodeRegistration: registrationOf(settings.init, join.nodeRegistration),
    patches: patches.filter(isForKubelet),
    staticPodPatches: patches.filter((patch) => !isForKubelet(patch)),
    localAPIEndpoint: bindPort === undefined ? {} : { bindPort },
    advertisesNodeIP: true,
    timeouts,
    kubeletHealthCheckMs: durationMs(timeouts.kubeletHealthCheck, join.kubeletHealthCheckMs),
    tlsBootstrapMs: durationMs(timeouts.tlsBootstrap, join.tlsBootstrapMs),
    kubeProxy: null,
    ...(await controlPlaneInputs(services, { isLocal: false, staged: false })),
    certificateKey,
    opened: (access) => accesses.push(access),
  };
  const member = workflowMember({ ...common, planHost: planOf(joinControlPlaneWorkflow, options) });
  return {
    ...member,
    open: async (ports) => {
      const open = await member.open(ports);
      const close = async (): Promise<void> => {
        for (const access of accesses) await access.close();
        await open.close();
      };
      return { ...open, close };
    },
  };
}

/**
 * Uploads the shared certificates of control planes for two hours, from the first running control plane: `init phase
 * upload-certs`.
 * @param fleet all hosts of the fleet file, and their cluster
 * @returns the key that decrypts the certificates
 * @throws AppError CONTROL_PLANE_MISSING (exit code 3) if none is running
 */
export async function uploadFleetCerts(
  services: FleetRunPorts,
  request: Pick<FleetRunRequest, 'run' | 'verbosity'>,
  {
    hosts,
    file,
    access: { cluster, apiServer },
  }: Pick<ResolvedFleet, 'file'> & { readonly hosts: readonly PlannedHost[]; readonly access: FleetAccess },
  connectTo: (host: PlannedHost) => Promise<Host>,
): Promise<Secret> {
  const controlPlane = await existingControlPlane(hosts.filter(isControlPlane), cluster, connectTo);
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  const accesses: ApiAccess[] = [];
  let key: Secret | null = null;
  const run: RunSettings = { ...DEFAULT_RUN, onlyPhase: 'upload-certs', podLoss: 'ignore' };
  const workflowOptions = await fleetInitOptions(services, {
    run,
    first: controlPlane,
    file,
    reporter,
    config: emptyConfig(),
    given: { cluster, apiServer },
    showCertificateKey: (made) => {
      key = made;
    },
    opened: (access) => accesses.push(access),
  });
  const host = await connectTo(controlPlane);
  try {
    const context = { host, cluster, clock: services.clock, reporter, signal: services.signal };
    const planned = await planWorkflow(initWorkflow, context, { ...workflowOptions, skipPreflight: true }, run);
    await planned.apply(context);
    if (key === null) throw new Error('upload-certs shows its key');
    return key;
  } finally {
    for (const access of accesses) await access.close();
    await host.close();
  }
}

async function existingControlPlane(
  controlPlanes: readonly PlannedHost[],
  cluster: Cluster,
  connectTo: (host: PlannedHost) => Promise<Host>,
): Promise<PlannedHost> {
  for (const controlPlane of controlPlanes)
    if ((await connectAndObserveControlPlane(() => connectTo(controlPlane), cluster)) === 'present') return controlPlane;
  const message =
    'no control plane of the fleet file is running, so kubeletadm cannot upload the certificates for the joining control planes';
  const hint =
    'Add a running control plane to the fleet file. Or run kubeletadm init phase upload-certs --upload-certs on a control plane, and pass the printed key to kubeletadm join --control-plane --certificate-key KEY';
  throw new AppError({ code: 'CONTROL_PLANE_MISSING', message, hint }, { exitCode: 3 });
}
