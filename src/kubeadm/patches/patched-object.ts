import { AppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { encodeTyped } from '../../codec/encode-typed.ts';
import { patchSchemaOf } from '../../codec/patch-schema.ts';
import { applyPlannedPatches, type PatchTarget, type PlannedPatch } from '../../kubelet/layers/patch-files.ts';
import { apiType, type TypedKind } from './api-types.ts';

/**
 * An API object as its Go type prints it, with the user's patches for a target applied. Fields that the type
 * does not have are dropped.
 * @throws AppError as `applyPatch`; CONFIG_WRONG_TYPE and similar, prefixed with the target, when a patch
 *   leaves a value of the wrong type
 * @see kubeadm 1.36 util/staticpod PatchStaticPod
 */
export function patchedObject(
  object: JsonObject,
  patches: readonly PlannedPatch[],
  { kind, target }: { readonly kind: TypedKind; readonly target: PatchTarget },
): JsonObject {
  const type = apiType(kind);
  const own = encodeTyped(type, object);
  const ours = patches.filter((patch) => patch.target === target);
  if (ours.length === 0) return own;
  const patched = applyPlannedPatches(own, ours, { target, schema: patchSchemaOf(kind) });
  try {
    return encodeTyped(type, patched);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const sources = [...new Set(ours.map(({ source }) => source))].join(', ');
    const problems = error.problems.map(({ path, ...problem }) => ({
      ...problem,
      message: `${target}, with the patches of ${sources}: ${path} ${problem.message}`,
    }));
    throw new AppError(problems, { exitCode: error.exitCode, cause: error });
  }
}
