import type { ExitCode } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { printableJson } from '../base/text/printable.ts';
import { inlineValue } from '../codec/inline-value.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';
import { readSharedConfig, type SharedConfigRequest } from '../dynamic/use-cases/read-shared-config.ts';
import { type NodeChoice, openNodeNames } from '../fleet/use-cases/named-hosts.ts';
import type { Services } from './output/services.ts';

export interface ConfigFromNodeRequest extends Omit<SharedConfigRequest, 'node'> {
  /** One Node. */
  readonly choice: NodeChoice;
  /** The file that receives the node-specific fields; undefined: these fields are omitted. */
  readonly overlayOut: string | undefined;
  readonly format: 'yaml' | 'json';
}

/** `config from-node NODE`: the effective configuration of a running kubelet, as a file to push. */
export async function runFromNode(services: Services, request: ConfigFromNodeRequest): Promise<ExitCode> {
  const { overlayOut: target } = request;
  const [node = ''] = await openNodeNames(services, request.cluster, request.choice);
  const { document, ownDocument, nodeSpecific, masked } = await readSharedConfig(services, { ...request, node });
  const printLine = (line: string): void => services.output.stderr(`${line}\n`);
  for (const path of masked) printLine(`warning: ${path} is omitted: the kubelet masks its value [CONFIGZ_MASKED]`);
  const where = target === undefined ? 'omitted' : `in ${target}`;
  for (const { path, value, source } of nodeSpecific) {
    const consequence = source === 'default' ? `. A kubelet with this file uses the default of ${path}` : '';
    printLine(`${path}: ${inlineValue(value)} is ${source === 'kept' ? 'kept' : where}: the field is specific to this node${consequence}`);
  }
  if (nodeSpecific.some(({ source }) => source === 'kept'))
    printLine('Assign this file only to this node. For a file for several nodes, pass --kind configuration');
  if (target !== undefined) await services.writeLocalFile(target, encodeYaml(ownDocument));
  services.output.document(print(document, request.format));
  return 0;
}

function print(document: JsonObject, format: 'yaml' | 'json'): string {
  return format === 'json' ? `${printableJson(document, 2)}\n` : encodeYaml(document);
}
