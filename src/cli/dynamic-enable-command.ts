import { type Command, Option } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { DynamicDisableRequest, DynamicEnableRequest } from '../fleet/use-cases/open-dynamic-enable.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { PROGRAM_DIRECTORY } from '../kubelet/node-agent/agent-program.ts';
import { addAgentOptions, agentAddress, agentArguments, agentPolicy } from './agent-options.ts';
import { AGENT_IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { addClusterOptions, addDryRunOptions, addFleetNames, addSshOptions, HOST_FORMS } from './options.ts';
import type { Services } from './output/services.ts';
import type { WithPlan } from './output/show-plan.ts';
import {
  backendOf,
  connectionRequest,
  flagNode,
  fleetNames,
  hostAddress,
  kubeconfigRequest,
  planRequest,
  requireDifferent,
  runRequest,
} from './request-parts.ts';
import { addHostRolloutOptions, rulesRequest } from './rollout-options.ts';
import { addConfirmOptions, writingRequest } from './writing-options.ts';

/** `dynamic enable`, `dynamic disable`. */
export function defineDynamicEnable(dynamic: Command, on: On): void {
  const enable = dynamic
    .command('enable')
    .description(
      'Prepare nodes for dynamic configuration: install the kubeletadm agent, or enable DynamicKubeletConfig on kubelets up to 1.23',
    )
    .addOption(
      new Option(
        '--backend <backend>',
        'component that applies configurations; native: the kubelet (up to 1.23), agent: the kubeletadm agent (default: native up to 1.23, otherwise agent)',
      ).choices(['native', 'agent']),
    )
    .option(
      '--program <file>',
      'agent program to install: kubeletadm-agent.mjs or a single executable (default: the agent shipped with this kubeletadm)',
    )
    .option(
      '--node-js <path>',
      'path of Node.js on the target host, with which the agent (kubeletadm-agent.mjs) is run (default: node in the PATH of the host)',
    )
    // The former name, which reads like the name of a Node.
    .addOption(new Option('--node <path>', 'same as --node-js').hideHelp())
    .option(
      '--require-signature <allowed-signers>',
      'accept only ConfigMaps that one of these signers has signed with dynamic push --sign; an OpenSSH file of allowed signers, see ssh-keygen(1) (default: as set by an earlier dynamic enable)',
    )
    .option('--no-require-signature', 'also accept ConfigMaps without a signature')
    .option('--revoked-signers <file>', 'with --require-signature: public keys that are no longer accepted, one per line')
    .option('--signer-policy <file>', 'with --require-signature: impact class and fields that each signer may set (kind: SignerPolicy)')
    .option('--dynamic-config-dir <dir>', 'checkpoint directory of a kubelet up to 1.23 (default: /var/lib/kubelet/dynamic-config)');
  addHosts(enable, { namespace: AGENT_NAMESPACE, programDir: PROGRAM_DIRECTORY }, addAgentOptions);
  addSections(on(enable, enableRequest, runDynamicEnable), { notes: NOTES, examples: EXAMPLES });
  const disable = dynamic
    .command('disable')
    .description('Revert the changes of dynamic enable: the nodes return to their local configuration');
  addHosts(disable, { namespace: 'as set by dynamic enable', programDir: 'as set by dynamic enable' });
  on(disable, disableRequest, runDynamicDisable);
}

/** The options that both commands share. `addOwn` adds options between them. */
function addHosts(
  command: Command,
  defaults: { readonly namespace: string; readonly programDir: string },
  addOwn = (same: Command): Command => same,
): Command {
  command
    .argument('<host...>', `${HOST_FORMS}; localhost: the local host`)
    .option('--node-name <name>', 'name of the Node (default: the name under which the host is registered)')
    .option(
      '-n, --namespace <namespace>',
      `namespace of the node configurations; the agent may read every ConfigMap in this namespace (default: ${defaults.namespace})`,
    )
    .option('--program-dir <dir>', `directory of the agent program on the host (default: ${defaults.programDir})`);
  addDryRunOptions(addOwn(command));
  return addConfirmOptions(addHostRolloutOptions(addSshOptions(addFleetNames(addClusterOptions(command)))));
}

const NOTES = `Installing the agent does not restart the kubelet and does not modify files of kubeadm. A systemd drop-in adds an environment file to the kubelet unit. When a configuration is assigned to the node, the agent writes the path of the configuration to this file and restarts the kubelet.

${AGENT_IMPACT_NOTES}`;

const EXAMPLES = `  kubeletadm dynamic enable root@10.0.0.11 --dry-run
  kubeletadm dynamic enable node1 node2 --trial 5m
  # needs no Node.js on the host
  kubeletadm dynamic enable node1 --program dist/kubeletadm-linux-x64
  # accept only signed configurations
  kubeletadm dynamic enable node1 --require-signature allowed_signers
  kubeletadm dynamic disable node1`;

function enableRequest(args: readonly string[], options: CommandOptions): WithPlan<DynamicEnableRequest> {
  return {
    ...disableRequest(args, options),
    backend: backendOf(options) ?? null,
    program: flagText(options, 'program'),
    node: flagText(options, 'nodeJs') ?? flagText(options, 'node') ?? null,
    agentOptions: agentArguments(options),
    allow: agentPolicy(options).allow,
    agentAddress: agentAddress(options),
    signers: signersRequest(options),
    nativeDirectory: flagText(options, 'dynamicConfigDir') ?? null,
  };
}

function signersRequest(options: CommandOptions): WithPlan<DynamicEnableRequest>['signers'] {
  const [revoked, policy] = [flagText(options, 'revokedSigners'), flagText(options, 'signerPolicy')];
  const allowed = flagText(options, 'requireSignature');
  if (allowed !== undefined) return { kind: 'files', allowed, revoked, policy };
  if (revoked !== undefined || policy !== undefined)
    throw usageError(
      `${revoked === undefined ? '--signer-policy' : '--revoked-signers'} requires --require-signature`,
      'Also pass the file of allowed signers with --require-signature',
    );
  return { kind: options.requireSignature === false ? 'not-required' : 'unchanged' };
}

function disableRequest(args: readonly string[], options: CommandOptions): WithPlan<DynamicDisableRequest> {
  const addresses = args.map(hostAddress);
  requireDifferent(addresses);
  const nodeName = flagNode(options, 'nodeName') ?? null;
  if (nodeName !== null && addresses.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Run the command for each host separately');
  return {
    addresses,
    file: fleetNames(options),
    nodeName,
    namespace: flagText(options, 'namespace') ?? null,
    programDirectory: programDirectory(options),
    cluster: kubeconfigRequest(options),
    connection: connectionRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
    rules: rulesRequest(options),
    writing: writingRequest(options),
  };
}

function programDirectory(options: CommandOptions): string | null {
  const directory = flagText(options, 'programDir') ?? null;
  if (directory !== null && !/^\/[^\0\n]*[^/]$/.test(directory))
    throw usageError(`--program-dir ${directory} is not an absolute path`, 'For example: --program-dir /opt/kubeletadm');
  return directory;
}

/** `dynamic enable HOST...`. */
async function runDynamicEnable(services: Services, request: WithPlan<DynamicEnableRequest>): Promise<ExitCode> {
  const [{ openDynamicEnable }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-dynamic-enable.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, { title: 'dynamic enable', open: (scope) => openDynamicEnable(services, request, scope) });
}

/** `dynamic disable HOST...`. */
async function runDynamicDisable(services: Services, request: WithPlan<DynamicDisableRequest>): Promise<ExitCode> {
  const [{ openDynamicDisable }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-dynamic-enable.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, {
    title: 'dynamic disable',
    open: (scope) => openDynamicDisable(services, request, scope),
  });
}
