import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { apiVersionOf, RESOURCES, REVIEWS, type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import { ruleFunction } from '../../src/rollouts/api/schema.ts';
import type { CustomType } from './custom-type.ts';
import type { KindRules } from './kinds/kind.ts';
import { itemsOf, memberOf, textOf, textsOf, withMember } from './members.ts';
import { type Cause, goQuote, invalidValue, requiredValue, unsupportedValue } from './status.ts';
import type { Store } from './store.ts';

const DEFINITIONS = resourceOf('apiextensions.k8s.io/v1', 'CustomResourceDefinition') as ResourceType;

/** The kinds that the server serves, those of CustomResourceDefinitions included. */
export function servedTypes(store: Store): readonly ResourceType[] {
  return [...RESOURCES, ...REVIEWS, ...store.list(DEFINITIONS).flatMap(typesOf)];
}

/** The type of a kind; undefined: the server does not serve it. */
export function servedKind(store: Store, apiVersion: string, kind: string): ResourceType | undefined {
  return resourceOf(apiVersion, kind) ?? servedTypes(store).find((type) => apiVersionOf(type) === apiVersion && type.kind === kind);
}

function typesOf({ spec }: KubeObject): readonly CustomType[] {
  const given = isJsonObject(spec) ? spec : {};
  const names = memberOf(given, 'names');
  const served = itemsOf(given, 'versions').filter((version) => version.served === true);
  return served.map((definition) => ({
    group: textOf(given, 'group'),
    version: textOf(definition, 'name'),
    kind: textOf(names, 'kind'),
    plural: textOf(names, 'plural'),
    namespaced: given.scope === 'Namespaced',
    definition,
    shortNames: textsOf(names, 'shortNames'),
  }));
}

/** The rules of a custom kind: pruning, defaults, the structural schema, and those CEL rules that this program knows. */
export function customRules({ definition }: CustomType): KindRules {
  const schema = memberOf(memberOf(definition, 'schema'), 'openAPIV3Schema');
  const hasStatus = isJsonObject(memberOf(definition, 'subresources').status);
  const members = Object.keys(memberOf(schema, 'properties')).filter((name) => !['apiVersion', 'kind', 'metadata'].includes(name));
  const complete = (object: KubeObject): KubeObject =>
    members.reduce((all, name) => {
      const value = object[name];
      return value === undefined ? all : withMember(all, name, completed(value, memberOf(memberOf(schema, 'properties'), name)));
    }, object);
  return {
    members,
    generation: true,
    returnsDeleted: true,
    prepareCreate: (object) => complete(hasStatus ? withMember(object, 'status', undefined) : object),
    prepareUpdate: (object, old, { subresource }) => {
      if (!hasStatus) return complete(object);
      if (subresource === 'status') return complete(withMember({ ...old, metadata: object.metadata }, 'status', object.status));
      return complete(withMember(object, 'status', old.status));
    },
    validate: (object) => causesOf(object, schema, ''),
  };
}

/** The value with defaults, without fields that the schema does not have. */
function completed(value: Json, schema: JsonObject): Json {
  if (Array.isArray(value)) return value.map((item) => completed(item, memberOf(schema, 'items')));
  if (!isJsonObject(value)) return value;
  const properties = memberOf(schema, 'properties');
  const keeps = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const more = isJsonObject(schema.additionalProperties);
  const defaults = Object.entries(properties).flatMap(([name, field]) =>
    isJsonObject(field) && field.default !== undefined && value[name] === undefined ? [[name, field.default] as const] : [],
  );
  const kept = Object.entries(value).filter(([name]) => keeps || more || Object.hasOwn(properties, name));
  return Object.fromEntries(
    [...kept, ...defaults].map(([name, each]) => [
      name,
      Object.hasOwn(properties, name) ? completed(each, memberOf(properties, name)) : each,
    ]),
  );
}

/** @see k8s.io/apiextensions-apiserver pkg/apiserver/validation (1.36) */
function causesOf(value: Json, schema: JsonObject, path: string): readonly Cause[] {
  const wrongType = typeCause(value, schema, path);
  if (wrongType !== null) return [wrongType];
  const own = [...limitCauses(value, schema, path), ...enumCauses(value, schema, path), ...duplicateCauses(value, schema, path)];
  const nested = nestedCauses(value, schema, path);
  // The rules of an invalid value are not evaluated.
  if (own.length + nested.length > 0) return [...own, ...nested];
  return itemsOf(schema, 'x-kubernetes-validations').flatMap((rule) => {
    const holds = ruleFunction(textOf(rule, 'rule'));
    return holds === undefined || holds(value)
      ? []
      : [invalidValue(path === '' ? '<nil>' : path, isJsonObject(value) ? 'object' : value, textOf(rule, 'message'))];
  });
}

function typeCause(value: Json, schema: JsonObject, path: string): Cause | null {
  const isInteger = typeof value === 'number' && Number.isInteger(value);
  if (schema['x-kubernetes-int-or-string'] === true)
    return isInteger || typeof value === 'string' ? null : invalidValue(path, value, `${path} in body must be of type integer,string`);
  const { type } = schema;
  const actual = Array.isArray(value) ? 'array' : value === null ? 'null' : isInteger ? 'integer' : typeof value;
  if (type === undefined || type === actual || (type === 'number' && actual === 'integer')) return null;
  return invalidValue(path, actual, `${path} in body must be of type ${String(type)}: ${goQuote(actual)}`);
}

function limitCauses(value: Json, schema: JsonObject, path: string): readonly Cause[] {
  const size =
    typeof value === 'string'
      ? value.length
      : Array.isArray(value)
        ? value.length
        : isJsonObject(value)
          ? Object.keys(value).length
          : Number(value);
  const limit = (name: string): number | null => (typeof schema[name] === 'number' ? schema[name] : null);
  const [least, most] = Array.isArray(value)
    ? [limit('minItems'), limit('maxItems')]
    : isJsonObject(value)
      ? [limit('minProperties'), limit('maxProperties')]
      : typeof value === 'string'
        ? [limit('minLength'), limit('maxLength')]
        : [limit('minimum'), limit('maximum')];
  const isAmount = typeof value === 'number' ? 'be' : 'have';
  if (least !== null && size < least) return [invalidValue(path, value, `${path} in body should ${isAmount} at least ${least}`)];
  const { pattern } = schema;
  if (typeof value === 'string' && typeof pattern === 'string' && !new RegExp(pattern).test(value))
    return [invalidValue(path, value, `${path} in body should match '${pattern}'`)];
  if (most !== null && size > most) return [invalidValue(path, value, `${path} in body should ${isAmount} at most ${most}`)];
  return [];
}

function enumCauses(value: Json, schema: JsonObject, path: string): readonly Cause[] {
  const values = textsOf(schema, 'enum');
  return values.length === 0 || values.includes(String(value)) ? [] : [unsupportedValue(path, String(value), values)];
}

/** Equal keys in a list of type `map`, and equal values in one of type `set`. */
function duplicateCauses(value: Json, schema: JsonObject, path: string): readonly Cause[] {
  if (!Array.isArray(value) || !['map', 'set'].includes(String(schema['x-kubernetes-list-type']))) return [];
  const keys = textsOf(schema, 'x-kubernetes-list-map-keys');
  const texts = value.map((item) =>
    JSON.stringify(isJsonObject(item) ? Object.fromEntries(keys.map((key) => [key, item[key] ?? null])) : item),
  );
  return texts.flatMap((text, i) =>
    texts.indexOf(text) === i ? [] : [{ field: `${path}[${i}]`, reason: 'FieldValueDuplicate', message: `Duplicate value: ${text}` }],
  );
}

function nestedCauses(value: Json, schema: JsonObject, path: string): readonly Cause[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => causesOf(item, memberOf(schema, 'items'), `${path}[${i}]`));
  if (!isJsonObject(value)) return [];
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  const missing = textsOf(schema, 'required').filter((name) => value[name] === undefined);
  const properties = memberOf(schema, 'properties');
  const { additionalProperties } = schema;
  return [
    ...missing.map((name) => requiredValue(at(name))),
    ...Object.entries(value).flatMap(([name, each]) => {
      const known = properties[name];
      if (isJsonObject(known)) return path === '' && name === 'metadata' ? [] : causesOf(each, known, at(name));
      return isJsonObject(additionalProperties) ? causesOf(each, additionalProperties, at(name)) : [];
    }),
  ];
}
