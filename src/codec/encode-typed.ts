import { AppError, type Problem } from '../base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts';
import { readScalar, type ScalarToken, zeroScalar } from './scalar.ts';
import type { FieldNode, ListNode, MapNode, ObjectNode, ScalarNode, TypeNode } from './type-node.ts';
import { wrongScalar } from './typed-problems.ts';
import { encodeYaml } from './yaml-encode.ts';

/**
 * Encodes an object as Go's json.Marshal encodes the struct of a type: zero durations as `0s`, structs
 * without content as `{}`, fields without `omitempty` always. Empty strings, lists and maps, zeros and false
 * are dropped unless Go uses a pointer, and so are unknown fields. Durations, quantities and timestamps are
 * normalised. An integer beyond ±(2^53 - 1) is its decimal text; `encodeYaml` prints it as a number.
 * @returns keys in code unit order; objects have no prototype
 * @throws AppError CONFIG_WRONG_TYPE and similar codes, exit code 2
 */
export function encodeTyped(type: ObjectNode, value: JsonObject): JsonObject {
  const problems: Problem[] = [];
  const encoded = encodeObject(problems, type, { value, path: '' });
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  return encoded as JsonObject;
}

/** Encodes an object as YAML, byte-for-byte identical to Kubernetes components. */
export function renderTyped(type: ObjectNode, value: JsonObject): string {
  return encodeYaml(encodeTyped(type, value), type);
}

interface Site {
  readonly value: Json;
  readonly path: string;
}

type Draft = { [key: string]: Json };

function encodeValue(problems: Problem[], type: TypeNode, site: Site): Json {
  switch (type.kind) {
    case 'object':
      return encodeObject(problems, type, site);
    case 'list':
      return encodeList(problems, type, site);
    case 'map':
      return encodeMap(problems, type, site);
    default:
      return encodeScalar(problems, type, site);
  }
}

function encodeObject(problems: Problem[], type: ObjectNode, { value, path }: Site): Json {
  const members = value === null ? {} : value;
  if (!isJsonObject(members)) return refuse(problems, path, 'must be an object');
  const draft: Draft = Object.create(null);
  for (const name of [...type.fields.keys()].sort()) {
    const field = type.fields.get(name) as FieldNode;
    const given = Object.hasOwn(members, name) ? (members[name] as Json) : null;
    const encoded = encodeField(problems, field, { value: given, path: path === '' ? name : `${path}.${name}` });
    if (encoded !== undefined) draft[name] = encoded;
  }
  return draft;
}

function encodeField(problems: Problem[], { type, pointer, omitempty, printedWhenUnset }: FieldNode, site: Site): Json | undefined {
  if (site.value === null) return printedWhenUnset ? (pointer ? null : zeroValue(problems, type, site.path)) : undefined;
  const encoded = encodeValue(problems, type, site);
  return !pointer && omitempty && isEmpty(type, encoded) ? undefined : encoded;
}

function zeroValue(problems: Problem[], type: TypeNode, path: string): Json {
  if (type.kind === 'object') return encodeObject(problems, type, { value: null, path });
  return type.kind === 'list' || type.kind === 'map' ? null : zeroScalar(type);
}

/** Whether `omitempty` drops the value: structs, and therefore durations and quantities, are never empty. */
function isEmpty(type: TypeNode, value: Json): boolean {
  switch (type.kind) {
    case 'list':
      return (value as readonly Json[]).length === 0;
    case 'map':
      return Object.keys(value as Draft).length === 0;
    case 'string':
      return value === '';
    case 'bool':
      return value === false;
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'float':
      return value === 0;
    default:
      return false;
  }
}

function encodeList(problems: Problem[], type: ListNode, { value, path }: Site): Json {
  if (!Array.isArray(value)) return refuse(problems, path, 'must be a list');
  return value.map((item: Json, index) => encodeItem(problems, type.items, { value: item, path: `${path}[${index}]` }));
}

function encodeMap(problems: Problem[], type: MapNode, { value, path }: Site): Json {
  if (!isJsonObject(value)) return refuse(problems, path, 'must be an object');
  const draft: Draft = Object.create(null);
  for (const key of Object.keys(value).sort()) {
    draft[key] = encodeItem(problems, type.values, { value: value[key] as Json, path: `${path}[${key}]` });
  }
  return draft;
}

function encodeItem(problems: Problem[], type: TypeNode, site: Site): Json {
  return site.value === null ? zeroValue(problems, type, site.path) : encodeValue(problems, type, site);
}

function encodeScalar(problems: Problem[], type: ScalarNode, { value, path }: Site): Json {
  if (typeof value === 'object') return refuse(problems, path, 'must be a single value');
  const bigInteger = isIntegerType(type) && typeof value === 'string' && /^-?[0-9]{16,19}$/.test(value);
  const result = readScalar(type, bigInteger ? { kind: 'number', text: value } : tokenOf(value));
  if ('fault' in result) {
    problems.push(wrongScalar({ path }, result.fault));
    return null;
  }
  return bigInteger ? value : (result.value as Json);
}

function isIntegerType({ kind }: ScalarNode): boolean {
  return kind === 'int64' || kind === 'durationOrNanoseconds';
}

function tokenOf(value: string | number | boolean): ScalarToken {
  if (typeof value === 'string') return { kind: 'string', value };
  return typeof value === 'boolean' ? { kind: 'bool', value } : { kind: 'number', text: Object.is(value, -0) ? '0' : String(value) };
}

/** Rejected lists and maps are replaced by empty ones, so that all problems are reported at once. */
function refuse(problems: Problem[], path: string, message: string): Json {
  problems.push(wrongScalar({ path }, { kind: 'wrong-type', message }));
  return [];
}
