import type { HostChange } from './change.ts';

/**
 * What undoes changes of files, last one first; restarts and reloads are the caller's business. Directories that were made stay: they are empty
 * or hold what somebody else put there.
 */
export function revertChanges(changes: readonly HostChange[]): readonly HostChange[] {
  return changes.toReversed().flatMap((change): readonly HostChange[] => {
    const reason = 'rolling back to the previous configuration';
    if (change.kind === 'write-file') {
      if (change.before === null) return [{ kind: 'remove-file', path: change.path, before: null, reason }];
      return [{ ...change, ...change.before, action: 'update', before: null, reason }];
    }
    if (change.kind === 'put-file') return [{ kind: 'remove-file', path: change.path, before: null, reason }];
    if (change.kind === 'move-file') return [{ kind: 'move-file', path: change.to, to: change.path, reason }];
    if (change.kind === 'remove-file' && change.before !== null) {
      return [{ kind: 'write-file', path: change.path, ...change.before, action: 'create', before: null, reason }];
    }
    return [];
  });
}
