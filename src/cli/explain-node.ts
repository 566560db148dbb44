import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { ExplainNodeRequest } from '../fleet/use-cases/explain-node.ts';
import { isNodeReference, parseNodeName } from '../kube/node-name.ts';
import type { Takeover } from '../kubeadm/workflows/node/explain-takeover.ts';
import type { CommandOptions } from './command.ts';
import { addClusterOptions, addFleetFileOption, addSshOptions } from './options.ts';
import type { Services } from './output/services.ts';
import type { ReadFormat } from './output/show-document.ts';
import { connectionRequest, flagText, hostAddress, kubeconfigRequest, readFormat } from './request-parts.ts';

/** The fleet file, the cluster and the connection to the host. */
export function addNodeExplainOptions(command: Command): Command {
  addFleetFileOption(
    command,
    'fleet file with the host: also show the layer that declares each field (default: fleet.yaml, if it has the host)',
  );
  return addSshOptions(addClusterOptions(command));
}

/** A Node as `node/NAME`, or the address of a host. */
function explainTarget(target: string): ExplainNodeRequest['target'] {
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

export interface NodeExplainRequest extends ExplainNodeRequest {
  /** Show what a takeover of the host would change. */
  readonly takeover: boolean;
  readonly format: ReadFormat | 'wide';
}

/** `node explain HOST|NODE [FIELD]`: each effective value, and the layer it is from. */
export async function runNodeExplain(services: Services, request: NodeExplainRequest): Promise<ExitCode> {
  const [{ explainNode, explainNodeTakeover }, { renderNodeExplanation }, { renderDocument }] = await Promise.all([
    import('../fleet/use-cases/explain-node.ts'),
    import('../kubelet/effective/render.ts'),
    import('./output/show-document.ts'),
  ]);
  const { field, format, target, connection } = request;
  if (request.takeover && 'address' in target) {
    const takeover = await explainNodeTakeover(services, { address: target.address, file: request.file, connection });
    services.output.stdout(format === 'text' || format === 'wide' ? takeoverText(takeover) : renderDocument(takeover, format));
    return 0;
  }
  const explanation = await explainNode(services, request);
  services.output.stdout(
    format === 'text' || format === 'wide'
      ? renderNodeExplanation(explanation, format === 'wide' || field !== undefined)
      : renderDocument(explanation, format),
  );
  return 0;
}

function takeoverText({ host, kubernetesVersion, program, items }: Takeover): string {
  return joinLines([
    `${host}: kubelet ${kubernetesVersion} at ${program}. Nothing was changed. A takeover with join would have these effects:`,
    '',
    ...renderTable([['WHAT', 'NOW IN', 'EFFECT'], ...items.map(({ what, source, effect }) => [what, source || '-', effect])]),
  ]);
}
