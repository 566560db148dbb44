import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';

/** Typed access to a decoded configuration for rules; undefined if a value is unset. */

/** The value at a dotted path. */
export function valueAt(config: JsonObject, path: string): Json | undefined {
  if (!path.includes('.')) return config[path] ?? undefined;
  let value: Json | undefined = config;
  for (const name of path.split('.')) {
    if (!isJsonObject(value)) return undefined;
    value = value[name];
  }
  return value ?? undefined;
}

/** Integers beyond 53 bits, which are strings in decoded values, are rounded. */
export function numberAt(config: JsonObject, path: string): number | undefined {
  const value = valueAt(config, path);
  return typeof value === 'number' || typeof value === 'string' ? Number(value) : undefined;
}

/** Empty if unset. */
export function textAt(config: JsonObject, path: string): string {
  const value = valueAt(config, path);
  return typeof value === 'string' ? value : '';
}

/** False if unset. */
export function isTrue(config: JsonObject, path: string): boolean {
  return valueAt(config, path) === true;
}

/** Nanoseconds. */
export function durationAt(config: JsonObject, path: string): bigint | undefined {
  const value = valueAt(config, path);
  if (typeof value === 'number') return BigInt(value);
  if (typeof value !== 'string') return undefined;
  return parseGoDuration(value) ?? (/^-?[0-9]+$/.test(value) ? BigInt(value) : undefined);
}

/** Empty if unset. */
export function listAt(config: JsonObject, path: string): readonly Json[] {
  const value = valueAt(config, path);
  return Array.isArray(value) ? value : [];
}

/** The objects of a list. */
export function objectsAt(config: JsonObject, path: string): readonly JsonObject[] {
  return listAt(config, path).filter(isJsonObject);
}

/** Empty if unset. */
export function objectAt(config: JsonObject, path: string): JsonObject {
  return objectOf(valueAt(config, path));
}

/** Empty unless the value is an object. */
export function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Members in file order. */
export function entriesAt(config: JsonObject, path: string): readonly (readonly [key: string, value: Json])[] {
  return Object.entries(objectAt(config, path));
}

/** A zero of Go, also as a duration or a quantity. */
export function isZero(value: Json | undefined): boolean {
  return value === '' || value === 0 || value === false || value === '0s' || value === '0';
}

/** Absent, zero or an empty list. */
export function isUnset(value: Json | undefined): boolean {
  return value === undefined || isZero(value) || (Array.isArray(value) && value.length === 0);
}

/** Null, unset, or an object without other members. */
export function isEmpty(value: Json): boolean {
  return isJsonObject(value) ? Object.values(value).every(isEmpty) : value === null || isUnset(value);
}
