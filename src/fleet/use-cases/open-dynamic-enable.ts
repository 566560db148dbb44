import { checkKeyList, formatSigners, readSignerPolicy } from '../../dynamic/signing/signers.ts';
import { disableWorkflow } from '../../dynamic/workflows/disable-config.ts';
import { type EnableOptions, type EnableSettings, enableWorkflow } from '../../dynamic/workflows/enable-config.ts';
import type { DynamicHostOptions } from '../../dynamic/workflows/observe-dynamic-host.ts';
import { type PlanOnHost, planWorkflow } from '../../host/run-workflow.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import { type KubeconfigRequest, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { PROGRAM_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import { NATIVE_DIRECTORY } from '../../kubelet/node-agent/native-flags.ts';
import type { NodeCommandPorts, ProgramSource } from '../ports.ts';
import type { ConnectionRequest } from './host-access.ts';
import { findTargets } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface DynamicDisableRequest extends HostsSettings {
  /** Names of the fleet file, or addresses. */
  readonly addresses: readonly string[];
  /** The fleet file; undefined: `fleet.yaml`, if it exists. */
  readonly file?: string | undefined;
  /** Null: the one registered by the host. */
  readonly nodeName: string | null;
  /** Null: the default, or the value given to `dynamic enable`. */
  readonly namespace: string | null;
  /**
   * The directory of the agent program on the host. Null: the default, or the value given to `dynamic
   * enable`.
   */
  readonly programDirectory: string | null;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

export interface DynamicEnableRequest extends DynamicDisableRequest, EnableSettings {
  /** The agent program to install; undefined: the running program. */
  readonly program: string | undefined;
  /** The path of Node.js on the host; null: found in its PATH. */
  readonly node: string | null;
  readonly signers: SignersRequest;
  /** Directory for kubelets up to 1.23; null: the default. */
  readonly nativeDirectory: string | null;
}

/** `--require-signature` and the options that belong to it. */
type SignersRequest =
  | { readonly kind: 'unchanged' | 'not-required' }
  | { readonly kind: 'files'; readonly allowed: string; readonly revoked: string | undefined; readonly policy: string | undefined };

/**
 * Prepares `dynamic enable HOST...`.
 * @throws AppError INPUT_UNREADABLE, SIGNERS_INVALID (exit code 2) for the program and the signers; the errors of `openCluster`
 */
export async function openDynamicEnable(
  services: NodeCommandPorts & ProgramSource,
  request: DynamicEnableRequest,
  scope: CommandScope,
): Promise<HostsCommand> {
  const { backend, agentOptions, allow, agentAddress, nativeDirectory, node } = request;
  return openOn(services, request, {
    scope,
    plannerOf: async (common) => {
      const options = {
        ...common,
        signers: await readSigners(services, request.signers),
        namespace: request.namespace ?? AGENT_NAMESPACE,
        backend,
        program: {
          file: await services.readProgram(request.program),
          directory: request.programDirectory ?? PROGRAM_DIRECTORY,
          node,
        },
        agentOptions,
        allow,
        agentAddress,
        nativeDirectory: nativeDirectory ?? NATIVE_DIRECTORY,
      };
      return (context, run) => planWorkflow(enableWorkflow, context, options, run);
    },
  });
}

/**
 * Prepares `dynamic disable HOST...`.
 * @throws the errors of `openCluster`
 */
export async function openDynamicDisable(
  services: NodeCommandPorts,
  request: DynamicDisableRequest,
  scope: CommandScope,
): Promise<HostsCommand> {
  const { namespace, programDirectory } = request;
  return openOn(services, request, {
    scope,
    plannerOf: async (common) => {
      const options = { ...common, namespace, programDirectory };
      return (context, run) => planWorkflow(disableWorkflow, context, options, run);
    },
  });
}

async function readSigners({ input }: Pick<NodeCommandPorts, 'input'>, request: SignersRequest): Promise<EnableOptions['signers']> {
  if (request.kind !== 'files') return request;
  const { allowed, revoked, policy } = request;
  const allowedSigners = await input.readText(allowed);
  checkKeyList(allowedSigners, allowed, 'allowed signers');
  const revokedKeys = revoked === undefined ? null : await input.readText(revoked);
  if (revokedKeys !== null) checkKeyList(revokedKeys, revoked ?? '', 'revoked keys');
  const limits = policy === undefined ? null : readSignerPolicy(await input.readText(policy), policy);
  return { kind: 'required', text: formatSigners({ allowedSigners, revokedKeys, limits }) };
}

/** A workflow on the named hosts, with the cluster of these nodes. */
async function openOn(
  services: NodeCommandPorts,
  { addresses: names, nodeName, cluster: named, run, ...request }: DynamicDisableRequest,
  { scope, plannerOf }: { readonly scope: CommandScope; readonly plannerOf: (common: DynamicHostOptions) => Promise<PlanOnHost> },
): Promise<HostsCommand> {
  const targets = (await findTargets(services, { ...request, names }, { changes: true })).map(({ target }) => target);
  const catalogue = await loadCatalogue();
  const opened = await openCluster(services, named, { writes: scope.reporter });
  const { cluster, warnings } = opened;
  if (cluster !== null) scope.opened(cluster);
  const planHost = await plannerOf({
    templates: await services.templates(),
    catalogue,
    nodeName,
    trust: operatorNodeTrust(services, opened),
  });
  return { targets, cluster, planHost, run, inspectsFirst: true, warnings };
}
