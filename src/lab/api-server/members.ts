import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';

/** A member that is an object; an empty one where there is none. */
export function memberOf(object: JsonObject | undefined, name: string): JsonObject {
  const value = object?.[name];
  return isJsonObject(value) ? value : {};
}

/** The objects of a member that is a list; none where there is none. */
export function itemsOf(object: JsonObject | undefined, name: string): readonly JsonObject[] {
  const value = object?.[name];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** A member that is a text; empty where there is none. */
export function textOf(object: JsonObject | undefined, name: string): string {
  const value = object?.[name];
  return typeof value === 'string' ? value : '';
}

/** The strings of a member that is a list. */
export function textsOf(object: JsonObject | undefined, name: string): readonly string[] {
  const value = object?.[name];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

/** The object with a member replaced or, by undefined, taken away. */
export function withMember<T extends JsonObject>(object: T, name: string, value: Json | undefined): T {
  const { [name]: _replaced, ...rest } = object;
  return (value === undefined ? rest : { ...rest, [name]: value }) as T;
}

/** The object with changed metadata; undefined takes a member away. */
export function withMetadata(object: KubeObject, changes: Readonly<Record<string, Json | undefined>>): KubeObject {
  const entries = Object.entries({ ...object.metadata, ...changes }).filter(([, value]) => value !== undefined);
  return { ...object, metadata: Object.fromEntries(entries) as KubeObject['metadata'] };
}

/** The members of a map of texts, e.g. `data`. */
export function entriesOf(object: JsonObject | undefined, name: string): readonly (readonly [string, string])[] {
  return Object.entries(memberOf(object, name)).map(([key, value]) => [key, String(value)] as const);
}
