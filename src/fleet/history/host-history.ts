import * as z from 'zod';
import type { Json } from '../../base/json.ts';
import { defineFact } from '../../host/facts/fact.ts';
import type { Operation } from '../../host/operation/operation.ts';
import { type HostPlan, impactOfPlan } from '../../host/plan/document.ts';
import { IMPACTS } from '../../host/plan/impact.ts';
import { operationsOf } from '../plan/operations.ts';
import type { PlanSigner } from '../plan/plan-signatures.ts';

/** The journal of a host: one JSON object per line, the oldest first. Readable by root only. */
export const HISTORY_PATH = '/var/log/kubeletadm/history.jsonl';

/** Limits of the journal; the oldest entries are dropped. */
const MAX_ENTRIES = 200;
const MAX_BYTES = 64 * 1024;
/** Limits of one entry. */
const MAX_ITEMS = 40;
const MAX_TEXT = 500;

/** The operator's part of an entry: the same for all hosts of a run. */
export interface RunAttribution {
  /** As the user types it: `apply`, `upgrade node`. */
  readonly command: string;
  /** `--reason`. */
  readonly reason?: string | undefined;
  /** `id` of the saved plan; absent: not from a saved plan. */
  readonly plan?: string | undefined;
  /** `validity.digest` of the saved plan, which differs between plans of the same content. */
  readonly planDigest?: string | undefined;
  /** `--again`: the plan may be applied to a host that it has changed already. */
  readonly again?: true | undefined;
  /** The verified signer of the plan. */
  readonly signer?: PlanSigner | null | undefined;
}

/** `refused`: the hook before the change failed, and nothing else was run. */
export type HistoryEnd = 'changed' | 'failed' | 'refused' | 'rolled-back';

/** `started`: the run has not ended, or was killed. */
export type HistoryResult = HistoryEnd | 'started';

const text = z.string();
const json = z.json() as unknown as z.ZodType<Json>;
const ENTRY = z.object({
  id: text.optional(),
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
export type HistoryEntry = z.infer<typeof ENTRY>;

/** The change of a host, as far as the run knows it. */
interface RecordedChange {
  /** The same for the start and the end of a change. */
  readonly id: string;
  readonly time: Date;
  readonly operator: string;
  readonly note: RunAttribution;
  readonly result: HistoryResult;
  /** Codes of a failure. */
  readonly problems: readonly string[];
  /** The applied changes, the planned ones of a failed run, or the hook of a refused one. */
  readonly plan: HostPlan;
}

/** The entry of a change; long lists and texts are cut. */
export function historyEntry({ id, time, operator, note, result, problems, plan }: RecordedChange): HistoryEntry & { readonly id: string } {
  const { command, reason, plan: planId, planDigest, again, signer } = note;
  const fields = plan.phases.flatMap(({ plan: { changes } }) =>
    changes.flatMap((change) => ('fields' in change ? (change.fields ?? []) : [])),
  );
  return {
    id,
    time: time.toISOString(),
    operator,
    command,
    ...(reason === undefined ? {} : { reason: cut(reason) }),
    ...(planId === undefined ? {} : { plan: planId }),
    ...(planDigest === undefined ? {} : { planDigest }),
    ...(again === undefined ? {} : { again }),
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

/** Adds an entry to the journal, or replaces the one with the same id. */
export function journalOperation(
  entry: HistoryEntry & { readonly id: string },
  { isOptional }: { readonly isOptional: boolean },
): Operation {
  const text = JSON.stringify(entry);
  return {
    kind: 'append-journal',
    path: HISTORY_PATH,
    id: entry.id,
    entry: text,
    maxEntries: MAX_ENTRIES,
    maxBytes: MAX_BYTES,
    isOptional,
  };
}

/** The recorded changes of a host, the oldest first; none without a journal. */
export const hostHistory = defineFact({ file: { kind: 'file', path: HISTORY_PATH, content: true } }, ({ file }) =>
  parseHistory(file?.content ?? ''),
);

/** Reads the entries of a journal, the oldest first. The host controls the text: other lines are ignored. */
export function parseHistory(content: string): readonly HistoryEntry[] {
  return content.split('\n').flatMap((line) => {
    const entry = ENTRY.safeParse(parseJson(line));
    if (!entry.success) return [];
    // Unknown to the host.
    const { login, ...rest } = entry.data;
    return [login === '' ? rest : entry.data];
  });
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
