import { AppError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { definePhase } from '../../host/phase.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { type DesiredFile, diffFile, notAFile, previousFile } from '../../host/plan/diff-file.ts';

/** Files as they are after an undo, by path; null: the file does not exist. */
export type RestoredFiles = ReadonlyMap<string, (Omit<DesiredFile, 'path'> & { readonly content: string }) | null>;

/** Restores files that are not of the kubelet; a file that did not exist is removed. */
export const restoreFiles = definePhase<{ readonly files: RestoredFiles }, ReadonlyMap<string, FileFact | null>>({
  name: 'restore-files',
  short: 'Restore files that are not of the kubelet',
  observe: ({ host, signal }, { files }) => observe(host, fileFacts([...files.keys()]), signal),
  plan: (found, { files }) => {
    const changes = [...files].flatMap(([path, file]): readonly HostChange[] => {
      const present = found.get(path) ?? null;
      const change = file && diffFile(present, { path, ...file });
      if (file !== null) return change === null ? [] : [change];
      if (present === null) return [];
      const problem = notAFile(path, present);
      if (problem !== null) throw new AppError(problem, { exitCode: 3 });
      return [{ kind: 'remove-file', path, before: previousFile(present), reason: 'the file did not exist before' }];
    });
    return changes.length === 0 ? { changes, noop: 'the other files are unchanged' } : { changes };
  },
});
