import { checkKeyList, formatSigners, readSignerPolicy } from '../../dynamic/signing/signers.ts';
import { disableWorkflow } from '../../dynamic/workflows/disable-config.ts';
import { type EnableOptions, type EnableSettings, enableWorkflow } from '../../dynamic/workflows/enable-config.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import { PROGRAM_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import { NATIVE_DIRECTORY } from '../../kubelet/node-agent/native-flags.ts';
import type { NodeCommandPorts, ProgramSource } from '../ports.ts';
import { type NodesRequest, openOnNodes } from './open-on-nodes.ts';
import type { CommandScope, HostsCommand } from './run-hosts.ts';

export interface DynamicDisableRequest extends NodesRequest {
  /** Null: the default, or the value given to `dynamic enable`. */
  readonly namespace: string | null;
  /**
   * The directory of the agent program on the host. Null: the default, or the value given to `dynamic
   * enable`.
   */
  readonly programDirectory: string | null;
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
  return openOnNodes(services, request, {
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
  return openOnNodes(services, request, {
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
