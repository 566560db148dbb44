import * as z from 'zod';
import { parseJson } from '../../base/json.ts';
import { type ConfigSource, describeSource, parseSourceArgument, sameSource } from '../../kubelet/layers/config-source.ts';

/**
 * Node annotation with the last assignments of the Node, as JSON, written together with each assignment. A hint
 * only: the node itself can write it.
 */
export const CONFIG_HISTORY_ANNOTATION = 'kubeletadm.dev/config-history';

/** Limits of the annotation; the oldest assignments are dropped. */
const MAX_RECORDS = 10;
const MAX_TEXT = 200;
/** A longer annotation was not written by kubeletadm. */
const MAX_LENGTH = 64 * 1024;

const LOCAL = 'local';

const ASSIGNED = z
  .object({ source: z.string(), sha256: z.string().optional() })
  .transform(({ source: text, sha256 = null }, context): RecordedAssignment => {
    if (text === LOCAL) return { source: null, sha256: null };
    const { source, issue } = parseSourceArgument(text);
    if (issue !== null) context.addIssue(issue);
    return { source, sha256 };
  });

const RECORD = z.object({
  id: z.string().regex(/^[0-9a-f]{8,32}$/),
  at: z.iso.datetime(),
  by: z.string().max(MAX_TEXT),
  reason: z.string().max(MAX_TEXT).optional(),
  command: z.enum(['assign', 'reset', 'undo']),
  /** The run whose assignment an undo reverts. */
  undoes: z.string().optional(),
  from: ASSIGNED,
  to: ASSIGNED,
});

/** The assignment of a Node at one time. */
export interface RecordedAssignment {
  /** Null: the local configuration. */
  readonly source: ConfigSource | null;
  /** Of the content of the ConfigMap; null: unknown, or the local configuration. */
  readonly sha256: string | null;
}

/** One change of a Node's assignment by a command with this id. */
export type AssignmentRecord = z.infer<typeof RECORD>;

/** The recorded assignments of a Node, the oldest first. Records that kubeletadm did not write are dropped. */
export function parseAssignmentHistory(annotation: string | undefined): readonly AssignmentRecord[] {
  const found = annotation === undefined || annotation.length > MAX_LENGTH ? null : parseJson(annotation);
  return Array.isArray(found) ? found.flatMap((one) => RECORD.safeParse(one).data ?? []).slice(-MAX_RECORDS) : [];
}

export function formatAssignmentHistory(records: readonly AssignmentRecord[]): string {
  return JSON.stringify(
    records.slice(-MAX_RECORDS).map(({ by, reason, from, to, ...record }) => ({
      ...record,
      by: by.slice(0, MAX_TEXT),
      reason: reason?.slice(0, MAX_TEXT),
      from: formatAssigned(from),
      to: formatAssigned(to),
    })),
  );
}

function formatAssigned({ source, sha256 }: RecordedAssignment) {
  return { source: source === null ? LOCAL : describeSource(source), sha256: sha256 ?? undefined };
}

/**
 * The history after an assignment. The revert of a failed rollout removes the record of the assignment that it
 * reverts: the Node is as before the rollout.
 */
export function withRecord(
  history: readonly AssignmentRecord[],
  record: AssignmentRecord,
  { isRevert }: { readonly isRevert: boolean },
): readonly AssignmentRecord[] {
  const last = history.at(-1);
  const isReverted = last !== undefined && sameSource(last.to.source, record.from.source) && sameSource(last.from.source, record.to.source);
  return isRevert && isReverted ? history.slice(0, -1) : [...history, record];
}

/** The name of a run on the command line. */
export function shortRunId({ id }: Pick<AssignmentRecord, 'id'>): string {
  return id.slice(0, 8);
}

/** `assign of alice@laptop at 2026-03-01T12:00:00Z (0a1b2c3d)`. */
export function describeRecord(record: AssignmentRecord): string {
  return `${record.command} of ${record.by} at ${record.at.slice(0, 19)}Z (${shortRunId(record)})`;
}

/** The ConfigMap, or `the local configuration`. */
export function describeAssignment(source: ConfigSource | null): string {
  return source === null ? 'the local configuration' : describeSource(source);
}
