import type { HostChange } from '../plan/change.ts';

/** The state to save so that changes can be rolled back. */
export interface Checkpoint {
  readonly paths: readonly string[];
  readonly units: readonly string[];
  readonly reload: boolean;
}

/**
 * The state of a host to save before these changes.
 * @returns null when files and units are not sufficient for a rollback: something is emptied, unmounted,
 *   installed or removed
 */
export function checkpointOf(changes: readonly HostChange[]): Checkpoint | null {
  const paths: string[] = [];
  const units: string[] = [];
  let reload = false;
  for (const change of changes) {
    switch (change.kind) {
      case 'write-file':
      case 'put-file':
      case 'make-directory':
      case 'remove-file':
        paths.push(change.path);
        break;
      case 'move-file':
        paths.push(change.path, change.to);
        break;
      case 'enable-unit':
      case 'restart-unit':
      case 'stop-unit':
      case 'start-unit':
        units.push(change.unit);
        break;
      case 'daemon-reload':
        reload = true;
        break;
      case 'confirm-commit':
      case 'pull-image':
      case 'require-directory':
        break;
      case 'upload-file':
      case 'import-images':
      case 'copy-directory':
      case 'empty-directory':
      case 'remove-directory':
      case 'remove-empty-directory':
      case 'unmount-below':
      case 'remove-pods':
      case 'install-packages':
      case 'hold-packages':
      case 'download-file':
      case 'extract-archive':
      case 'load-module':
      case 'set-sysctl':
      case 'turn-off-swap':
        return null;
    }
  }
  // Each line of the checkpoint list is one path.
  if (paths.some((path) => path.includes('\n'))) return null;
  return { paths: [...new Set(paths)], units: [...new Set(units)], reload };
}
