import type { SensitiveText } from '../../base/text/secret.ts';
import type { LockRequest, RevertRequest } from '../commit/requests.ts';
import type { PackageManager } from '../install/package-facts.ts';
import type { LargeFile } from './large-file.ts';

/** One step that changes a host. What each kind does is in `OPERATION_KINDS`. */
export type Operation = FileOperation | CommandOperation | HoldOperation;

/** The operations of one or several kinds. */
export type OperationOf<K extends Operation['kind']> = Extract<Operation, { readonly kind: K }>;

/**
 * A step of the file system. `write-file` replaces atomically: temporary name in the same directory, mode and owner, fsync, rename, fsync of
 * the directory; a symbolic link is followed, missing parents are made (0755).
 */
export type FileOperation =
  | {
      readonly kind: 'write-file';
      readonly path: string;
      readonly mode: number;
      readonly owner: string;
      readonly content: string | SensitiveText;
    }
  /**
   * As `write-file`, for what is large: it is sent in programs of its own, and takes its place when all of it has come with the right hash. The name of a program
   * tells its content: whatever is at that path is replaced.
   */
  | { readonly kind: 'put-file'; readonly path: string; readonly mode: number; readonly owner: string; readonly content: LargeFile }
  | { readonly kind: 'make-directory'; readonly path: string; readonly mode: number; readonly owner: string }
  | { readonly kind: 'remove-file'; readonly path: string }
  /** Renames within one directory tree; nothing is done when there is nothing at `path`. A symbolic link is moved itself. */
  | { readonly kind: 'move-file'; readonly path: string; readonly to: string }
  | { readonly kind: 'empty-directory'; readonly path: string }
  /** With all that is in it. Refused while something is mounted below it; nothing is done where there is none. */
  | { readonly kind: 'remove-directory'; readonly path: string }
  /** Left where something is in it. */
  | { readonly kind: 'remove-empty-directory'; readonly path: string }
  | { readonly kind: 'unmount-below'; readonly path: string; readonly flags: readonly string[] };

/** A command of the host. */
export interface RunCommand {
  readonly kind: 'run';
  readonly argv: readonly string[];
  /** Default: 0 alone. */
  readonly okExit?: readonly number[];
  /** Names it in messages; default: the argv. */
  readonly what?: string;
}

/** A step for which a command of the host is run: `commandOf` gives it. */
export type CommandOperation =
  | RunCommand
  /** `mayStay`: pods that cannot be removed are no failure. */
  | { readonly kind: 'remove-pods'; readonly criSocket: string; readonly mayStay?: true }
  /** The container runtime fetches an image; one that is there is fetched again. */
  | { readonly kind: 'pull-image'; readonly image: string; readonly criSocket: string }
  | { readonly kind: 'daemon-reload' }
  | { readonly kind: 'enable-unit'; readonly unit: string }
  | { readonly kind: 'restart-unit'; readonly unit: string }
  | { readonly kind: 'stop-unit'; readonly unit: string }
  /** Nothing is done where it runs. */
  | { readonly kind: 'start-unit'; readonly unit: string }
  /** `packages` as the package manager takes them (`kubelet=1.36.*`); `repositories` are those that keep back what is named in them. */
  | {
      readonly kind: 'install-packages';
      readonly manager: PackageManager;
      readonly packages: readonly string[];
      readonly repositories: readonly string[];
    }
  /** With apt. */
  | { readonly kind: 'hold-packages'; readonly packages: readonly string[] }
  /** The host itself fetches it, and takes it when it has this SHA-256. */
  | { readonly kind: 'download-file'; readonly path: string; readonly url: string; readonly sha256: string; readonly mode: number }
  | { readonly kind: 'extract-archive'; readonly path: string; readonly to: string }
  | { readonly kind: 'load-module'; readonly module: string }
  | { readonly kind: 'set-sysctl'; readonly name: string; readonly value: string }
  | { readonly kind: 'turn-off-swap' };

/** A step of the lock of a host, or of a change that waits for its confirmation. */
export type HoldOperation =
  /** Refuses (HostLockedError) what comes after it where somebody else holds the lock of the host. */
  | { readonly kind: 'take-lock'; readonly lock: LockRequest }
  /** Nothing is done where it is not that owner's. */
  | { readonly kind: 'release-lock'; readonly id: string }
  /**
   * Keeps what is there and has systemd put it back unless that is called off in time, over a reboot too. Refused (CommitGoneError) while something is being put
   * back. Where a change waits already this one joins it.
   */
  | { readonly kind: 'arm-revert'; readonly revert: RevertRequest }
  /** Refuses (CommitGoneError) the operations after it unless the change with this id still waits for its confirmation. */
  | { readonly kind: 'check-commit'; readonly id: string }
  /** Keeps the changes; refused (CommitGoneError) when that one does not wait any more. */
  | { readonly kind: 'confirm-commit'; readonly id: string }
  /** Puts back what was before, and waits for it; refused as the former. */
  | { readonly kind: 'revert-commit'; readonly id: string; readonly why: string };
