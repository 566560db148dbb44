import type { Secret } from '../../base/text/secret.ts';
import { controlPlaneConnector, etcdConnector } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { durationMs, isForKubelet } from '../../kubeadm/use-cases/node-options.ts';
import type { ApiAccess } from '../../kubeadm/workflows/control-plane/api-access.ts';
import type { JoinOptions } from '../../kubeadm/workflows/join.ts';
import { type JoinControlPlaneOptions, joinControlPlaneWorkflow } from '../../kubeadm/workflows/join-control-plane.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { FleetMember } from '../run/fleet.ts';
import { type WorkflowMember, workflowMember } from '../run/workflow-member.ts';
import { type ControlPlaneSettings, registrationOf } from './fleet-configuration.ts';
import type { PlanPrepared } from './plan-prepared.ts';

export interface JoiningMemberInput {
  readonly common: Omit<WorkflowMember, 'planHost'>;
  readonly planOf: PlanPrepared;
  readonly join: JoinOptions;
  /** Settings of all control planes; the settings of the host override them. */
  readonly settings: ControlPlaneSettings;
  /** The key of the uploaded certificates. */
  readonly certificateKey: Secret;
}

/** A host of a fleet that joins as an additional control plane. */
export async function joiningMember(
  services: FleetRunPorts,
  { common, planOf, join, settings, certificateKey }: JoiningMemberInput,
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
    proxyEnvironment: [],
    issuer: await services.certificateIssuer(),
    selects: () => true,
    localDefaultRoute: {},
    connect: controlPlaneConnector(services),
    connectEtcd: etcdConnector(services),
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
