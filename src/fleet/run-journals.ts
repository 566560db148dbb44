import type { JournalEntry, JournaledRun } from './journal.ts';

/** A run being written down. */
export interface RunJournal {
  /** Where it is kept. */
  readonly path: string;
  /** Resolves when the entry is on the disk: it is there after a power cut. */
  write(entry: JournalEntry): Promise<void>;
  close(): Promise<void>;
}

/** What is kept of runs over fleets, one file a run, in the state directory of the user. */
export interface RunJournals {
  /** The directory of the journals, for messages. */
  readonly directory: string;
  /**
   * Begins a journal.
   * @throws AppError JOURNAL_UNWRITABLE
   */
  begin(started: Date): Promise<RunJournal>;
  /** The last run that was about this; null when there was none. */
  latest(subject: string): Promise<JournaledRun | null>;
}
