import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { ExplainNodeRequest } from '../fleet/use-cases/explain-node.ts';
import { isNodeReference, parseNodeName } from '../kube/node-name.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import type { NodeExplainRequest } from './node-explain.ts';
import { addClusterOptions, addFleetFileOption, addSshOptions, outputOption } from './options.ts';
import { connectionRequest, flagChoice, flagText, hostAddress, kubeconfigRequest } from './request-parts.ts';

/** `node`: inspects one node. */
export function defineNode(node: Command, on: On): void {
  nodeExplainCommand(node, on);
}

function nodeExplainCommand(node: Command, on: On): void {
  const explain = node
    .command('explain')
    .description('Show the effective value of each kubelet field, its source (default, file, drop-in or flag) and the overridden values')
    .argument(
      '<host|node>',
      'a host as [user@]ADDRESS[:port] or host/ADDRESS, reached over SSH; or a Node as node/NAME, read through the API server; a name without prefix is a host',
    )
    .argument('[field]', 'field to show, with its nested fields (default: all fields)')
    .addOption(outputOption(['text', 'wide', 'json', 'yaml']))
    .option('--takeover', 'show how join would change the flags and files of a kubelet with another unit; changes nothing');
  addFleetFileOption(
    explain,
    'fleet file with the host: also show the layer that declares each field (default: fleet.yaml, if it has the host)',
  );
  on(addSshOptions(addClusterOptions(explain)), explainRequest, async (...args) =>
    (await import('./node-explain.ts')).runNodeExplain(...args),
  );
  addSections(explain, {
    notes:
      'The host localhost is read directly, without SSH. With --kubeconfig, the configuration on a host is also compared with the configuration that its kubelet reports through the API server.',
    examples: EXAMPLES,
  });
}

/** A Node as `node/NAME`, or the address of a host. */
function explainTarget(target: string): ExplainNodeRequest['target'] {
  if (isNodeReference(target)) return { node: parseNodeName(target) };
  const type = /^([^/@:]+)\//.exec(target)?.[1];
  if (type !== undefined && !/^hosts?$/.test(type))
    throw usageError(`${target} names neither a host nor a node`, 'Write node/NAME, or the address of a host');
  return { address: hostAddress(target) };
}

function explainRequest([target, field, ...more]: readonly string[], options: CommandOptions): NodeExplainRequest {
  if (target === undefined || more.length > 0)
    throw usageError('node explain needs one host or node', 'Pass one host or node, and optionally a field');
  const takeover = options.takeover === true;
  if (takeover && (field !== undefined || isNodeReference(target)))
    throw usageError('--takeover needs a host, and no field', 'Pass the address of one host');
  return {
    target: explainTarget(target),
    field,
    file: flagText(options, 'file'),
    takeover,
    format: flagChoice(options, 'output', ['text', 'wide', 'json', 'yaml']),
    cluster: kubeconfigRequest(options),
    connection: connectionRequest(options),
  };
}

const EXAMPLES = `  kubeletadm node explain root@10.0.0.11
  kubeletadm node explain worker-1 maxPods --kubeconfig admin.conf
  kubeletadm node explain -f fleet.yaml edge-017 maxPods
  kubeletadm node explain node/worker-1 -o json
  kubeletadm node explain root@10.0.0.11 --takeover`;
