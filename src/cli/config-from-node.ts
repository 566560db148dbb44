import type { ExitCode } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { printableJson } from '../base/text/printable.ts';
import { inlineValue } from '../codec/inline-value.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';
import { type PayloadKind, payloadDocument } from '../dynamic/agent/overlay.ts';
import { readSharedConfig, type SharedConfigRequest } from '../dynamic/use-cases/read-shared-config.ts';
import type { Services } from './services.ts';

export interface ConfigFromNodeRequest extends SharedConfigRequest {
  /** The file that receives the node-specific fields; undefined: these fields are omitted. */
  readonly overlayOut: string | undefined;
  readonly format: 'yaml' | 'json';
}

/**
 * `config from-node NODE`: the effective configuration of a running kubelet, as a file to push. By default an
 * overlay, so that a node that is assigned the file keeps its node-specific settings; a complete
 * KubeletConfiguration for kubelets up to 1.23, which read no overlay.
 */
export async function runFromNode(services: Services, request: ConfigFromNodeRequest): Promise<ExitCode> {
  const { overlayOut: target } = request;
  const { kind, shared, own, masked } = await readSharedConfig(services, request);
  const printLine = (line: string): void => services.output.stderr(`${line}\n`);
  for (const path of masked) printLine(`warning: ${path} is omitted: the kubelet masks its value [CONFIGZ_MASKED]`);
  for (const [path, value] of Object.entries(own)) {
    const where = target === undefined ? 'omitted' : `in ${target}`;
    printLine(
      `${path}: ${inlineValue(value)} is ${where}: the field is specific to this node${kind === 'overlay' ? '' : consequence(path)}`,
    );
  }
  if (target !== undefined) await services.writeLocalFile(target, print(own, 'configuration', 'yaml'));
  services.output.document(print(shared, kind, request.format));
  return 0;
}

function print(config: JsonObject, kind: PayloadKind, format: 'yaml' | 'json'): string {
  const document = payloadDocument(kind, config);
  return format === 'json' ? `${printableJson(document, 2)}\n` : encodeYaml(document);
}

/**
 * A complete KubeletConfiguration replaces the local one, so the kubelet uses its default for every omitted
 * field.
 */
function consequence(path: string): string {
  return `. A kubelet with this file uses the default of ${path}`;
}
