import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../base/json.ts';
import { patchInvalid } from './patch-problems.ts';
import { describeType, isMutableObject, type Mutable, type MutableObject, withoutNulls } from './patch-tree.ts';

/**
 * Applies a JSON merge patch (RFC 7386), modifying `target`. As in evanphx/json-patch v4, nulls are also
 * dropped from new objects. @throws AppError PATCH_INVALID
 */
export function applyMergePatch(target: Mutable, patch: Mutable): Mutable {
  if (!isMutableObject(patch)) throw patchInvalid(`a merge patch must be an object, not ${describeType(patch)}`);
  if (!isMutableObject(target)) return withoutNulls(patch);
  mergeInto(target, patch);
  return target;
}

function mergeInto(target: MutableObject, patch: MutableObject): void {
  for (const [key, value] of Object.entries(patch)) {
    const current = target[key];
    if (value === null) delete target[key];
    else if (!isMutableObject(current)) target[key] = withoutNulls(value);
    else if (isMutableObject(value)) mergeInto(current, value);
    else target[key] = value;
  }
}

/** Applies the changes of the decoded part of an object (`before`, `after`) to the object; unknown fields are kept. */
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
