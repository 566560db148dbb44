import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import { isNodeReference, parseNodeName } from '../kube/node-name.ts';
import type { CommandOptions } from './command.ts';
import type { NodeExplainRequest } from './explain-node.ts';
import { flagText } from './option-values.ts';
import { addClusterOptions, addFleetFileOption, addSshOptions } from './options.ts';
import { connectionRequest, hostAddress, kubeconfigRequest, readFormat } from './request-parts.ts';

/** The fleet file, the cluster and the connection to the host. */
export function addNodeExplainOptions(command: Command): Command {
  addFleetFileOption(
    command,
    'fleet file with the host: also show the layer that declares each field (default: fleet.yaml, if it has the host)',
  );
  return addSshOptions(addClusterOptions(command));
}

/** A Node as `node/NAME`, or the address of a host. */
function explainTarget(target: string): NodeExplainRequest['target'] {
  if (isNodeReference(target)) return { node: parseNodeName(target) };
  const type = /^([^/@:]+)\//.exec(target)?.[1];
  if (type !== undefined && !/^hosts?$/.test(type))
    throw usageError(`${target} names neither a host nor a node`, 'Write node/NAME, or the address of a host');
  return { address: hostAddress(target) };
}

/**
 * One host or Node of a command line.
 * @throws AppError USAGE (exit code 2)
 */
export function nodeExplainRequest(target: string, field: string | undefined, options: CommandOptions): NodeExplainRequest {
  const takeover = options.takeover === true;
  if (takeover && (field !== undefined || isNodeReference(target)))
    throw usageError('--takeover needs a host, and no field', 'Pass the address of one host');
  return {
    target: explainTarget(target),
    field,
    file: flagText(options, 'file'),
    takeover,
    format: options.output === 'wide' ? 'wide' : readFormat(options),
    cluster: kubeconfigRequest(options),
    connection: connectionRequest(options),
  };
}
