import * as z from 'zod';
import { HISTORY_ENTRY, type HistoryEntry } from './host-history.ts';
import { readJsonLines } from './json-lines.ts';

const text = z.string();
const texts = z.array(text).readonly();
const ENTRY = z.discriminatedUnion('event', [
  /**
   * `subject` identifies the fleet file or plan: equal for all runs over the same one; `fleet` is the fleet file. `id` is also in the
   * history of each changed host. Journals of earlier versions have neither `id` nor `operator`.
   */
  z.object({
    event: z.literal('run-started'),
    id: z.exactOptional(text),
    time: text,
    operator: z.exactOptional(text),
    command: text,
    reason: z.exactOptional(text),
    subject: text,
    fleet: z.exactOptional(text),
    hosts: texts,
  }),
  /** The host may be changed from now on. */
  z.object({ event: z.literal('host-began'), time: text, host: text }),
  /** `change`: the entry in the history of the host, if the run has changed it. */
  z.object({
    event: z.literal('host-ended'),
    time: text,
    host: text,
    status: text,
    problems: z.exactOptional(texts),
    change: z.exactOptional(HISTORY_ENTRY),
  }),
  /** A gate between batches, or a maintenance window. */
  z.object({
    event: z.literal('gate-ended'),
    time: text,
    gate: text,
    kind: text,
    batch: z.number(),
    isPassed: z.boolean(),
    answer: text,
    output: z.exactOptional(text),
    attempts: z.number(),
    durationMs: z.number(),
  }),
  z.object({ event: z.literal('run-ended'), time: text, exitCode: z.number() }),
]);

/** A line of the journal of a fleet run, written before the run continues. */
export type JournalEntry = Readonly<z.infer<typeof ENTRY>>;

export function encodeEntry(entry: JournalEntry): string {
  return `${JSON.stringify(entry)}\n`;
}

export interface JournaledRun {
  /** Undefined: written by an earlier version. */
  readonly id?: string | undefined;
  readonly operator?: string | undefined;
  readonly reason?: string | undefined;
  /** The fleet file; undefined: the subject, or unknown. */
  readonly fleet?: string | undefined;
  readonly startedAt: string;
  /** `apply` or `reset`. */
  readonly command: string;
  readonly subject: string;
  /** In run order. */
  readonly hosts: readonly string[];
  /** Status of each host, as far as written: `began` if its end is unknown. */
  readonly statuses: ReadonlyMap<string, string>;
  /** When each host ended, as far as written. */
  readonly endings: ReadonlyMap<string, string>;
  /** What the run changed on each host, as far as written. */
  readonly changes: ReadonlyMap<string, HistoryEntry>;
  /** False: interrupted or crashed. */
  readonly isFinished: boolean;
  /** Null: not finished. */
  readonly exitCode: number | null;
}

/**
 * Reads a journal. A truncated last line, after a crash of the host or the process, is ignored.
 * @returns null if the content is not a journal
 */
export function readJournal(content: string): JournaledRun | null {
  const entries = readJsonLines(content, ENTRY);
  const [first] = entries;
  if (first?.event !== 'run-started') return null;
  const statuses = new Map<string, string>();
  const endings = new Map<string, string>();
  const changes = new Map<string, HistoryEntry>();
  let exitCode: number | null = null;
  for (const entry of entries) {
    if (entry.event === 'host-began') statuses.set(entry.host, 'began');
    if (entry.event === 'run-ended') exitCode = entry.exitCode;
    if (entry.event !== 'host-ended') continue;
    statuses.set(entry.host, entry.status);
    endings.set(entry.host, entry.time);
    if (entry.change !== undefined) changes.set(entry.host, entry.change);
  }
  const { event: _, time, ...run } = first;
  return { ...run, startedAt: time, statuses, endings, changes, isFinished: exitCode !== null, exitCode };
}

const FINE: ReadonlySet<string> = new Set(['changed', 'unchanged']);

/**
 * The hosts that a command has to retry: the last run of the command that included the host failed, refused, did not
 * reach or did not start it, or its result is unknown. A later success clears a host, also that of another command: a
 * host that was reset after a failed `apply` is not joined again.
 * @param runs all runs over the same fleet file or plan, oldest first
 * @param command `apply` or `reset`
 * @returns in the order in which the hosts failed
 */
export function hostsToRetry(runs: readonly JournaledRun[], command: string): readonly string[] {
  const left = new Set<string>();
  for (const run of runs)
    for (const host of run.hosts) {
      if (FINE.has(run.statuses.get(host) ?? '')) left.delete(host);
      else if (run.command === command) left.add(host);
    }
  return [...left];
}

export interface RunJournal {
  readonly path: string;
  /** Resolves when the entry is synced to disk and survives a power failure. */
  write(entry: JournalEntry): Promise<void>;
  close(): Promise<void>;
}

/** Journals of fleet runs, one file per run, in the user's state directory. */
export interface RunJournals {
  /** The directory of the journals, for messages. */
  readonly directory: string;
  /**
   * Creates a journal.
   * @throws AppError JOURNAL_UNWRITABLE
   */
  begin(started: Date): Promise<RunJournal>;
  /** All runs whose start matches, oldest first. */
  all(matches: (start: JournaledRun) => boolean): Promise<readonly JournaledRun[]>;
}
