import type { Command } from 'commander';
import type { On, Run } from './command.ts';
import { addClusterOptions, addSshOptions, outputOption } from './options.ts';

/** `node`: what is known about one node. */
export function defineNode(node: Command, on: On): void {
  nodeExplainCommand(node, on);
}

function nodeExplainCommand(node: Command, on: On): void {
  const explain = node
    .command('explain')
    .description('Say of each field which value is in force and which layer it is from: default, file, drop-in or flag, and what lost')
    .argument('<host|node>', '[host/][user@]ADDRESS[:port] over SSH (localhost is this machine), or node/NAME through the API server')
    .argument('[field]', 'only this field, with all below it');
  addSshOptions(addClusterOptions(explain.addOption(outputOption(['text', 'wide', 'json', 'yaml']))));
  on(explain, async (): Promise<Run> => (await import('./node-explain.ts')).runNodeExplain);
  explain.addHelpText(
    'after',
    `
With --kubeconfig a host is compared with what its kubelet says at the API server, too.

Examples:
  kubeletadm node explain root@10.0.0.11
  kubeletadm node explain worker-1 maxPods --kubeconfig admin.conf
  kubeletadm node explain node/worker-1 -o json`,
  );
}
