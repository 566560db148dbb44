import type { Problem } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { closestName } from '../../base/text/closest-name.ts';
import type { UnknownFieldReporter } from '../../codec/decode-typed.ts';
import type { ObjectNode, TypeNode } from '../../codec/type-node.ts';
import { type FieldLocation, unknownTypedField } from '../../codec/typed-problems.ts';
import { type Catalogue, formatMinor, type KubeletReader, type Minor } from '../catalogue/catalogue.ts';
import { isEmpty } from './values.ts';

/** A field unknown to a kubelet. */
export interface UnknownField {
  readonly path: string;
  /** e.g. `unknown to a 1.30 kubelet (added in 1.32)`. */
  readonly why: string;
}

/**
 * Lists the fields that the kubelet of a minor does not know, because a cluster's configuration may be newer
 * than a node. `encodeKubeletConfiguration` omits them. Fields with an empty value (`{}`, `0s`, empty) are not
 * listed.
 */
export function listUnknownFields(config: JsonObject, minor: Minor, catalogue: Catalogue): readonly UnknownField[] {
  const visit = (value: Json, type: TypeNode, path: string): readonly UnknownField[] => {
    if (type.kind === 'list' && Array.isArray(value)) return value.flatMap((item: Json) => visit(item, type.items, `${path}[]`));
    if (type.kind !== 'object' || !isJsonObject(value)) return [];
    return Object.entries(value).flatMap(([key, item]) => {
      const field = type.fields.get(key);
      const at = path === '' ? key : `${path}.${key}`;
      if (field) return visit(item, field.type, at);
      return isEmpty(item) ? [] : [{ path: at, why: whyUnknown(at, minor, catalogue) }];
    });
  };
  return visit(config, catalogue.configurationType(minor), '');
}

function whyUnknown(path: string, minor: Minor, catalogue: Catalogue): string {
  const minors = catalogue.fields.get(path)?.minors;
  const kubelet = `unknown to a ${formatMinor(minor)} kubelet`;
  if (minors === undefined) return kubelet;
  return minor < minors[0] ? `${kubelet} (added in ${formatMinor(minors[0])})` : `${kubelet} (last in ${formatMinor(minors[1])})`;
}

const KUBELET_KIND = 'KubeletConfiguration';

/**
 * Beyond this number, unknown fields are reported without suggestions: the file is probably of another kind,
 * and suggestions are slow.
 */
const MAX_GUESSES = 100;

/**
 * Explains unknown fields: a field of another minor, another letter case, a typo, or a field of another
 * object. The number of suggestions is limited.
 */
export function unknownFieldReporter(context: KubeletReader & { readonly lenient: boolean }): UnknownFieldReporter {
  let guesses = 0;
  return {
    report: (place, parent, name) => {
      const entry = context.catalogue.fields.get(parent.path === '' ? name : `${parent.path}.${name}`);
      if (entry) return fieldOfOtherMinor(place, context.lenient, { used: context.minor, range: entry.minors });
      return unknownTypedField(place, context.lenient, guesses++ < MAX_GUESSES ? guess(context, parent.type, name) : undefined);
    },
  };
}

/** Explains unknown fields of a kind without a catalogue: another letter case, or a typo. */
export function unknownFieldOf(kind: string): UnknownFieldReporter {
  let guesses = 0;
  return {
    report: (place, { type }, name) =>
      unknownTypedField(place, false, guesses++ < MAX_GUESSES ? guessSibling(kind, type, name) : undefined),
  };
}

function guessSibling(kind: string, parent: ObjectNode, name: string): string | undefined {
  if (/^(?:metadata|spec|status)$/.test(name)) return `A ${kind} has no ${name}: its fields are at the top level`;
  const otherCase = [...parent.fields.keys()].find((known) => known.toLowerCase() === name.toLowerCase());
  const meant = otherCase ?? closestName(name, parent.fields.keys());
  return meant ? `Did you mean ${meant}?` : undefined;
}

function guess(context: KubeletReader, parent: ObjectNode, name: string): string | undefined {
  const isSibling = [...parent.fields.keys()].some((known) => known.toLowerCase() === name.toLowerCase());
  const places = isSibling ? undefined : placesOf(context.catalogue, context.minor).get(name.toLowerCase());
  const flag = isSibling || places ? undefined : flagOf(context, name);
  if (flag !== undefined) return `${name} is the flag --${flag}, not a field: pass --kubelet-extra-args ${flag}=VALUE`;
  return places ? elsewhere(places) : guessSibling(KUBELET_KIND, parent, name);
}

/** The flag without a field that has this name, for example `node-ip` of `nodeIP`. */
function flagOf({ catalogue, minor }: KubeletReader, name: string): string | undefined {
  const isNamed = (flag: string): boolean => flag.replaceAll('-', '') === name.toLowerCase();
  return [...catalogue.flags.keys()].find((flag) => isNamed(flag) && catalogue.flag(flag, minor)?.field === null);
}

function elsewhere(paths: readonly string[]): string {
  const [first = ''] = paths;
  const name = first.slice(first.lastIndexOf('.') + 1);
  if (!first.includes('.')) return `${name} is a top-level field`;
  const parents = paths.map((path) => path.slice(0, path.lastIndexOf('.')));
  return `${name} is a field of ${parents.join(' or ')}`;
}

/** Lower-case field names with their paths, the shallowest first. */
function placesOf(catalogue: Catalogue, minor: Minor): ReadonlyMap<string, readonly string[]> {
  const places = new Map<string, string[]>();
  const paths = [...catalogue.fields.keys()].filter((path) => catalogue.field(path, minor) !== null);
  for (const path of paths.sort((a, b) => a.split('.').length - b.split('.').length)) {
    const name = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
    places.set(name, [...(places.get(name) ?? []), path]);
  }
  return places;
}

function fieldOfOtherMinor(
  place: FieldLocation,
  lenient: boolean,
  minors: { readonly used: Minor; readonly range: readonly [Minor, Minor] },
): Problem {
  const [first, last] = minors.range;
  const history =
    minors.used < first ? `the field was added in ${formatMinor(first)}` : `the field was removed in ${formatMinor(last + 1)}`;
  const message = `unknown to a ${formatMinor(minors.used)} kubelet: ${history}`;
  const hint = minors.used < first ? `Remove the field, or use a kubelet of at least ${formatMinor(first)}` : 'Remove the field';
  return { code: 'CONFIG_UNKNOWN_FIELD', message, hint, ...(lenient ? ({ severity: 'warning' } as const) : {}), ...place };
}
