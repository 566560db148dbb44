import type { JsonObject } from '../base/json.ts';
import { parseSource } from '../codec/source.ts';
import type { Catalogue, Minor } from './catalogue.ts';
import { decodeKubeletConfiguration } from './decode.ts';
import { diffConfigs } from './diff/diff-configs.ts';

export interface KubeletVersionContext {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
}

/**
 * The fields that a kubelet must show after a change of its configuration file: the fields whose effective
 * value the file changes, except those that a flag overrides. Empty with a drop-in directory, whose drop-in files
 * may override any field.
 * @param before null: no previous file
 * @param flags command-line words, `--name=value`
 */
export function fieldsToShow(
  before: string | null,
  after: string,
  flags: readonly string[],
  context: KubeletVersionContext,
): readonly string[] {
  const names = flags.map((word) => word.replace(/^--?/, '').replace(/=.*$/s, ''));
  if (names.includes('config-dir')) return [];
  const [old, desired] = [read(before ?? '', context), read(after, context)];
  if (old === null || desired === null) return [];
  const shadowed = names.flatMap((name) => context.catalogue.flag(name, context.minor)?.field ?? []);
  return differingFields(old, desired, context).filter(
    (path) => !shadowed.some((field) => path === field || (/^[.[]/.test(path.slice(field.length)) && path.startsWith(field))),
  );
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
