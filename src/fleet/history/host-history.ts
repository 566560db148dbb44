import * as z from 'zod';
import type { Clock } from '../../base/clock.ts';
import { type AppError, isAppError } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import { present } from '../../base/present.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import { commitRecord } from '../../host/commit/record.ts';
import { HISTORY_PATH } from '../../host/commit/revert-script.ts';
import { combineFacts, defineFact, mapFact } from '../../host/facts/fact.ts';
import type { Operation } from '../../host/operation/operation.ts';
import type { Change } from '../../host/plan/change.ts';
import { type HostPlan, impactOfPlan } from '../../host/plan/document.ts';
import { IMPACTS } from '../../host/plan/impact.ts';
import { isConnectionLost, runHost, type WriterOptions } from '../../host/run-host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { nodeEvent } from '../../kube/node-event.ts';
import { operationsOf } from '../plan/operations.ts';
import type { PlanSigner } from '../plan/plan-signatures.ts';
import { readJsonLines } from './json-lines.ts';
import { MAX_UNDO_RECORDS, type UndoRecord, undoRecordOf, undoRecordPath } from './undo-record.ts';

/** Limits of the journal; the oldest entries are dropped. */
const MAX_ENTRIES = 200;
const MAX_BYTES = 64 * 1024;
/** Limits of one entry. */
const MAX_ITEMS = 40;
const MAX_TEXT = 500;

/** The operator's part of an entry: the same for all hosts of a run. */
export interface RunAttribution {
  /** The id of the run, the same on all its hosts and in its journal. Undefined: given by `hostWriteOptions`. */
  readonly run?: string | undefined;
  /** As the user types it: `apply`, `upgrade node`. */
  readonly command: string;
  readonly reason?: string | undefined;
  /** `id` of the saved plan; absent: not from a saved plan. */
  readonly plan?: string | undefined;
  /** `validity.digest` of the saved plan, which differs between plans of the same content. */
  readonly planDigest?: string | undefined;
  /** `--again`: the plan may be applied to a host that it has changed already. */
  readonly again?: true | undefined;
  readonly signer?: PlanSigner | null | undefined;
}

/** `refused`: the hook before the change failed, and nothing else was run. */
type HistoryEnd = Exclude<HistoryEntry['result'], 'started'>;

const text = z.string();
const json = z.json() as unknown as z.ZodType<Json>;
export const HISTORY_ENTRY = z.object({
  id: text.optional(),
  run: text.optional(),
  time: text,
  operator: text,
  login: text.optional(),
  command: text,
  reason: text.optional(),
  plan: text.optional(),
  planDigest: text.optional(),
  again: z.literal(true).optional(),
  signer: z.object({ fingerprint: text, principal: text }).optional(),
  result: z.enum(['started', 'changed', 'failed', 'refused', 'rolled-back']),
  problems: z.array(text).optional(),
  highestImpact: z.union([z.enum(IMPACTS), z.null()]).optional(),
  fields: z.array(z.object({ field: text, before: json, after: json })),
  changes: z.array(text),
});

/**
 * A change of a host. `id` distinguishes changes (absent: an earlier version of kubeletadm), `operator` is the user and host name of the operator (`alice@laptop`), `login` the user of the
 * host under whose name the run was logged in, `problems` the codes of a failure. Without secrets.
 */
export type HistoryEntry = z.infer<typeof HISTORY_ENTRY>;

/** The name of a change on the command line: the beginning of the id of its run; null: the host has written no id that `--to` accepts. */
export function shortId({ run, id }: Pick<HistoryEntry, 'run' | 'id'>): string | null {
  return /^[0-9a-f]{4,8}/.exec(run ?? id ?? '')?.[0] ?? null;
}

/**
 * The entry of a change; long lists and texts are cut.
 * @param change.plan the planned or applied changes, or the hook of a refused change
 * @param result `started`: the run has not ended, or was killed
 * @param problems codes of a failure
 */
export function historyEntry(
  { id, time, operator, note, plan }: ChangeStart,
  result: HistoryEnd | 'started',
  problems: readonly string[] = [],
): HistoryEntry & { readonly id: string } {
  const { run, command, reason, plan: planId, planDigest, again, signer } = note;
  const fields = plan.phases.flatMap(({ plan: { changes } }) =>
    changes.flatMap((change) => ('fields' in change ? (change.fields ?? []) : [])),
  );
  return {
    id,
    ...present({ run }),
    time: time.toISOString(),
    operator,
    command,
    ...present({ reason: reason && cut(reason), plan: planId, planDigest, again, signer: signer ?? undefined }),
    result,
    ...(problems.length === 0 ? {} : { problems: problems.slice(0, MAX_ITEMS) }),
    highestImpact: impactOfPlan(plan),
    fields: fields.slice(0, MAX_ITEMS).map(({ field, before, after }) => ({ field, before: shortened(before), after: shortened(after) })),
    changes: operationsOf(plan)
      .slice(0, MAX_ITEMS)
      .map(([what]) => cut(what)),
  };
}

function cut(value: string): string {
  return value.length <= MAX_TEXT ? value : `${value.slice(0, MAX_TEXT - 1)}…`;
}

function shortened(value: Json): Json {
  const encoded = JSON.stringify(value);
  return encoded.length <= MAX_TEXT ? value : cut(encoded);
}

/**
 * Adds an entry to the history, or replaces the one with the same id.
 * @param record of the files before and after the change; absent: kept as it is
 */
export function journalOperation(entry: HistoryEntry & { readonly id: string }, isOptional: boolean, record?: UndoRecord): Operation {
  const text = JSON.stringify(entry);
  return {
    kind: 'append-journal',
    path: HISTORY_PATH,
    id: entry.id,
    entry: text,
    maxEntries: MAX_ENTRIES,
    maxBytes: MAX_BYTES,
    isOptional,
    ...(record && { attachment: { path: undoRecordPath(entry.id), content: JSON.stringify(record), maxFiles: MAX_UNDO_RECORDS } }),
  };
}

/** The recorded changes of a host, the oldest first; none without a history. */
export const hostHistory = defineFact({ file: { kind: 'file', path: HISTORY_PATH, content: true } }, ({ file }) =>
  parseHistory(file?.content ?? ''),
);

/**
 * The same, corrected by the last rollback of the host: one at the boot may have found no history to write to, and that of an
 * earlier version does not write to it. The identifier of an entry begins with that of its run on the host, which the rollback has
 * as well.
 */
export const observedHistory = mapFact(combineFacts({ history: hostHistory, record: commitRecord }), ({ history, record }) => {
  if (record?.state !== 'reverted' || record.id === '') return history;
  const isRolledBack = ({ id, result }: HistoryEntry): boolean => result === 'started' && id?.startsWith(`${record.id}-`) === true;
  return history.map((entry): HistoryEntry => (isRolledBack(entry) ? { ...entry, result: 'rolled-back' } : entry));
});

/** Reads the entries of a history, the oldest first. The host controls the text: other lines are ignored. */
export function parseHistory(content: string): readonly HistoryEntry[] {
  return readJsonLines(content, HISTORY_ENTRY).map((entry) => {
    // Unknown to the host.
    const { login, ...rest } = entry;
    return login === '' ? rest : entry;
  });
}

export interface ChangeStart {
  /** The same at the end of the change. */
  readonly id: string;
  readonly note: RunAttribution;
  readonly operator: string;
  readonly time: Date;
  readonly plan: HostPlan;
}

/**
 * The operation that records the start of a change, for the program of the first change: a run that is killed leaves
 * this entry. It never fails a run.
 */
export function recordStart(change: ChangeStart): Operation {
  return journalOperation(historyEntry(change, 'started'), true, undoRecordOf(change.plan));
}

/** Ports and settings for recording the changes of one host. */
interface ChangeRecorder {
  readonly id: string;
  readonly host: Host;
  /** Opens a new connection if that of `host` was lost. */
  readonly connect: () => Promise<Host>;
  readonly writing: WriterOptions;
  readonly note: RunAttribution;
  readonly cluster: Cluster | null;
  /** The Node of the host; null: unknown. */
  readonly node: string | null;
  readonly clock: Clock;
  readonly reporter: Reporter;
}

/**
 * Records a change after it was verified or has failed: in the journal on the host, and as an Event on the Node. A
 * record that cannot be written is a warning and never fails the run. Nothing is recorded for a host without changes.
 * @param whole the applied changes, or the planned ones of a failed run
 * @param error null: the change succeeded
 */
export async function recordChange(recorder: ChangeRecorder, whole: HostPlan, error: AppError | null): Promise<void> {
  if (!whole.phases.some(({ plan: { changes } }) => changes.length > 0)) return;
  const result = resultOf(error);
  const plan = result === 'refused' ? hookBefore(whole) : whole;
  const { host, clock, writing, note, reporter } = recorder;
  const entry = historyEntry({ id: recorder.id, time: clock.now(), operator: writing.owner.name, note, plan }, result, codesOf(error));
  // The record of a change that failed is that of its start: what was planned.
  const record = result === 'changed' ? undoRecordOf(plan) : undefined;
  const written = writeEntry(recorder, entry, record).catch((failure: unknown) => {
    if (!isAppError(failure)) throw failure;
    // The failure of the run already says that another run holds the lock.
    if (isAppError(failure, 'HOST_LOCKED') && isAppError(error, 'HOST_LOCKED')) return;
    const message = `the change is not recorded in ${HISTORY_PATH}: ${failure.message}`;
    reporter.report({ level: 'warning', code: 'HISTORY_NOT_WRITTEN', host: host.name, message });
  });
  await Promise.all([written, announce(recorder, result, entry)]);
}

/** The codes of a failure, each once. */
export function codesOf(error: AppError | null): readonly string[] {
  return error === null ? [] : [...new Set(error.problems.map(({ code }) => code))];
}

/** The result of a change of a host. */
export function resultOf(error: AppError | null): HistoryEnd {
  if (error === null) return 'changed';
  if (error.exitCode === 5) return 'rolled-back';
  return error.exitCode === 3 && error.code === 'HOOK_FAILED' ? 'refused' : 'failed';
}

/** The hook before the change, which is all that a refused run has run. */
function hookBefore(plan: HostPlan): HostPlan {
  const isHook = (change: Change): boolean => change.kind === 'run-hook' && change.hook === 'beforeChange';
  return { ...plan, phases: plan.phases.filter(({ plan: { changes } }) => changes.some(isHook)) };
}

/** Over a new connection if the first one was lost, as after a failure of the network. */
async function writeEntry(
  recorder: ChangeRecorder,
  entry: HistoryEntry & { readonly id: string },
  record: UndoRecord | undefined,
): Promise<void> {
  const operation = journalOperation(entry, false, record);
  try {
    await writeOver(recorder.host, recorder, operation);
  } catch (error) {
    if (!isConnectionLost(error)) throw error;
    const host = await recorder.connect();
    try {
      await writeOver(host, recorder, operation);
    } finally {
      await host.close();
    }
  }
}

/** One program, under the lock of the host: two runs never overwrite each other's entries. */
async function writeOver(connection: Host, { clock, writing }: ChangeRecorder, operation: Operation): Promise<void> {
  const { opening: _, ...lock } = writing;
  const host = runHost(connection, { clock, writing: { ...lock, confirm: null } });
  try {
    await host.perform([operation], { isLast: true });
  } finally {
    await host.end();
  }
}

const REASONS = {
  changed: ['Normal', 'KubeletadmApplied'],
  failed: ['Warning', 'KubeletadmFailed'],
  refused: ['Warning', 'KubeletadmRefused'],
  'rolled-back': ['Warning', 'KubeletadmRolledBack'],
} as const satisfies Record<HistoryEnd, readonly [string, string]>;

/** Most credentials of nodes may not write Events: a failure is only logged. */
async function announce({ cluster, node, clock, reporter, host }: ChangeRecorder, result: HistoryEnd, entry: HistoryEntry): Promise<void> {
  if (cluster === null || node === null) return;
  const [type, reason] = REASONS[result];
  const event = nodeEvent(node, { type, reason, message: eventMessage(entry), component: 'kubeletadm' }, clock.now(), 0);
  try {
    await cluster.create(event);
  } catch (error) {
    if (!isAppError(error)) throw error;
    const message = `no Event was created for Node ${node}: ${error.message}`;
    reporter.report({ level: 'warning', code: 'EVENT_NOT_CREATED', host: host.name, message, verbosity: 1 });
  }
}

/** `alice@laptop: apply (ticket 7): maxPods 110 → 60`. */
function eventMessage({ operator, command, reason, result, fields, changes }: HistoryEntry): string {
  const value = (json: unknown): string => (json === null ? 'unset' : JSON.stringify(json));
  const what =
    fields.length === 0 ? changes.join(', ') : fields.map((one) => `${one.field} ${value(one.before)} → ${value(one.after)}`).join(', ');
  const shown = {
    started: `started; planned: ${what}`,
    changed: what,
    failed: `failed; planned: ${what}`,
    refused: 'nothing was changed, because the hook beforeChange failed',
    'rolled-back': `rolled back; planned: ${what}`,
  }[result];
  return `${operator}: ${command}${reason === undefined ? '' : ` (${reason})`}: ${shown}`;
}
