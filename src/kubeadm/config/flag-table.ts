import type { Problem } from '../../base/errors.ts';
import * as read from './flag-values.ts';
import { type FlagReader, type FlagValue, isProblem } from './flag-values.ts';
import { MODEL_MEMBERS, type ModelKind, type ModelSet } from './model.ts';

/** Applies a flag: returns the changed models and the set paths, or the problem of its value. */
export type ApplyFlag = (models: ModelSet, value: FlagValue) => { readonly models: ModelSet; readonly paths: readonly string[] } | Problem;

/** Flags and positional arguments by name, applied in this order, so that later ones win. */
export type FlagTable = Readonly<Record<string, ApplyFlag>>;

/**
 * Flags that set one member each.
 * @param at path of the part that has the members, which begins with the kind
 */
export function memberFlags(
  at: string,
  members: Readonly<Record<string, readonly [path: string, reader: FlagReader<unknown>]>>,
): FlagTable {
  return Object.fromEntries(
    Object.entries(members).map(([flag, [path, reader]]) => [flag, sets(`${at}.${path}`, reader, (_, value) => value)]),
  );
}

/** `--ignore-preflight-errors`: names of checks, which are added to those of the file, ignoring case. */
export function ignoreFlag(at: string): FlagTable {
  const union = (before: unknown, ids: readonly string[]) =>
    new Map([...((before ?? []) as readonly string[]), ...ids].map((id) => [id.toLowerCase(), id])).values();
  return { 'ignore-preflight-errors': sets(`${at}.ignorePreflightErrors`, read.list, (before, ids) => [...union(before, ids)]) };
}

function sets<T>(path: string, reader: FlagReader<T>, change: (before: unknown, value: T) => unknown): ApplyFlag {
  return (models, value) => {
    const parsed = reader(value);
    if (isProblem(parsed)) return parsed;
    const [kind, ...names] = path.split(/[.[\]]+/);
    const member = MODEL_MEMBERS[kind as ModelKind];
    return { models: { ...models, [member]: changeAt(models[member], names, (before) => change(before, parsed as T)) }, paths: [path] };
  };
}

function changeAt(value: unknown, [name, ...rest]: readonly string[], change: (before: unknown) => unknown): unknown {
  if (name === undefined) return change(value);
  if (Array.isArray(value)) return value.with(Number(name), changeAt(value[Number(name)], rest, change));
  const members = (value ?? {}) as Readonly<Record<string, unknown>>;
  return { ...members, [name]: changeAt(members[name], rest, change) };
}

/** Flags about the node, shared by `init` and `join`. */
export function nodeFlags(kind: 'InitConfiguration' | 'JoinConfiguration'): FlagTable {
  return {
    ...memberFlags(kind, { 'node-name': ['nodeRegistration.name', read.text], 'cri-socket': ['nodeRegistration.criSocket', read.text] }),
    ...ignoreFlag(`${kind}.nodeRegistration`),
    ...memberFlags(kind, {
      patches: ['patches.directory', read.text],
      'skip-phases': ['skipPhases', read.list],
      'dry-run': ['dryRun', read.boolean],
    }),
  };
}
