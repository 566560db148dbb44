import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { ExplainNodeRequest } from '../fleet/use-cases/explain-node.ts';
import { isNodeReference, parseNodeName } from '../kube/node-name.ts';
import type { Takeover } from '../kubeadm/workflows/node/explain-takeover.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { addClusterOptions, addFleetFileOption, addSshOptions, outputOption } from './options.ts';
import type { Services } from './output/services.ts';
import type { DocumentFormat } from './output/show-document.ts';
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
  on(addSshOptions(addClusterOptions(explain)), explainRequest, runNodeExplain);
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

interface NodeExplainRequest extends ExplainNodeRequest {
  /** Show what a takeover of the host would change. */
  readonly takeover: boolean;
  readonly format: DocumentFormat | 'wide';
}

/** `node explain HOST|NODE [FIELD]`: each effective value, and the layer it is from. */
async function runNodeExplain(services: Services, request: NodeExplainRequest): Promise<ExitCode> {
  const [{ explainNode, explainNodeTakeover }, { renderNodeExplanation }, { renderDocument }] = await Promise.all([
    import('../fleet/use-cases/explain-node.ts'),
    import('../kubelet/effective/render.ts'),
    import('./output/show-document.ts'),
  ]);
  const { field, format, target, connection } = request;
  if (request.takeover && 'address' in target) {
    const takeover = await explainNodeTakeover(services, { address: target.address, file: request.file, connection });
    services.output.stdout(format === 'json' || format === 'yaml' ? renderDocument(takeover, format) : takeoverText(takeover));
    return 0;
  }
  const explanation = await explainNode(services, request);
  const isDocument = format === 'json' || format === 'yaml';
  services.output.stdout(
    isDocument ? renderDocument(explanation, format) : renderNodeExplanation(explanation, format === 'wide' || field !== undefined),
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
