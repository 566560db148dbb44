import { AppError, type Problem } from '../../base/errors.ts';
import { isJsonObject, jsonEqual } from '../../base/json.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import { formatFieldChange } from '../../host/plan/impact.ts';
import { leavesOf } from '../../kubelet/layers/layers.ts';
import { type HistoryEntry, shortId } from './host-history.ts';
import { type FileState, MAX_UNDO_RECORDS, type UndoRecord } from './undo-record.ts';

/** A file on the host now. */
interface PresentFile {
  readonly content: string;
  /** Unix seconds. */
  readonly modifiedAt?: number | undefined;
}

/** The changes of a host that an undo reverts. */
export interface Undo {
  /** The newest first; empty: the host is in this state already. */
  readonly undone: readonly HistoryEntry[];
  /** The state of each changed file after the undo; null: the file does not exist. */
  readonly restore: ReadonlyMap<string, FileState>;
  /** What stays, as noun phrases. */
  readonly left: readonly string[];
}

/** `--to`: before the oldest change that can be undone. */
export const OLDEST = 'oldest';

/** `apply of alice@laptop at 2026-03-01T12:00:00Z (0a1b2c3d)`. */
export function describeEntry(entry: HistoryEntry): string {
  return `${entry.command} of ${describeAuthor(entry)}`;
}

/** `alice@laptop at 2026-03-01T12:00:00Z (0a1b2c3d)`: the operator, time and run of a change. */
export function describeAuthor(entry: Pick<HistoryEntry, 'operator' | 'time' | 'run' | 'id'>): string {
  const id = shortId(entry);
  return `${entry.operator} at ${entry.time.slice(0, 19)}Z${id === null ? '' : ` (${id})`}`;
}

/**
 * The changes after the state to return to.
 * @param history the oldest first
 * @param to the beginning of the id of the run after which the host had the state, or `oldest`; undefined: before the last change
 * @returns the newest first. With `to` undefined, all up to the last change that was not refused
 * @throws AppError UNDO_UNKNOWN_ID, UNDO_NOTHING (exit code 3)
 */
export function entriesToUndo(host: string, history: readonly HistoryEntry[], to: string | undefined): readonly HistoryEntry[] {
  const newestFirst = history.toReversed();
  if (newestFirst.length === 0)
    throw refusal({ host, code: 'UNDO_NOTHING', message: 'the history of the host has no change', hint: 'See kubeletadm fleet history' });
  if (to === OLDEST) return newestFirst;
  // The last one alone is undone; one that was refused changed nothing.
  if (to === undefined) return newestFirst.slice(0, newestFirst.findIndex(({ result }) => result !== 'refused') + 1 || undefined);
  const found = newestFirst.filter(({ run, id }) => run?.startsWith(to) === true || id?.startsWith(to) === true);
  const [at, ...others] = found;
  if (at === undefined || new Set(found.map(({ run, id }) => run ?? id)).size > 1) {
    const known = history.flatMap((entry) => shortId(entry) ?? []);
    const message =
      others.length > 0 ? `--to ${to} is the beginning of several ids` : `the history of the host has no change with the id ${to}`;
    const hint = known.length === 0 ? 'See kubeletadm fleet history' : `The newest ids are ${known.slice(-5).toReversed().join(', ')}`;
    throw refusal({ host, code: 'UNDO_UNKNOWN_ID', message, hint });
  }
  return newestFirst.slice(0, newestFirst.indexOf(at));
}

/**
 * Decides which files are restored. A file of a change must be on the host as the change left it.
 * @param entries the newest first, as of `entriesToUndo`
 * @param history all changes, the oldest first
 * @param recordOf the record of a change; null: none
 * @param present the files on the host by path; absent: the file does not exist
 * @throws AppError UNDO_NOTHING, UNDO_NOT_POSSIBLE, UNDO_MOVED (exit code 3), with all files that differ
 */
export function decideUndo(input: {
  readonly host: string;
  readonly entries: readonly HistoryEntry[];
  readonly history: readonly HistoryEntry[];
  readonly to: string | undefined;
  readonly recordOf: (entry: HistoryEntry) => UndoRecord | null;
  readonly present: ReadonlyMap<string, PresentFile>;
}): Undo {
  const { host, entries, to, recordOf, present } = input;
  const restore = new Map<string, FileState>();
  const contentNow = (path: string): string | null => (restore.has(path) ? restore.get(path) : present.get(path))?.content ?? null;
  const undone: HistoryEntry[] = [];
  const left = new Set<string>();
  for (const entry of entries) {
    const record = recordOf(entry);
    const obstacle = obstacleOf(record);
    const isAt = (state: 'before' | 'after'): boolean =>
      record?.files.every((file) => (file[state]?.content ?? null) === contentNow(file.path)) === true;
    // A rolled-back change left the files as they were; one without a known end may have as well.
    const hadNoEffect =
      entry.result === 'refused' ||
      entry.result === 'rolled-back' ||
      (entry.result !== 'changed' && obstacle === null && !isAt('after') && isAt('before'));
    if (hadNoEffect) {
      if (to === undefined && entry.result !== 'refused') throw rolledBack(input, entry);
      continue;
    }
    if (obstacle !== null || record === null) {
      if (to === OLDEST && undone.length > 0) break;
      throw notPossible(host, entry, obstacle ?? '');
    }
    if (!isAt('after')) throw moved(input, entry, record, contentNow);
    for (const { path, before } of record.files) restore.set(path, before);
    for (const what of record.left) left.add(what);
    undone.push(entry);
  }
  if (undone.length === 0 && to === undefined) throw notPossible(host, null, 'the history of the host has no change that had an effect');
  return { undone, restore, left: [...left] };
}

function obstacleOf(record: UndoRecord | null): string | null {
  if (record !== null) return record.obstacle ?? null;
  return `the host has no copy of the previous files. It keeps those of its ${MAX_UNDO_RECORDS} newest changes, and earlier versions of kubeletadm kept none`;
}

function refusal(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 3 });
}

function notPossible(host: string, entry: HistoryEntry | null, why: string): AppError {
  const message = entry === null ? why : `${describeEntry(entry)} is not undone: ${why}`;
  return refusal({ host, code: entry === null ? 'UNDO_NOTHING' : 'UNDO_NOT_POSSIBLE', message });
}

/** The host already has the state before its last change. */
function rolledBack(
  { host, history }: { readonly host: string; readonly history: readonly HistoryEntry[] },
  entry: HistoryEntry,
): AppError {
  const before = history.slice(0, history.indexOf(entry)).filter(({ result }) => result === 'changed');
  const older = before.at(-2);
  const id = older === undefined ? null : shortId(older);
  const last = before.at(-1);
  const hint =
    last === undefined
      ? 'See kubeletadm fleet history'
      : `To undo the change before it as well (${describeEntry(last)}), add --to ${id ?? OLDEST}`;
  const had = entry.result === 'rolled-back' ? 'was rolled back already' : 'had no effect on the files of the host';
  const message = `nothing to undo: ${describeEntry(entry)} ${had}`;
  return refusal({ host, code: 'UNDO_NOTHING', message, hint });
}

/** Names the files that differ from what the change wrote, their fields, and who changed them. */
function moved(
  { host, history, present }: Parameters<typeof decideUndo>[0],
  entry: HistoryEntry,
  record: UndoRecord,
  contentNow: (path: string) => string | null,
): AppError {
  const later = history.slice(history.indexOf(entry) + 1);
  const problems = record.files.flatMap(({ path, after }): readonly Problem[] => {
    const now = contentNow(path);
    if (now === (after?.content ?? null)) return [];
    const by = later.findLast(({ changes }) => changes.some((what) => what.endsWith(` ${path}`)));
    const modifiedAt = present.get(path)?.modifiedAt;
    const at = modifiedAt === undefined ? '' : ` at ${new Date(modifiedAt * 1000).toISOString().slice(0, 19)}Z`;
    const who = by === undefined ? `not by kubeletadm${at}` : `by ${describeEntry(by)}`;
    const message = `${path} was changed since ${describeEntry(entry)}, ${who}: ${differenceOf(after?.content ?? null, now)}`;
    const hint = 'Restore this file, or change the host forward with apply or upgrade node';
    return [{ host, code: 'UNDO_MOVED', message, hint }];
  });
  return new AppError(problems, { exitCode: 3 });
}

/** The fields that differ, or that the files do. */
function differenceOf(before: string | null, after: string | null): string {
  if (after === null) return 'it does not exist any more';
  if (before === null) return 'it exists again';
  const [old, now] = [leaves(before), leaves(after)];
  if (old === null || now === null) return 'its content differs';
  const fields = [...new Set([...old.keys(), ...now.keys()])].filter((field) => !jsonEqual(old.get(field), now.get(field)));
  if (fields.length === 0) return 'its content differs, but no field';
  return fields
    .slice(0, 10)
    .map((field) => formatFieldChange({ field, before: old.get(field) ?? null, after: now.get(field) ?? null }))
    .join(', ');
}

/** Null: not a document with fields. */
function leaves(text: string): ReturnType<typeof leavesOf> | null {
  const { documents, problems } = parseSource(text, 'file');
  const root = documents[0]?.root ?? null;
  const value = problems.length > 0 || root === null ? null : sourceToJson(root);
  return isJsonObject(value) ? leavesOf(value) : null;
}
