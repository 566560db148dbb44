import { isJsonObject, type Json, type JsonObject } from '../base/json.ts';
import { applyJsonPatch } from './patch-json.ts';
import { applyMergePatch } from './patch-merge.ts';
import { patchNotApplicable } from './patch-problems.ts';
import type { PatchSchema } from './patch-schema.ts';
import { applyStrategicPatch } from './patch-strategic.ts';
import { cloneJson, type Mutable } from './patch-tree.ts';

export type PatchType = 'strategic' | 'merge' | 'json';

/**
 * As kubeadm does to its files and the API server to its objects. The inputs are not modified; nothing is
 * normalised (a patched duration `60s` stays `60s`), and unknown keys are kept.
 * @param patch strategic and merge: an object (`null` as strategic or JSON patch changes nothing); json: a
 *   list of RFC 6902 operations
 * @param schema the merge rules; only strategic patches use it
 * @returns the new object; its objects have no prototype
 * @throws AppError PATCH_INVALID (malformed), PATCH_NOT_APPLICABLE (does not fit the target),
 *   PATCH_TEST_FAILED; exit code 2
 * @see kubeadm 1.36 app/util/patches, k8s.io/apimachinery strategicpatch, evanphx/json-patch v4
 */
export function applyPatch(target: JsonObject, patch: Json, type: PatchType, schema: PatchSchema): JsonObject {
  const result = apply(cloneJson(target), cloneJson(patch), type, schema);
  if (!isJsonObject(result)) throw patchNotApplicable('the result of the patch is not an object');
  return result;
}

function apply(target: Mutable, patch: Mutable, type: PatchType, schema: PatchSchema): Mutable {
  switch (type) {
    case 'strategic':
      return applyStrategicPatch(target, patch, schema);
    case 'merge':
      return applyMergePatch(target, patch);
    case 'json':
      return applyJsonPatch(target, patch);
  }
}
