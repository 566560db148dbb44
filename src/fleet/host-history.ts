import * as z from 'zod';
import type { Json } from '../base/json.ts';
import { type HostPlan, impactOfPlan } from '../host/plan/document.ts';
import { IMPACTS } from '../host/plan/impact.ts';
import { operationsOf } from './operations.ts';
import type { PlanSigner } from './plan-signatures.ts';

/** The journal of a host: one JSON object per line, the oldest first. Readable by root only. */
export const HISTORY_DIRECTORY = '/var/log/kubeletadm';
export const HISTORY_PATH = `${HISTORY_DIRECTORY}/history.jsonl`;

/** Limits of the journal; the oldest entries are dropped. */
const MAX_ENTRIES = 200;
const MAX_BYTES = 64 * 1024;
/** Limits of one entry. */
const MAX_ITEMS = 40;
const MAX_TEXT = 500;

/** The operator's part of an entry: the same for all hosts of a run. */
export interface HistoryNote {
  /** As the user types it: `apply`, `upgrade node`. */
  readonly command: string;
  /** `--reason`. */
  readonly reason?: string | undefined;
  /** `id` of the saved plan; absent: not from a saved plan. */
  readonly plan?: string | undefined;
  /** The verified signer of the plan. */
  readonly signer?: PlanSigner | null | undefined;
}

export type HistoryResult = 'changed' | 'failed' | 'rolled-back';

const text = z.string();
const json = z.json() as unknown as z.ZodType<Json>;
const ENTRY = z.object({
  time: text,
  operator: text,
  login: text.optional(),
  command: text,
  reason: text.optional(),
  plan: text.optional(),
  signer: z.object({ principal: text, fingerprint: text }).optional(),
  result: z.enum(['changed', 'failed', 'rolled-back']),
  problems: z.array(text).optional(),
  highestImpact: z.union([z.enum(IMPACTS), z.null()]).optional(),
  fields: z.array(z.object({ field: text, before: json, after: json })),
  changes: z.array(text),
});

/**
 * A change of a host. `operator` is the user and host name of the operator (`alice@laptop`), `login` the user of the
 * host under whose name the run was logged in, `problems` the codes of a failure. Without secrets.
 */
export type HistoryEntry = z.infer<typeof ENTRY>;

/** The change of a host, as far as the run knows it. */
export interface RecordedChange {
  readonly time: Date;
  readonly operator: string;
  /** Null: unknown. */
  readonly login: string | null;
  readonly note: HistoryNote;
  readonly result: HistoryResult;
  /** Codes of a failure. */
  readonly problems: readonly string[];
  /** The applied changes, or the planned ones of a failed run. */
  readonly plan: HostPlan;
}

/** The entry of a change; long lists and texts are cut. */
export function historyEntry({ time, operator, login, note, result, problems, plan }: RecordedChange): HistoryEntry {
  const { command, reason, plan: id, signer } = note;
  const fields = plan.phases.flatMap(({ plan: { changes } }) =>
    changes.flatMap((change) => ('fields' in change ? (change.fields ?? []) : [])),
  );
  return {
    time: time.toISOString(),
    operator,
    ...(login === null ? {} : { login }),
    command,
    ...(reason === undefined ? {} : { reason: cut(reason) }),
    ...(id === undefined ? {} : { plan: id }),
    ...(signer === undefined || signer === null ? {} : { signer }),
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
 * Adds an entry to the text of a journal. Lines that are not entries, and the oldest entries above the limits, are
 * dropped.
 */
export function appendHistory(content: string, entry: HistoryEntry): string {
  const lines = [...parseHistory(content), entry].slice(-MAX_ENTRIES).map((one) => `${JSON.stringify(one)}\n`);
  let bytes = 0;
  const first = lines.findLastIndex((line) => {
    bytes += Buffer.byteLength(line);
    return bytes > MAX_BYTES;
  });
  return lines.slice(first + 1).join('');
}

/** Reads the entries of a journal, the oldest first. The host controls the text: other lines are ignored. */
export function parseHistory(content: string): readonly HistoryEntry[] {
  return content.split('\n').flatMap((line) => {
    const entry = ENTRY.safeParse(parseJson(line));
    return entry.success ? [entry.data] : [];
  });
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
