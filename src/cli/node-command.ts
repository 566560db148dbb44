import type { Command } from 'commander';
import type { On, Run } from './command.ts';
import { addSections } from './help-layout.ts';
import { addClusterOptions, addSshOptions, outputOption } from './options.ts';

/** `node`: inspects one node. */
export function defineNode(node: Command, on: On): void {
  nodeExplainCommand(node, on);
}

function nodeExplainCommand(node: Command, on: On): void {
  const explain = node
    .command('explain')
    .description('Show the effective value of each kubelet field, its source (default, file, drop-in or flag) and the values it overrides')
    .argument('<host|node>', '[host/][user@]ADDRESS[:port] over SSH (localhost: the local host), or node/NAME through the API server')
    .argument('[field]', 'field to show, with its members (default: all fields)')
    .addOption(outputOption(['text', 'wide', 'json', 'yaml']));
  on(addSshOptions(addClusterOptions(explain)), async (): Promise<Run> => (await import('./node-explain.ts')).runNodeExplain);
  addSections(explain, {
    notes: 'With --kubeconfig, the configuration of a host is also compared with the one its kubelet reports through the API server.',
    examples: EXAMPLES,
  });
}

const EXAMPLES = `  kubeletadm node explain root@10.0.0.11
  kubeletadm node explain worker-1 maxPods --kubeconfig admin.conf
  kubeletadm node explain node/worker-1 -o json`;
