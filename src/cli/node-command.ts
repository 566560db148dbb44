import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { CommandOptions, On } from './command.ts';
import { type NodeExplainRequest, runNodeExplain } from './explain-node.ts';
import { addNodeExplainOptions, nodeExplainRequest } from './explain-options.ts';
import { addSections } from './help-layout.ts';
import { outputOption } from './output-options.ts';

/** `node`: inspects one node. */
export function defineNode(node: Command, on: On): void {
  const explain = addNodeExplainOptions(
    node
      .command('explain')
      .description('Show the effective value of each kubelet field, its source (default, file, drop-in or flag) and the overridden values')
      .argument(
        '<host|node>',
        'a host as [user@]ADDRESS[:port] or host/ADDRESS, reached over SSH; or a Node as node/NAME, read through the API server; a name without prefix is a host',
      )
      .argument('[field]', 'field to show, with its nested fields (default: all fields)')
      .addOption(outputOption(['text', 'wide', 'json', 'yaml']))
      .option('--takeover', 'show how join would change the flags and files of a kubelet with another unit; changes nothing'),
  );
  on(explain, explainRequest, runNodeExplain);
  addSections(explain, {
    notes:
      'The host localhost is read directly, without SSH. With --kubeconfig, the configuration on a host is also compared with the configuration that its kubelet reports through the API server.',
    examples: EXAMPLES,
  });
}

function explainRequest([target, field, ...more]: readonly string[], options: CommandOptions): NodeExplainRequest {
  if (target === undefined || more.length > 0)
    throw usageError('node explain needs one host or node', 'Pass one host or node, and optionally a field');
  return nodeExplainRequest(target, field, options);
}

const EXAMPLES = `  kubeletadm node explain root@10.0.0.11
  kubeletadm node explain worker-1 maxPods --kubeconfig admin.conf
  kubeletadm node explain -f fleet.yaml edge-017 maxPods
  kubeletadm node explain node/worker-1 -o json
  kubeletadm node explain root@10.0.0.11 --takeover`;
