/** `mode` contains the permission bits, `owner` is `user:group` by name (a number if no name exists). */
export interface FileFact {
  readonly type: 'file' | 'directory' | 'socket' | 'other';
  readonly mode: number;
  readonly owner: string;
  /** Only for files, and only when requested; bytes that are not UTF-8 are replaced. */
  readonly content?: string;
  /** Only for files: time of the last write, in Unix seconds of the host's clock. */
  readonly modifiedAt?: number;
  /** Only for symbolic links: the resolved path. Mode, owner and content are those of that path. */
  readonly target?: string;
}

export interface CommandFact {
  /** null when a signal killed the command; 127 when the command does not exist. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The response to an HTTP GET on the host itself, or the error. */
export type HttpFact = { readonly status: number; readonly body: string } | { readonly error: string };

/** Limit of a file's content, except for /proc: parsing a hostile file of megabytes would delay all other hosts. */
export const MAX_FILE_BYTES = 256 * 1024;

export type FactQuery =
  /** `denied` 'absent': a path that the user may not look up counts as absent; otherwise that is an error. */
  | { readonly kind: 'file'; readonly path: string; readonly content?: boolean; readonly denied?: 'absent' }
  /** `lasting`: no phase changes the answer, so it is queried once per run. */
  | { readonly kind: 'list'; readonly path: string; readonly lasting?: true }
  /**
   * `stdin` is suitable for secrets. `isParallel`: a slow command, which runs at the same time as the others;
   * its stdout contains its stderr.
   */
  | {
      readonly kind: 'command';
      readonly argv: readonly string[];
      readonly stdin?: string;
      readonly lasting?: true;
      readonly isParallel?: true;
    }
  /**
   * With https the certificate is not verified: for health checks on the same host. `attempts`: repeated
   * every 30 ms while the connection is refused or, for a loopback address, no process listens on the port;
   * default: one.
   */
  | { readonly kind: 'http'; readonly url: string; readonly timeoutSeconds: number; readonly attempts?: number };

/** The result of each kind of query; null: the path does not exist. */
export type FactQueryResult<Q extends FactQuery> = Q extends { kind: 'file' }
  ? FileFact | null
  : Q extends { kind: 'list' }
    ? readonly string[] | null
    : Q extends { kind: 'command' }
      ? CommandFact
      : HttpFact;

/** The key of a query: equal for equal queries. */
export function queryKey(question: FactQuery): string {
  return JSON.stringify(question);
}

export type FactQueries = Readonly<Record<string, FactQuery>>;
export type FactQueryResults<Q extends FactQueries> = { readonly [K in keyof Q]: FactQueryResult<Q[K]> };
