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
    const [there, old, wanted] = [base[key], before[key], after[key]];
    if (jsonEqual(old, wanted)) continue;
    if (wanted === undefined) result.delete(key);
    else result.set(key, isJsonObject(there) && isJsonObject(old) && isJsonObject(wanted) ? overlayChanges(there, old, wanted) : wanted);
  }
  return Object.fromEntries(result);
}
