import { AppError, type Problem } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import type { TreeFile } from '../../base/local-files.ts';
import { applyPatch, type PatchType } from '../../codec/patch.ts';
import { patchFileInvalid, patchFileNameHint, patchFileSeparator } from '../../codec/patch-problems.ts';
import type { PatchSchema } from '../../codec/patch-schema.ts';
import { parseSource, sourceToExactJson } from '../../codec/source.ts';

/** kubeadm's names for the targets of patch files; `kubeproxydaemonset` is used from 1.37 on. */
const PATCH_TARGETS = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubeletconfiguration',
  'corednsdeployment',
  'kubeproxydaemonset',
] as const;
export type PatchTarget = (typeof PATCH_TARGETS)[number];

const PATCH_TYPES = ['json', 'merge', 'strategic'] as const satisfies readonly PatchType[];
const EXTENSION = /.\.(?:json|yaml)$/;
const NAME = new RegExp(`^(${PATCH_TARGETS.join('|')})([^.+\\n]*)(\\+)?(${PATCH_TYPES.join('|')})?`);

/** The meaning of a file name: a patch, `ignored` with a reason, or `problem`. */
export type PatchFileName =
  | { readonly target: PatchTarget; readonly type: PatchType }
  | { readonly ignored: string }
  | { readonly problem: string };

/**
 * Parses the name of a patch file: `target[suffix][+patchtype].json|yaml`; the default type is strategic.
 * @param name without directories
 * @see kubeadm 1.36 app/util/patches; kubeadm does not check the end of the name, so `etcd+jsonx.yaml` is a
 *   JSON patch
 */
export function parsePatchFileName(name: string): PatchFileName {
  if (!EXTENSION.test(name)) return { ignored: 'the file extension must be one of [json yaml]' };
  const [, target, , plus, type] = NAME.exec(name) ?? [];
  if (target === undefined) return { ignored: `unknown target, must be one of [${PATCH_TARGETS.join(' ')}]` };
  if (plus !== undefined && type === undefined)
    return { problem: `unknown or missing patch type after '+', must be one of [${PATCH_TYPES.join(' ')}]` };
  return { target: target as PatchTarget, type: (type as PatchType | undefined) ?? 'strategic' };
}

/** Whether a file must be read: `planPatches` ignores others by their names. */
export function isPatchFile(path: string): boolean {
  return !('ignored' in parsePatchFileName(baseName(path)));
}

/** A patch with its source. */
export interface KubeletPatch {
  readonly patch: Json;
  readonly type: PatchType;
  /** The file, with the document number if it has several: `kubeletconfiguration0+json.yaml (2)`. */
  readonly source: string;
}

export interface PlannedPatch extends KubeletPatch {
  readonly target: PatchTarget;
}

interface PatchPlan {
  /** In order of application. */
  readonly patches: PlannedPatch[];
  /** Files with patches. */
  readonly used: string[];
  /** Files that are not patches, with reasons: reported, but not an error. */
  readonly ignored: { readonly path: string; readonly reason: string }[];
  /** With an error among them nothing may be applied. */
  readonly problems: Problem[];
}

/**
 * Reads the files of a patch directory (`--patches`), including subdirectories. Files are read in lexical
 * order, directory by directory, and documents in file order; JSON patches may be written in YAML. All
 * problems are reported at once.
 * @param files all regular files below the directory, in any order
 * @returns codes of problems: PATCH_FILE_TYPE, PATCH_FILE_SEPARATOR, those of `parseSource`; PATCH_FILE_NAME
 *   (a warning)
 * @see kubeadm 1.36 app/util/patches
 */
export function planPatches(files: readonly TreeFile[]): PatchPlan {
  const plan: PatchPlan = { patches: [], used: [], ignored: [], problems: [] };
  for (const file of files.toSorted((a, b) => comparePaths(a.path, b.path))) planFile(plan, file);
  return plan;
}

/**
 * Applies the patches of a plan for one target, in order.
 * @throws AppError of `applyPatch`, prefixed with the file
 */
export function applyPlannedPatches(
  value: JsonObject,
  patches: readonly PlannedPatch[],
  { target, schema }: { readonly target: PatchTarget; readonly schema: PatchSchema },
): JsonObject {
  return patches.filter((patch) => patch.target === target).reduce((current, patch) => applyPatchFile(current, patch, schema), value);
}

/**
 * Applies one patch.
 * @throws AppError of `applyPatch`, prefixed with the file
 */
export function applyPatchFile(value: JsonObject, { patch, type, source }: KubeletPatch, schema: PatchSchema): JsonObject {
  try {
    return applyPatch(value, patch, type, schema);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const problems = error.problems.map(({ path, ...problem }) => ({
      ...problem,
      message: [`patch ${source}`, path, problem.message].filter(Boolean).join(': '),
    }));
    throw new AppError(problems, { exitCode: error.exitCode, cause: error });
  }
}

function planFile(plan: PatchPlan, { path, text }: TreeFile): void {
  const base = baseName(path);
  const name = parsePatchFileName(base);
  if ('ignored' in name) plan.ignored.push({ path, reason: name.ignored });
  else if ('problem' in name) plan.problems.push(patchFileInvalid(path, name.problem));
  else if (text === '') plan.ignored.push({ path, reason: 'the file is empty' });
  else {
    plan.used.push(path);
    if (name.type === 'strategic' && /\+(?:json|merge)\b/.test(base)) plan.problems.push(patchFileNameHint(path));
    const patches = readPatches(plan.problems, { path, text });
    for (const [index, patch] of patches.entries()) {
      plan.patches.push({ ...name, patch, source: patches.length === 1 ? path : `${path} (${index + 1})` });
    }
  }
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A line that starts with `---` ends a document; only white space or a comment may follow it. */
function readPatches(problems: Problem[], { path, text }: TreeFile): readonly Json[] {
  const patches: Json[] = [];
  let chunk: string[] = [];
  const lines = text.split(/\r?\n/);
  const close = (end: number) => {
    // Leading empty lines keep the line numbers of the file.
    if (chunk.join('').trim() !== '')
      patches.push(...readPatch(problems, { path, text: '\n'.repeat(end - chunk.length) + chunk.join('\n') }));
    chunk = [];
  };
  for (const [index, line] of lines.entries()) {
    if (!line.startsWith('---')) {
      chunk.push(line);
      continue;
    }
    const rest = line.slice(3).trim();
    if (rest !== '' && !rest.startsWith('#')) problems.push(patchFileSeparator({ file: path, line: index + 1, column: 1 }, rest));
    close(index);
  }
  close(lines.length);
  return patches;
}

function readPatch(problems: Problem[], { path, text }: TreeFile): readonly Json[] {
  const source = parseSource(text, path);
  problems.push(...source.problems);
  if (source.problems.length > 0) return [];
  const root = source.documents[0]?.root;
  return [root ? sourceToExactJson(root) : null];
}

/** In the order of a directory walk: `a/b.yaml` before `a.yaml`. */
function comparePaths(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')];
  const index = left.findIndex((part, i) => part !== right[i]);
  const [x, y] = [left[index] ?? '', right[index] ?? ''];
  return x === y ? left.length - right.length : x < y ? -1 : 1;
}
