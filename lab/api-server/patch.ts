import { isAppError } from '../../src/base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import { applyPatch as applyCorePatch, type PatchType } from '../../src/codec/patch.ts';
import { patchSchemaOf } from '../../src/codec/patch-schema.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { badRequest, unprocessablePatch } from './status.ts';

export type { PatchType };

/**
 * Applies a patch to an object of a kind.
 * @throws StatusError 400 for an invalid patch, 422 for one that does not apply
 */
export function applyPatch(type: ResourceType, target: JsonObject, patchType: PatchType, patch: Json): JsonObject {
  if (patchType === 'json' && !Array.isArray(patch)) {
    throw badRequest('error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp');
  }
  if (patchType !== 'json' && !isJsonObject(patch)) {
    throw badRequest('json: cannot unmarshal array into Go value of type map[string]interface {}');
  }
  try {
    return applyCorePatch(target, patch, patchType, patchSchemaOf(type.kind));
  } catch (error) {
    if (isAppError(error)) throw unprocessablePatch();
    throw error;
  }
}
