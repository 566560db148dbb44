import type { JournalEntry, JournaledRun } from './journal.ts';

/** The journal of a run in progress. */
export interface RunJournal {
  /** Path of the journal. */
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
  /** All runs with this subject, oldest first. */
  all(subject: string): Promise<readonly JournaledRun[]>;
}
