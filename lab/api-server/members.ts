import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';

/** An object member; an empty object when absent. */
export function memberOf(object: JsonObject | undefined, name: string): JsonObject {
  const value = object?.[name];
  return isJsonObject(value) ? value : {};
}

/** The objects of a list member; empty when absent. */
export function itemsOf(object: JsonObject | undefined, name: string): readonly JsonObject[] {
  const value = object?.[name];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** A string member; empty when absent. */
export function textOf(object: JsonObject | undefined, name: string): string {
  const value = object?.[name];
  return typeof value === 'string' ? value : '';
}

/** The strings of a list member. */
export function textsOf(object: JsonObject | undefined, name: string): readonly string[] {
  const value = object?.[name];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

/** The object with a member replaced or, for undefined, removed. */
export function withMember<T extends JsonObject>(object: T, name: string, value: Json | undefined): T {
  const { [name]: _replaced, ...rest } = object;
  return (value === undefined ? rest : { ...rest, [name]: value }) as T;
}

/** The object with changed metadata; undefined removes a member. */
export function withMetadata(object: KubeObject, changes: Readonly<Record<string, Json | undefined>>): KubeObject {
  const entries = Object.entries({ ...object.metadata, ...changes }).filter(([, value]) => value !== undefined);
  return { ...object, metadata: Object.fromEntries(entries) as KubeObject['metadata'] };
}

/** The entries of a map of strings, e.g. `data`. */
export function entriesOf(object: JsonObject | undefined, name: string): readonly (readonly [string, string])[] {
  return Object.entries(memberOf(object, name)).map(([key, value]) => [key, String(value)] as const);
}
