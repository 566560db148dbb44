import type { HostChange } from './change.ts';

/**
 * Undoes file changes in reverse order; the caller handles restarts and reloads. Created directories, and
 * large files that replaced others (`keep`), remain.
 */
export function revertChanges(changes: readonly HostChange[]): readonly HostChange[] {
  return changes.toReversed().flatMap((change): readonly HostChange[] => {
    const reason = 'rolling back to the previous configuration';
    if (change.kind === 'write-file') {
      if (change.before === null) return [{ kind: 'remove-file', path: change.path, before: null, reason }];
      return [{ ...change, ...change.before, action: 'update', before: null, reason }];
    }
    if (change.kind === 'put-file' || change.kind === 'upload-file')
      return change.keep === true ? [] : [{ kind: 'remove-file', path: change.path, before: null, reason }];
    if (change.kind === 'move-file') return [{ kind: 'move-file', path: change.to, to: change.path, reason }];
    if (change.kind === 'remove-file' && change.before !== null) {
      return [{ kind: 'write-file', path: change.path, ...change.before, action: 'create', before: null, reason }];
    }
    return [];
  });
}
