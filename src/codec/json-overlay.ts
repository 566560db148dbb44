import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../base/json.ts';

/**
 * Makes the changes between two values to a third one, which is the first with more in it: what neither of them knows of stays.
 * @param base what is there
 * @param before what of it was understood
 * @param after what that is to be
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
