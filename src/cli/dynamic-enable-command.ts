import { type Command, Option } from 'commander';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { PROGRAM_DIRECTORY } from '../kubeadm/node-agent/agent-program.ts';
import { addAgentOptions } from './agent-options.ts';
import type { On } from './command.ts';
import { addClusterOptions, addSshOptions } from './options.ts';
import { addConfirmOptions } from './writing-options.ts';

/** `dynamic enable`, `dynamic disable`. */
export function defineDynamicEnable(dynamic: Command, on: On): void {
  const enable = hosts(
    dynamic.command('enable').description('Let nodes be configured from ConfigMaps: install the agent, or start an old kubelet for it'),
    { namespace: AGENT_NAMESPACE, programDir: PROGRAM_DIRECTORY },
  )
    .addOption(
      new Option('--backend <backend>', 'what puts configurations into force (default: the kubelet up to 1.23, else the agent)').choices([
        'native',
        'agent',
      ]),
    )
    .option('--program <file>', 'the agent: the bundle or an executable (default: this program)')
    .option('--node <path>', 'Node.js on the host, for the bundle (default: found on its PATH)')
    .option('--dynamic-config-dir <dir>', 'where a kubelet up to 1.23 keeps configurations (default: /var/lib/kubelet/dynamic-config)');
  on(addAgentOptions(enable), async () => (await import('./dynamic-enable.ts')).runDynamicEnable).addHelpText('after', () => `\n${ENABLE}`);
  const disable = hosts(
    dynamic.command('disable').description('Take away what dynamic enable put there: nodes go back to their own configuration'),
    { namespace: 'as it was enabled', programDir: 'as it was enabled' },
  );
  on(disable, async () => (await import('./dynamic-enable.ts')).runDynamicDisable);
}

interface Defaults {
  readonly namespace: string;
  readonly programDir: string;
}

function hosts(command: Command, defaults: Defaults): Command {
  return addConfirmOptions(
    addSshOptions(addClusterOptions(command.argument('<host...>', '[user@]address[:port] over SSH; localhost is this machine'))),
  )
    .option('--node-name <name>', 'its Node (default: the one the host is registered as)')
    .option(
      '-n, --namespace <namespace>',
      `namespace of node configurations, all of which the agent may read (default: ${defaults.namespace})`,
    )
    .option('--program-dir <dir>', `where the program is on the host (default: ${defaults.programDir})`)
    .option('--dry-run', 'print the plan with a diff and change nothing')
    .addOption(new Option('-o, --output <format>', 'how the plan is printed').choices(['text', 'json', 'yaml']).default('text'))
    .option('--exit-code', 'with --dry-run: exit with 6 when changes are pending');
}

const ENABLE = `The kubelet goes on as it is when an agent is installed: its unit gets a drop-in that names the agent's pointer, and kubeadm's files stay what they are.

Examples:
  kubeletadm dynamic enable root@10.0.0.11 --dry-run
  kubeletadm dynamic enable node1 node2 --trial 5m
  kubeletadm dynamic enable node1 --program dist/kubeletadm-linux-x64    # needs no Node.js on the host
  kubeletadm dynamic disable node1`;
