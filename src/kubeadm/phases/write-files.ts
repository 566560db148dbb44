import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { type DefinedPhase, definePhase } from '../../host/phase.ts';
import { type DesiredFile, diffDirectory, diffFile } from '../../host/plan/diff-file.ts';

export interface WriteFilesInput {
  readonly files: readonly DesiredFile[];
  /** Directories to create before the files are written. */
  readonly directories: readonly { readonly path: string; readonly mode: number }[];
  /** False for a user without permission to chown (an unprivileged `--rootfs`). */
  readonly mayChown: boolean;
  /** Why no file is written because of the configuration (e.g. external etcd); a clause. Null: it goes without saying. */
  readonly skipped?: string | null;
}

/**
 * Creates a phase that only writes files: certificates, kubeconfigs, static Pods. Their content was decided
 * before from the state of the host, so identical files plan no changes.
 * @param noop reported when all files are unchanged, as a clause
 */
export function writeFilesPhase(name: string, short: string, noop: string): DefinedPhase<WriteFilesInput> {
  return definePhase<WriteFilesInput, ReadonlyMap<string, FileFact | null>>({
    name,
    short,
    writesFilesOnly: true,
    observe: ({ host, signal }, { files, directories }) =>
      observe(host, fileFacts([...directories, ...files].map(({ path }) => path)), signal),
    plan: (found, { files, directories, mayChown, skipped }) => {
      if (skipped !== undefined) return { changes: [], ...(skipped !== null && { noop: skipped }) };
      const changes = [
        ...directories.map(({ path, mode }) => diffDirectory(found.get(path) ?? null, path, mode)),
        ...files.map((file) => diffFile(found.get(file.path) ?? null, file, { mayChown })),
      ].filter((change) => change !== null);
      return changes.length === 0 ? { changes, noop } : { changes };
    },
  });
}
