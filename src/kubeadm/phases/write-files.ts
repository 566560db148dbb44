import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { observe } from '../../host/observe.ts';
import { definePhase, type Phase } from '../../host/phase.ts';
import { type DesiredFile, diffDirectory, diffFile } from '../../host/plan/diff-file.ts';

export interface WriteFilesInput {
  /** In the order they are written. */
  readonly files: readonly DesiredFile[];
  /** Made before anything is written, when missing. */
  readonly directories: readonly { readonly path: string; readonly mode: number }[];
  /** False for a user who may not chown (an unprivileged `--rootfs`). */
  readonly mayChown: boolean;
  /** Why there is nothing to write, where that is so by the configuration (e.g. external etcd); a clause. */
  readonly skipped?: string;
}

/**
 * A phase that writes files and nothing else: certificates, kubeconfigs, static pods. What the files hold was decided before, from what is on the host:
 * the same again plans nothing.
 * @param noop what is said when all is as wanted, as a clause
 */
export function writeFilesPhase(name: string, short: string, noop: string): Phase<WriteFilesInput> {
  return definePhase<WriteFilesInput, ReadonlyMap<string, FileFact | null>>({
    name,
    short,
    writesFilesOnly: true,
    observe: ({ host, signal }, { files, directories }) =>
      observe(host, fileFacts([...directories, ...files].map(({ path }) => path)), signal),
    plan: (found, { files, directories, mayChown, skipped }) => {
      if (skipped !== undefined) return { changes: [], noop: skipped };
      const changes = [
        ...directories.map(({ path, mode }) => diffDirectory(found.get(path) ?? null, path, mode)),
        ...files.map((file) => diffFile(found.get(file.path) ?? null, file, { mayChown })),
      ].filter((change) => change !== null);
      return changes.length === 0 ? { changes, noop } : { changes };
    },
  });
}
