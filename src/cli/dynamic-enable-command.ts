import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { PROGRAM_DIRECTORY } from '../kubeadm/node-agent/agent-program.ts';
import { addAgentOptions, agentAddress, agentWords } from './agent-options.ts';
import type { CommandOptions, On } from './command.ts';
import type { DynamicDisableRequest, DynamicEnableRequest } from './dynamic-enable.ts';
import { addSections } from './help-layout.ts';
import { addClusterOptions, addDryRunOptions, addSshOptions } from './options.ts';
import { backendOf, connectionRequest, flagText, kubeconfigRequest, planRequest, requireDifferent } from './request-parts.ts';
import { addConfirmOptions, writingRequest } from './writing-options.ts';

/** `dynamic enable`, `dynamic disable`. */
export function defineDynamicEnable(dynamic: Command, on: On): void {
  const enable = dynamic
    .command('enable')
    .description('Prepare nodes for dynamic configuration: install the agent, or enable the feature of a kubelet up to 1.23')
    .addOption(
      new Option(
        '--backend <backend>',
        'component that applies configurations (default: the kubelet up to 1.23, otherwise the agent)',
      ).choices(['native', 'agent']),
    )
    .option('--program <file>', 'agent program to install: the bundle or an executable (default: the running program)')
    .option('--node <path>', 'path of Node.js on the host, for the bundle (default: found in its PATH)')
    .option('--dynamic-config-dir <dir>', 'checkpoint directory of a kubelet up to 1.23 (default: /var/lib/kubelet/dynamic-config)');
  addHosts(enable, { namespace: AGENT_NAMESPACE, programDir: PROGRAM_DIRECTORY }, addAgentOptions);
  addSections(
    on(enable, enableRequest, async () => (await import('./dynamic-enable.ts')).runDynamicEnable),
    { notes: NOTES, examples: EXAMPLES },
  );
  const disable = dynamic
    .command('disable')
    .description('Revert the changes of dynamic enable: the nodes return to their local configuration');
  addHosts(disable, { namespace: 'as enabled', programDir: 'as enabled' });
  on(disable, disableRequest, async () => (await import('./dynamic-enable.ts')).runDynamicDisable);
}

interface Defaults {
  readonly namespace: string;
  readonly programDir: string;
}

/** The options that both commands share. `addOwn` adds options between them. */
function addHosts(command: Command, defaults: Defaults, addOwn = (same: Command): Command => same): Command {
  command
    .argument('<host...>', '[user@]address[:port] over SSH; localhost: the local host')
    .option('--node-name <name>', 'name of the Node (default: the one registered by the host)')
    .option(
      '-n, --namespace <namespace>',
      `namespace of node configurations, which the agent can read entirely (default: ${defaults.namespace})`,
    )
    .option('--program-dir <dir>', `directory of the agent program on the host (default: ${defaults.programDir})`);
  addDryRunOptions(addOwn(command), 'print the plan with a diff without changing anything');
  return addConfirmOptions(addSshOptions(addClusterOptions(command)));
}

const NOTES =
  'Installing an agent leaves the running kubelet unchanged: its unit gets a drop-in that reads the environment file of the agent. Files of kubeadm are not modified.';

const EXAMPLES = `  kubeletadm dynamic enable root@10.0.0.11 --dry-run
  kubeletadm dynamic enable node1 node2 --trial 5m
  # needs no Node.js on the host
  kubeletadm dynamic enable node1 --program dist/kubeletadm-linux-x64
  kubeletadm dynamic disable node1`;

function enableRequest(addresses: readonly string[], options: CommandOptions): DynamicEnableRequest {
  return {
    ...disableRequest(addresses, options),
    backend: backendOf(options) ?? null,
    program: flagText(options, 'program'),
    node: flagText(options, 'node') ?? null,
    agentOptions: agentWords(options),
    agentAddress: agentAddress(options),
    nativeDirectory: flagText(options, 'dynamicConfigDir') ?? null,
  };
}

function disableRequest(addresses: readonly string[], options: CommandOptions): DynamicDisableRequest {
  requireDifferent(addresses);
  const nodeName = flagText(options, 'nodeName') ?? null;
  if (nodeName !== null && addresses.length > 1)
    throw usageError('--node-name is for one host, and several were given', 'Do them one by one');
  return {
    addresses,
    nodeName,
    namespace: flagText(options, 'namespace') ?? null,
    programDirectory: programDirectory(options),
    cluster: kubeconfigRequest(options),
    connection: connectionRequest(options),
    plan: planRequest(options),
    writing: writingRequest(options),
  };
}

function programDirectory(options: CommandOptions): string | null {
  const directory = flagText(options, 'programDir') ?? null;
  if (directory !== null && !/^\/[^\0\n]*[^/]$/.test(directory))
    throw usageError(`--program-dir ${directory}: an absolute path is wanted`, 'e.g. /opt/kubeletadm');
  return directory;
}
