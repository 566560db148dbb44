import { present } from '../../base/present.ts';
import type { HistoryEntry } from './host-history.ts';
import type { JournaledRun } from './journal.ts';

/** A change of a host, or the part of a run that did not change the host. */
export interface RecordedChange extends Omit<HistoryEntry, 'result'> {
  /** Of a run that did not change the host, the status of the host in the run: `unreachable`. */
  readonly result: string;
  /** Where it is recorded. */
  readonly recordedIn: readonly ('host' | 'journal')[];
}

/** Results of hosts that say nothing about the host. */
const NO_EVENT: ReadonlySet<string> = new Set(['unchanged', 'pending']);

/**
 * Merges the history of a host with the journals of runs, so that each run appears once.
 * @param history of the host; empty: no change is recorded, or the host could not be read
 * @param runs journals of one fleet file. Runs of earlier versions have no id, and their hosts are not merged: they appear only
 * if the history of the host has no change of the same command at the time of the run
 * @returns the oldest first
 */
export function mergeHistory(host: string, history: readonly HistoryEntry[], runs: readonly JournaledRun[]): readonly RecordedChange[] {
  const journaled = runs.flatMap((run) => {
    const change = changeOf(host, run);
    return change === null ? [] : [{ run, change }];
  });
  const found = history.map((entry): RecordedChange => {
    const own = journaled.find(({ run }) => isOfRun(entry, run, host));
    if (own === undefined) return { ...entry, recordedIn: ['host'] };
    // The end of a change may be missing on the host, whose connection was lost.
    const isEndless = entry.result === 'started' && own.run.changes.has(host);
    return { ...entry, result: isEndless ? own.change.result : entry.result, recordedIn: ['host', 'journal'] };
  });
  const others = journaled.filter(({ run }) => !history.some((entry) => isOfRun(entry, run, host))).map(({ change }) => change);
  return [...found, ...others].toSorted((a, b) => a.time.localeCompare(b.time));
}

function isOfRun(entry: HistoryEntry, { id, command, startedAt, endings }: JournaledRun, host: string): boolean {
  if (entry.run !== undefined || id !== undefined) return entry.run === id;
  const end = endings.get(host);
  return entry.command === command && entry.time >= startedAt && (end === undefined || entry.time <= end);
}

/** Null: the run did not include the host, or found it unchanged. */
function changeOf(host: string, run: JournaledRun): RecordedChange | null {
  const status = run.statuses.get(host);
  if (status === undefined || NO_EVENT.has(status)) return null;
  const change = run.changes.get(host);
  const about = {
    ...present({ run: run.id, reason: run.reason }),
    time: run.startedAt,
    operator: run.operator ?? '-',
    command: run.command,
  };
  const entry = change ?? { ...about, fields: [], changes: [] };
  return { ...entry, result: status === 'began' ? 'started' : status, recordedIn: ['journal'] };
}
