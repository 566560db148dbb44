import type { SensitiveText } from '../core/text/secret.ts';

/** What stands at a path. `mode` are the permission bits, `owner` is `user:group` by name (numbers where a name is missing). */
export interface FileFact {
  readonly type: 'file' | 'directory' | 'symlink' | 'other';
  readonly mode: number;
  readonly owner: string;
  /** Only for files, and only when asked for; bytes that are not UTF-8 are replaced. */
  readonly content?: string;
  /** Only for symbolic links: the path it finally leads to. Mode, owner and content are those of that path. */
  readonly target?: string;
}

export interface CommandFact {
  /** null when a signal ended it; 127 when there is no such command. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The answer of an HTTP GET made on the host itself, or why there was none. */
export type HttpFact = { readonly status: number; readonly body: string } | { readonly error: string };

/** A read-only question to a host. */
export type Question =
  | { readonly kind: 'file'; readonly path: string; readonly content?: boolean }
  | { readonly kind: 'list'; readonly path: string }
  | { readonly kind: 'command'; readonly argv: readonly string[] }
  | { readonly kind: 'http'; readonly url: string; readonly timeoutSeconds: number };

/** What is answered to each kind of question; null: there is nothing at that path. */
export type Answer<Q extends Question> = Q extends { kind: 'file' }
  ? FileFact | null
  : Q extends { kind: 'list' }
    ? readonly string[] | null
    : Q extends { kind: 'command' }
      ? CommandFact
      : HttpFact;

export type Questions = Readonly<Record<string, Question>>;
export type Answers<Q extends Questions> = { readonly [K in keyof Q]: Answer<Q[K]> };

/**
 * One step that changes a host. `write-file` replaces atomically: temporary name in the same directory, mode and owner, fsync, rename, fsync of
 * the directory; a symbolic link is followed, missing parents are made (0755).
 */
export type Operation =
  | {
      readonly kind: 'write-file';
      readonly path: string;
      readonly mode: number;
      readonly owner: string;
      readonly content: string | SensitiveText;
    }
  | { readonly kind: 'make-directory'; readonly path: string; readonly mode: number; readonly owner: string }
  | { readonly kind: 'remove-file'; readonly path: string }
  | { readonly kind: 'empty-directory'; readonly path: string }
  | { readonly kind: 'unmount-below'; readonly path: string; readonly flags: readonly string[] }
  | { readonly kind: 'run'; readonly argv: readonly string[]; readonly okExit?: readonly number[] };

export interface PerformOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Called as each operation is done, in order. */
  readonly onDone?: (index: number) => void;
}

/**
 * A Linux host: questions are answered in one round trip, operations run in order in one remote program and stop at the first that fails
 * (AppError HOST_OPERATION_FAILED, HOST_NO_SPACE, HOST_READ_ONLY, HOST_PERMISSION_DENIED with the operation named).
 */
export interface Host {
  readonly name: string;
  ask<Q extends Questions>(questions: Q, options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number }): Promise<Answers<Q>>;
  perform(operations: readonly Operation[], options?: PerformOptions): Promise<void>;
  close(): Promise<void>;
}
