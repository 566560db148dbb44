import * as z from 'zod';

/** What a run over a fleet writes down, one line each, before it goes on. */
export type JournalEntry =
  | {
      readonly event: 'run-started';
      readonly time: string;
      readonly command: string;
      /** What the run is about: the same in runs over the same file or plan. */
      readonly subject: string;
      readonly hosts: readonly string[];
      /** Hosts that an earlier run left unfinished and that this one does not include. */
      readonly remaining?: readonly string[];
    }
  /** From here on the host may be changed. */
  | { readonly event: 'host-began'; readonly time: string; readonly host: string }
  | {
      readonly event: 'host-ended';
      readonly time: string;
      readonly host: string;
      readonly status: string;
      readonly problems?: readonly string[];
    }
  | { readonly event: 'run-ended'; readonly time: string; readonly exitCode: number };

const text = z.string();
const ENTRY = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('run-started'),
    time: text,
    command: text,
    subject: text,
    hosts: z.array(text),
    remaining: z.array(text).optional(),
  }),
  z.object({ event: z.literal('host-began'), time: text, host: text }),
  z.object({ event: z.literal('host-ended'), time: text, host: text, status: text, problems: z.array(text).optional() }),
  z.object({ event: z.literal('run-ended'), time: text, exitCode: z.number() }),
]);

/** An entry as its line. */
export function encodeEntry(entry: JournalEntry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** A run as its journal tells it. */
export interface JournaledRun {
  readonly startedAt: string;
  readonly subject: string;
  /** In the order of the run. */
  readonly hosts: readonly string[];
  /** Hosts that an earlier run left unfinished and that this one did not include. */
  readonly remaining: readonly string[];
  /** What became of each host, as far as it was written: `began` for one whose end is not known. */
  readonly statuses: ReadonlyMap<string, string>;
  /** False: it was interrupted, or its process died. */
  readonly isFinished: boolean;
  /** Null: not finished. */
  readonly exitCode: number | null;
}

/**
 * Reads a journal. A last line that was cut off when the machine or the process died does not count.
 * @returns null when it is none
 */
export function readJournal(content: string): JournaledRun | null {
  const entries = content.split('\n').flatMap((line) => {
    const entry = ENTRY.safeParse(parse(line));
    return entry.success ? [entry.data] : [];
  });
  const [first] = entries;
  if (first?.event !== 'run-started') return null;
  const statuses = new Map<string, string>();
  let exitCode: number | null = null;
  for (const entry of entries) {
    if (entry.event === 'host-began') statuses.set(entry.host, 'began');
    if (entry.event === 'run-ended') exitCode = entry.exitCode;
    if (entry.event === 'host-ended') statuses.set(entry.host, entry.status);
  }
  const { time, subject, hosts, remaining = [] } = first;
  return { startedAt: time, subject, hosts, remaining, statuses, isFinished: exitCode !== null, exitCode };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

const FINE: ReadonlySet<string> = new Set(['changed', 'unchanged']);

/** The hosts of a run that are not as they should be: failed, refused, not reached, not begun, or of an unknown end; and those that earlier runs left. */
export function hostsToRetry({ hosts, remaining, statuses }: JournaledRun): readonly string[] {
  return [...hosts.filter((host) => !FINE.has(statuses.get(host) ?? '')), ...remaining];
}
