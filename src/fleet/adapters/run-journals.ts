import { mkdir, open, readdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { syncPath } from '../../base/adapters/sync-path.ts';
import { AppError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/system-error.ts';
import type { RunJournal, RunJournals } from '../history/journal.ts';
import { encodeEntry, type JournaledRun, readJournal } from '../history/journal.ts';

/**
 * Journals in `$XDG_STATE_HOME/kubeletadm/runs`, by default below `~/.local/state`. Only the owner can read
 * the files.
 * @param env an absolute XDG_STATE_HOME is honoured, as specified by XDG
 */
export function localRunJournals(env: Readonly<Record<string, string | undefined>>): RunJournals {
  const { XDG_STATE_HOME: state = '' } = env;
  const directory = join(isAbsolute(state) ? state : join(env.HOME ?? homedir(), '.local', 'state'), 'kubeletadm', 'runs');
  return {
    directory,
    begin: (started) => begin(directory, started),
    all: async (matches) => {
      const names = await readdir(directory).catch(() => []);
      const runs: JournaledRun[] = [];
      // The names begin with the start time. One file at a time: a directory of many years has many files.
      for (const name of names.filter((each) => each.endsWith('.jsonl')).toSorted()) {
        const content = await readFile(join(directory, name), 'utf8').catch(() => '');
        // The first line names the subject: journals of other files are not read further.
        const start = readJournal(content.slice(0, content.indexOf('\n') + 1));
        if (start === null || !matches(start)) continue;
        const run = readJournal(content);
        if (run !== null) runs.push(run);
      }
      return runs;
    },
  };
}

async function begin(directory: string, started: Date): Promise<RunJournal> {
  const path = join(directory, `${started.toISOString().replace(/[:.]/g, '-')}-${process.pid}.jsonl`);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = await open(path, 'ax', 0o600);
    await syncPath(directory);
    return journalOver(path, file);
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

/**
 * Entries that arrive during a write are written together next: a thousand hosts do not cause a thousand
 * writes.
 */
function journalOver(path: string, file: Awaited<ReturnType<typeof open>>): RunJournal {
  let pending = '';
  let next: Promise<void> | null = null;
  let last: Promise<void> = Promise.resolve();
  const flush = async (): Promise<void> => {
    const text = pending;
    pending = '';
    next = null;
    try {
      await file.appendFile(text);
      await file.datasync();
    } catch (cause) {
      throw unwritable(path, cause);
    }
  };
  return {
    path,
    write: (entry) => {
      pending += encodeEntry(entry);
      if (next === null) {
        next = last.then(flush, flush);
        last = next;
      }
      return next;
    },
    close: async () => {
      await last.catch(() => undefined);
      await file.close();
    },
  };
}

function unwritable(path: string, cause: unknown): AppError {
  const message = `cannot record the progress of the run in ${path}: ${systemErrorText(cause)}`;
  const hint = 'Free disk space, or set the environment variable XDG_STATE_HOME to another directory';
  return new AppError({ code: 'JOURNAL_UNWRITABLE', message, hint }, { exitCode: 2, cause });
}
