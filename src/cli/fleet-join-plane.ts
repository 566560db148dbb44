import type { Secret } from '../core/text/secret.ts';
import type { FleetMember } from '../engine/fleet.ts';
import { type WorkflowMember, workflowMember } from '../engine/workflow-member.ts';
import type { Services } from '../ports/services.ts';
import type { ApiAccess } from '../workflows/control-plane/api-access.ts';
import type { JoinOptions } from '../workflows/join.ts';
import { type JoinControlPlaneInput, type JoinControlPlaneOptions, joinControlPlaneWorkflow } from '../workflows/join-control-plane.ts';
import { connectOver } from './init-control-plane.ts';

export interface JoiningMemberInput {
  readonly common: Omit<WorkflowMember<JoinControlPlaneOptions, JoinControlPlaneInput>, 'workflow' | 'options'>;
  readonly join: JoinOptions;
  /** Opens the certificates that were uploaded. */
  readonly certificateKey: Secret;
}

/** A host of a fleet that joins as one more control plane. */
export async function joiningMember(services: Services, { common, join, certificateKey }: JoiningMemberInput): Promise<FleetMember> {
  const accesses: ApiAccess[] = [];
  const options: JoinControlPlaneOptions = {
    ...join,
    controlPlane: true,
    localAPIEndpoint: {},
    advertisesNodeIP: true,
    timeouts: {},
    staticPodPatches: [],
    kubeProxy: null,
    proxyEnvironment: [],
    issuer: await services.certificateIssuer(),
    selects: () => true,
    routeHere: {},
    connect: connectOver(services),
    connectEtcd: ({ host, ...target }) => services.connectEtcd({ ...target, from: host }),
    certificateKey,
    opened: (access) => accesses.push(access),
  };
  const member = workflowMember({ ...common, workflow: joinControlPlaneWorkflow, options });
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
