import type { JsonObject } from '../../base/json.ts';
import { parseSource } from '../../codec/source.ts';
import type { Catalogue, Minor } from '../catalogue/catalogue.ts';
import { decodeKubeletConfiguration } from '../documents/decode.ts';
import { diffConfigs } from './diff-configs.ts';

export interface KubeletVersionContext {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
}

/**
 * The fields that a kubelet must show after a change: those whose effective value changes. configz masks the headers of static
 * pods.
 * @param before effective configuration as text; null: no previous one
 * @param after the same after the change
 */
export function fieldsToShow(before: string | null, after: string, context: KubeletVersionContext): readonly string[] {
  const [old, desired] = [read(before ?? '', context), read(after, context)];
  if (old === null || desired === null) return [];
  return differingFields(old, desired, context).filter((path) => !path.startsWith('staticPodURLHeader'));
}

/**
 * The fields that differ between a kubelet's configz and its configuration file.
 * @param configz result of `readConfigz`
 */
export function fieldsNotInForce(
  configz: JsonObject,
  file: string,
  fields: readonly string[],
  context: KubeletVersionContext,
): readonly string[] {
  const desired = read(file, context);
  if (desired === null) return [];
  const differing = new Set(differingFields(configz, desired, context));
  return fields.filter((field) => differing.has(field));
}

function differingFields(a: JsonObject, b: JsonObject, { minor, catalogue }: KubeletVersionContext): readonly string[] {
  return diffConfigs({ name: '', minor, config: a }, { name: '', minor, config: b }, catalogue).differences.map(({ path }) => path);
}

/** The configuration as that kubelet reads it; null: unreadable. */
function read(text: string, context: KubeletVersionContext): JsonObject | null {
  const { documents, problems } = parseSource(text, 'config.yaml');
  const document = documents[0];
  if (problems.length > 0 || document === undefined || document.root === null) return null;
  const { value, problems: more } = decodeKubeletConfiguration(document, { ...context, lenient: true });
  return more.some(({ severity }) => severity !== 'warning') ? null : value;
}
