import type { SensitiveText } from '../../base/text/secret.ts';
import type { SecretSource } from './install-model.ts';
import type { LargeFile, RangedFile } from './large-file.ts';
import type { PackageManager } from './package-facts.ts';

export type OperationOf<K extends Operation['kind']> = Extract<Operation, { readonly kind: K }>;

/**
 * One step that changes a host. `OPERATION_KINDS` describes each kind. `write-file` replaces a file
 * atomically: temporary name in the same directory, mode and owner, fsync, rename, fsync of the directory.
 * Symbolic links are followed, missing parents are created (0755).
 */
export type Operation =
  | CommandOperation
  | {
      readonly kind: 'write-file';
      readonly path: string;
      readonly mode: number;
      readonly owner: string;
      readonly content: string | SensitiveText;
    }
  /** A large file, sent in separate programs and installed when its hash matches. Its name identifies the content. */
  | { readonly kind: 'put-file'; readonly path: string; readonly mode: number; readonly owner: string; readonly content: LargeFile }
  /** A file that does not fit in memory. An interrupted upload is resumed, also by a later run. */
  | { readonly kind: 'upload-file'; readonly path: string; readonly mode: number; readonly owner: string; readonly content: RangedFile }
  | { readonly kind: 'make-directory'; readonly path: string; readonly mode: number; readonly owner: string }
  | { readonly kind: 'remove-file'; readonly path: string }
  /** No error if `path` does not exist. A symbolic link is moved, not followed. */
  | { readonly kind: 'move-file'; readonly path: string; readonly to: string }
  | { readonly kind: 'empty-directory'; readonly path: string }
  /** Rejected while a file system is mounted below the directory; no error if it does not exist. */
  | { readonly kind: 'remove-directory'; readonly path: string }
  /** A directory with content is kept. */
  | { readonly kind: 'remove-empty-directory'; readonly path: string }
  | { readonly kind: 'unmount-below'; readonly path: string; readonly flags: readonly string[] }
  /**
   * Adds an entry to a file with one JSON object per line, readable by root only. The host adds `login`: the user of the
   * login. Entries with the same id are replaced, the oldest entries above the limits are dropped.
   */
  | {
      readonly kind: 'append-journal';
      readonly path: string;
      /** A member of the entry. */
      readonly id: string;
      /** The entry as JSON. Without secrets. */
      readonly entry: string;
      readonly maxEntries: number;
      readonly maxBytes: number;
      /** An entry that cannot be written is no failure. */
      readonly isOptional: boolean;
      /** A file of its own for the entry, of which the newest in its directory are kept. Absent: none. */
      readonly attachment?: { readonly path: string; readonly content: string; readonly maxFiles: number } | undefined;
    }
  /** Rejects the following operations (HostLockedError) while another run holds the lock of the host. */
  | { readonly kind: 'take-lock'; readonly lock: LockRequest }
  /** No effect unless that owner holds the lock. */
  | { readonly kind: 'release-lock'; readonly id: string }
  /**
   * Saves the previous files and schedules their restore, also after a reboot, unless the change is confirmed in time.
   * Rejected (CommitGoneError) during a rollback. Joins an already pending change.
   */
  | { readonly kind: 'arm-revert'; readonly revert: RevertRequest }
  /** Rejects the following operations (CommitGoneError) unless this change still waits for its confirmation. */
  | { readonly kind: 'check-commit'; readonly id: string }
  /** Confirms the change; rejected (CommitGoneError) if the change is no longer pending. */
  | { readonly kind: 'confirm-commit'; readonly id: string }
  /** Restores the previous files and waits for completion; rejected likewise. */
  | { readonly kind: 'revert-commit'; readonly id: string; readonly why: string };

export interface RunCommand {
  readonly kind: 'run';
  readonly argv: readonly string[];
  /** Successful exit codes. Default: only 0. */
  readonly okExit?: readonly number[];
  /** Name in messages; default: the argv. */
  readonly what?: string;
  /** Variables in the environment of the command, which only root can read. */
  readonly secrets?: Readonly<Record<string, SensitiveText>> | undefined;
}

/** When a hook runs, by its name in the fleet file. */
export type HookName = 'beforeChange' | 'afterChange';

/** An operation that is a command of the host, given by `commandOf`. */
export type CommandOperation =
  | RunCommand
  /** `mayStay`: Pods that cannot be removed are not an error. */
  | { readonly kind: 'remove-pods'; readonly criSocket: string; readonly mayStay?: true }
  /** Stops the containers of a component; the kubelet starts new ones. No effect if none runs. */
  | { readonly kind: 'restart-static-pod'; readonly component: string; readonly criSocket: string }
  /** The container runtime pulls an image, even if the image exists. */
  | { readonly kind: 'pull-image'; readonly image: string; readonly criSocket: string }
  /** The container runtime imports the images of an archive of the host; the archive is removed. */
  | { readonly kind: 'import-images'; readonly path: string; readonly images: readonly string[]; readonly criSocket: string }
  /** The copy with owners and modes gets its name when it is complete; an error if the name exists. */
  | { readonly kind: 'copy-directory'; readonly path: string; readonly to: string }
  /** Rejects the following operations unless the directory exists. */
  | { readonly kind: 'require-directory'; readonly path: string }
  | { readonly kind: 'daemon-reload' }
  | { readonly kind: 'enable-unit'; readonly unit: string }
  | { readonly kind: 'restart-unit'; readonly unit: string }
  | { readonly kind: 'stop-unit'; readonly unit: string }
  /** No effect on a running unit. */
  | { readonly kind: 'start-unit'; readonly unit: string }
  /** `packages` as in `kubelet=1.36.*`; `repositories` exclude these packages from upgrades. */
  | {
      readonly kind: 'install-packages';
      readonly manager: PackageManager;
      readonly packages: readonly string[];
      readonly repositories: readonly string[];
    }
  /** With apt. */
  | { readonly kind: 'hold-packages'; readonly packages: readonly string[] }
  /** The host downloads the file and installs it if the SHA-256 matches. */
  | { readonly kind: 'download-file'; readonly path: string; readonly url: string; readonly sha256: string; readonly mode: number }
  | { readonly kind: 'extract-archive'; readonly path: string; readonly to: string }
  | { readonly kind: 'load-module'; readonly module: string }
  | { readonly kind: 'set-sysctl'; readonly name: string; readonly value: string }
  | { readonly kind: 'turn-off-swap' }
  /** A command of the operator before the first or after the last change of a host. */
  | {
      readonly kind: 'run-hook';
      readonly hook: HookName;
      readonly command: readonly string[];
      readonly environment: Readonly<Record<string, string>>;
      readonly timeoutSeconds: number;
      /** Sources of the secrets in the environment, by variable. */
      readonly env?: Readonly<Record<string, SecretSource>>;
      /** The secrets; absent in plans. */
      readonly secrets?: Readonly<Record<string, SensitiveText>>;
    };

/** Takes a lock, or renews the TTL of a lock that the owner already holds. */
export interface LockRequest {
  readonly owner: {
    /** Unique per run and host, unpredictable. */
    readonly id: string;
    /** For messages: `alice@laptop`. */
    readonly name: string;
    /** Process id of the run on its host. */
    readonly processId: number;
    /** Identifies a host and its boot, so that a process id of another host is not mistaken for a local one. */
    readonly machine: string;
  };
  /** TTL, after which others may take it. */
  readonly seconds: number;
  /** The lock that may be broken before its TTL: none, the one with an id, or any. */
  readonly breaks: { readonly kind: 'none' } | { readonly kind: 'id'; readonly id: string } | { readonly kind: 'any' };
}

/** A revert to arm before anything is changed. */
export interface RevertRequest {
  readonly id: string;
  readonly owner: string;
  /** Without a confirmation within this time, the previous files are restored. */
  readonly timeoutSeconds: number;
  /** Paths that the change may modify; their current state is saved. */
  readonly paths: readonly string[];
  readonly units: readonly string[];
  /** systemd reads some of the files. */
  readonly reload: boolean;
}
