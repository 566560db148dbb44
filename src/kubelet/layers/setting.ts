import { AppError, isAppError, type Problem, usageError } from '../../base/errors.ts';
import { isJsonObject, type Json } from '../../base/json.ts';
import { parseSource } from '../../codec/source.ts';
import type { ObjectNode, TypeNode } from '../../codec/type-node.ts';
import { type Catalogue, DEFAULT_MINOR, type Minor, NEWEST_MINOR, OLDEST_MINOR } from '../catalogue/catalogue.ts';
import { decodeKubeletConfiguration, KUBELET_API_VERSION, KUBELET_KIND } from '../documents/decode.ts';
import { splitSetting } from './setting-form.ts';

/** A `--set path=value`, or a per-host flag such as `--resolv-conf`. */
export interface FieldSetting {
  readonly path: readonly string[];
  /** Null removes the field. */
  readonly value: Json;
  /** e.g. `--set maxPods=50`. */
  readonly source: string;
}

/**
 * Parses `--set path=value`: `maxPods=50`, `evictionHard.memory.available=5%`,
 * `clusterDNS=10.0.0.10,10.0.0.11`, `logging.verbosity=4`. The value is YAML; strings need no quotes, and
 * `null` removes a field.
 * @throws AppError USAGE or the decoder's problem, with exit code 2
 */
export function parseSetting(text: string, minor: Minor, catalogue: Catalogue): FieldSetting {
  const source = `--set ${text}`;
  const { field, given } = splitSetting(text);
  const { path, type } = resolvePath(field, catalogue.configurationType(minor), source);
  if (given === 'null') return { path, value: null, source };
  return { path, value: decodeValue(path, valueText(given, type), source, minor, catalogue), source };
}

/**
 * Checks `--set` before the version of the kubelet is known, which may require a cluster: each must be valid for some minor.
 * @throws AppError with the problems for the default minor, exit code 2
 */
export function requirePossibleSettings(settings: readonly string[], catalogue: Catalogue): void {
  const minors = Array.from({ length: NEWEST_MINOR - OLDEST_MINOR + 1 }, (_, i) => NEWEST_MINOR - i);
  const isPossible = (text: string): boolean => minors.some((minor) => isValidSetting(text, minor, catalogue));
  const problems = settings
    .filter((text) => !isPossible(text))
    .flatMap((text) => problemsOf(() => parseSetting(text, DEFAULT_MINOR, catalogue)));
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
}

function isValidSetting(text: string, minor: Minor, catalogue: Catalogue): boolean {
  return problemsOf(() => parseSetting(text, minor, catalogue)).length === 0;
}

function problemsOf(work: () => unknown): readonly Problem[] {
  try {
    work();
    return [];
  } catch (error) {
    if (isAppError(error)) return error.problems;
    throw error;
  }
}

/** Resolves a path along the type: a map uses the rest of the path as its key, dots included. */
function resolvePath(text: string, root: ObjectNode, source: string): { path: readonly string[]; type: TypeNode } {
  const path: string[] = [];
  let type: TypeNode = root;
  let rest = text;
  while (rest !== '') {
    if (type.kind === 'map') {
      path.push(rest.replace(/^\[(.*)\]$/, '$1'));
      return { path, type: type.values };
    }
    if (type.kind !== 'object')
      throw usageError(
        `${source}: the field ${path.join('.')} has no subfields`,
        type.kind === 'list' ? 'Set the whole list' : 'Set the field itself',
      );
    const name = /^[^.[]*/.exec(rest)?.[0] ?? '';
    const field: TypeNode | undefined = type.fields.get(name)?.type;
    // An unknown field is passed to the decoder, which suggests the intended one.
    if (field === undefined) return { path: [...path, ...rest.split('.')], type: { kind: 'string', values: null } };
    path.push(name);
    type = field;
    rest = rest.slice(name.length).replace(/^\./, '');
  }
  return { path, type };
}

function valueText(given: string, type: TypeNode): string {
  if (type.kind === 'list' && !/^\s*\[/.test(given))
    return `[${given
      .split(',')
      .map((item) => valueText(item.trim(), type.items))
      .join(', ')}]`;
  const isText = type.kind === 'string' || type.kind === 'duration' || type.kind === 'quantity' || type.kind === 'timestamp';
  return isText && !/^\s*["']/.test(given) ? JSON.stringify(given) : given;
}

function decodeValue(path: readonly string[], value: string, source: string, minor: Minor, catalogue: Catalogue): Json {
  const nested = path.reduceRight((inner, key) => `{${JSON.stringify(key)}: ${inner}}`, value);
  const text = `{"apiVersion": "${KUBELET_API_VERSION}", "kind": "${KUBELET_KIND}", ${nested.slice(1)}`;
  const { documents, problems } = parseSource(text, source);
  const document = documents[0];
  if (problems.length > 0 || document === undefined || documents.length > 1)
    throw usageError(`${source}: the value is not valid YAML`, "Quote the value, e.g. --set 'evictionHard={memory.available: 5%}'");
  const decoded = decodeKubeletConfiguration(document, { minor, catalogue });
  if (decoded.problems.length > 0) {
    throw new AppError(
      decoded.problems.map(({ position: _, ...problem }) => ({ ...problem, path: `${source}: ${problem.path ?? path.join('.')}` })),
      { exitCode: 2 },
    );
  }
  return path.reduce<Json>((object, key) => (isJsonObject(object) ? (object[key] ?? null) : null), decoded.value);
}
