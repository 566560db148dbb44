import { usageError } from '../../base/errors.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { installOnHostWorkflow } from '../../rollouts/workflows/install-on-host.ts';
import { uninstallOnHostWorkflow } from '../../rollouts/workflows/uninstall-on-host.ts';
import { isControlPlane } from '../file/model.ts';
import type { NodeCommandPorts, ProgramSource } from '../ports.ts';
import { readFleet } from './load-fleet.ts';
import { type NodesRequest, openOnNodes } from './open-on-nodes.ts';
import type { CommandScope, HostsCommand } from './run-hosts.ts';

export interface InstallOnHostsRequest extends NodesRequest {
  /** The program to install; undefined: the running program. */
  readonly program: string | undefined;
  /** The path of Node.js on the host; null: found in its PATH. */
  readonly node: string | null;
}

export interface UninstallFromHostsRequest extends NodesRequest {
  /** With the last controller, also delete the CustomResourceDefinition. */
  readonly removesDefinition: boolean;
}

/**
 * Prepares `controller install --host HOST`. Without addresses, the hosts are the control planes of the fleet file.
 * @throws AppError INPUT_UNREADABLE (exit code 2) for the program; the errors of `openOnNodes`
 */
export async function openInstallOnHosts(
  services: NodeCommandPorts & ProgramSource,
  request: InstallOnHostsRequest,
  scope: CommandScope,
): Promise<HostsCommand> {
  const { program, node } = request;
  return openOnControlPlanes(services, request, {
    scope,
    plannerOf: async (common) => {
      const issuer = await services.certificateIssuer();
      const options = { ...common, issuer, program: { file: await services.readProgram(program), node } };
      return (context, run) => planWorkflow(installOnHostWorkflow, context, options, run);
    },
  });
}

/** Prepares `controller uninstall --host HOST`. @throws the errors of `openOnNodes` */
export async function openUninstallFromHosts(
  services: NodeCommandPorts,
  { removesDefinition, ...request }: UninstallFromHostsRequest,
  scope: CommandScope,
): Promise<HostsCommand> {
  return openOnControlPlanes(services, request, {
    scope,
    plannerOf: async (common) => (context, run) => planWorkflow(uninstallOnHostWorkflow, context, { ...common, removesDefinition }, run),
  });
}

/** One host after the other: they change the same objects of the cluster. */
async function openOnControlPlanes(
  services: NodeCommandPorts,
  request: NodesRequest,
  on: Parameters<typeof openOnNodes>[2],
): Promise<HostsCommand> {
  const addresses = request.addresses.length > 0 ? request.addresses : await controlPlanes(services, request);
  return { ...(await openOnNodes(services, { ...request, addresses }, on)), changesOneAtATime: true };
}

async function controlPlanes(services: NodeCommandPorts, request: NodesRequest): Promise<readonly string[]> {
  const { hosts, file } = await readFleet(services, request);
  const names = hosts.filter(isControlPlane).map(({ name }) => name);
  if (names.length === 0) throw usageError(`${file} has no control plane`, 'Name the hosts with --host');
  return names;
}
