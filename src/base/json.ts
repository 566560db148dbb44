/** JSON (YAML core schema). Objects from files or the API server are never modified in place. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Reports whether a value is a JSON object (not null, not a list). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses JSON; null when the text is not JSON. */
export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

/** Parses a JSON object; null when the text is not JSON or not an object. */
export function parseJsonObject(text: string): JsonObject | null {
  const value = parseJson(text);
  return isJsonObject(value) ? value : null;
}

/** Structural equality; the order of object keys is ignored, the order of lists is significant. */
export function jsonEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => jsonEqual(item, b[i]));
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]));
}

/** Whether a value has all members of another one, and equal values in them. Lists must have as many items. */
export function jsonContains(whole: Json | undefined, part: Json | undefined): boolean {
  if (Array.isArray(whole) && Array.isArray(part))
    return whole.length === part.length && part.every((item: Json, i) => jsonContains(whole[i] as Json, item));
  if (!isJsonObject(whole) || !isJsonObject(part)) return whole === part;
  return Object.keys(part).every((key) => Object.hasOwn(whole, key) && jsonContains(whole[key], part[key]));
}
