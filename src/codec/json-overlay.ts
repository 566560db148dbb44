import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../base/json.ts';

/**
 * Applies the changes between two values to a third one, which contains the first plus unknown fields:
 * unknown fields are kept.
 * @param base the existing object
 * @param before the decoded part of the existing object
 * @param after the desired state of the decoded part
 */
export function overlayChanges(base: JsonObject, before: JsonObject, after: JsonObject): JsonObject {
  const result = new Map<string, Json>(Object.entries(base));
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [existing, old, desired] = [base[key], before[key], after[key]];
    if (jsonEqual(old, desired)) continue;
    if (desired === undefined) result.delete(key);
    else
      result.set(
        key,
        isJsonObject(existing) && isJsonObject(old) && isJsonObject(desired) ? overlayChanges(existing, old, desired) : desired,
      );
  }
  return Object.fromEntries(result);
}
