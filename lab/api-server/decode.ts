import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { apiVersionOf, RESOURCES, type ResourceType } from '../../src/kube/resources.ts';
import { rulesOf } from './kind-rules.ts';
import { badRequest } from './status.ts';

const METADATA: Readonly<Record<string, 'string' | 'number' | 'strings' | 'list'>> = {
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'number',
  creationTimestamp: 'string',
  deletionTimestamp: 'string',
  deletionGracePeriodSeconds: 'number',
  labels: 'strings',
  annotations: 'strings',
  ownerReferences: 'list',
  finalizers: 'list',
};

/**
 * A body as an object of a kind: unknown members, nulls and empty lists are dropped, as by a round trip
 * through Go's types.
 */
export interface Decoded {
  readonly object: KubeObject;
  /** Paths of the dropped members. */
  readonly unknown: readonly string[];
}

/**
 * Decodes a body as an object of a kind. `metadata.name` may still be empty.
 * @throws StatusError 400
 */
export function decodeObject(type: ResourceType, body: Json): Decoded {
  if (!isJsonObject(body))
    throw badRequest(`${unrecognized(type)}: couldn't get version/kind; json parse error: json: cannot unmarshal ${goType(body)}`);
  const wrong = kindProblem(type, body) ?? shapeProblem(type, body);
  if (wrong !== null) throw badRequest(wrong);
  return decodeMembers(type, body);
}

/**
 * As decodeObject, for the result of a patch.
 * @returns the object, or the error in its structure
 */
export function decodePatched(type: ResourceType, body: JsonObject): KubeObject | { readonly why: string } {
  const wrong = shapeProblem(type, body);
  return wrong === null ? decodeMembers(type, body).object : { why: wrong.slice(handledAs(type, type.kind, type.version).length) };
}

/** The start of the message for a body that is not an object. */
export function unrecognized(type: ResourceType): string {
  return `the object provided is unrecognized (must be of type ${type.kind})`;
}

function kindProblem(type: ResourceType, body: JsonObject): string | null {
  const apiVersion = typeof body.apiVersion === 'string' && body.apiVersion !== '' ? body.apiVersion : apiVersionOf(type);
  const kind = typeof body.kind === 'string' && body.kind !== '' ? body.kind : type.kind;
  if (apiVersion === apiVersionOf(type) && kind === type.kind) return null;
  const version = apiVersion.split('/').at(-1) ?? apiVersion;
  const known = RESOURCES.some((each) => apiVersionOf(each) === apiVersion && each.kind === kind);
  const why = known
    ? `converting (${version}.${kind}) to (core.${type.kind}): unknown conversion`
    : `no kind "${kind}" is registered for version "${apiVersion}" in scheme "pkg/api/legacyscheme/scheme.go:30"`;
  return `${handledAs(type, kind, version)}${why}`;
}

function shapeProblem(type: ResourceType, body: JsonObject): string | null {
  const rules = rulesOf(type);
  const cannot = (value: Json, field: string, goTypeName: string) =>
    `${handledAs(type, type.kind, type.version)}json: cannot unmarshal ${goType(value)} into Go struct field ${field} of type ${goTypeName}`;
  const metadata = body.metadata ?? {};
  if (!isJsonObject(metadata)) return cannot(metadata, `${type.kind}.metadata`, 'v1.ObjectMeta');
  for (const [name, shape] of Object.entries(METADATA)) {
    const value = metadata[name] ?? null;
    if (value !== null && shape === 'string' && typeof value !== 'string') return cannot(value, `ObjectMeta.metadata.${name}`, 'string');
    if (value !== null && shape === 'strings') {
      const wrong = stringMapProblem(value);
      if (wrong) return cannot(wrong.value, `ObjectMeta.metadata.${name}`, wrong.type);
    }
  }
  for (const name of [...(rules.stringMaps ?? []), ...(rules.bytesMaps ?? [])]) {
    const wrong = stringMapProblem(body[name] ?? {});
    if (wrong) return cannot(wrong.value, `${type.kind}.${name}`, wrong.type);
  }
  for (const name of rules.bytesMaps ?? []) {
    for (const value of Object.values(body[name] ?? {})) {
      const at = base64Problem(String(value ?? ''));
      if (at !== null) return `${handledAs(type, type.kind, type.version)}illegal base64 data at input byte ${at}`;
    }
  }
  return null;
}

function stringMapProblem(value: Json): { readonly value: Json; readonly type: string } | null {
  if (!isJsonObject(value)) return { value, type: 'map[string]string' };
  const wrong = Object.values(value).find((each) => each !== null && typeof each !== 'string');
  return wrong === undefined ? null : { value: wrong, type: 'string' };
}

function base64Problem(text: string): number | null {
  const bad = text.search(/[^A-Za-z0-9+/=\r\n]/);
  if (bad >= 0) return bad;
  return text.replace(/[\r\n]/g, '').length % 4 === 0 ? null : text.length;
}

function decodeMembers(type: ResourceType, body: JsonObject): Decoded {
  const rules = rulesOf(type);
  const maps = [...(rules.stringMaps ?? []), ...(rules.bytesMaps ?? [])];
  const given = (body.metadata ?? {}) as JsonObject;
  const metadata: Record<string, Json> = {};
  for (const name of Object.keys(METADATA)) {
    const value = METADATA[name] === 'strings' ? textMap(given[name]) : prune(given[name] ?? null);
    if (value !== undefined && value !== '') metadata[name] = value;
  }
  const members: Record<string, Json> = {};
  for (const name of rules.members) {
    const value = maps.includes(name) ? textMap(body[name]) : prune(body[name] ?? null);
    if (value !== undefined) members[name] = value;
  }
  const unknown = [
    ...Object.keys(given)
      .filter((name) => !Object.hasOwn(METADATA, name) && !['managedFields', 'selfLink'].includes(name))
      .map((name) => `metadata.${name}`),
    ...Object.keys(body).filter((name) => !['apiVersion', 'kind', 'metadata', ...rules.members].includes(name)),
  ];
  const object = { kind: type.kind, apiVersion: apiVersionOf(type), metadata: { name: '', ...metadata }, ...members };
  return { object, unknown };
}

/** A map of strings: null is an empty string, an empty map is dropped. */
function textMap(value: Json | undefined): JsonObject | undefined {
  if (!isJsonObject(value) || Object.keys(value).length === 0) return undefined;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, each ?? '']));
}

function prune(value: Json): Json | undefined {
  if (value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  if (Array.isArray(value)) return value.map((item) => prune(item) ?? null);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => {
      const kept = prune(each);
      return kept === undefined ? [] : [[key, kept] as const];
    }),
  );
}

function handledAs(type: ResourceType, kind: string, version: string): string {
  return `${kind} in version "${version}" cannot be handled as a ${type.kind}: `;
}

function goType(value: Json): string {
  if (Array.isArray(value)) return 'array';
  return isJsonObject(value) ? 'object' : value === null ? 'null' : typeof value === 'boolean' ? 'bool' : typeof value;
}
