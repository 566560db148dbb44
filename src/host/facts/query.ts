/** What stands at a path. `mode` are the permission bits, `owner` is `user:group` by name (numbers where a name is missing). */
export interface FileFact {
  readonly type: 'file' | 'directory' | 'socket' | 'other';
  readonly mode: number;
  readonly owner: string;
  /** Only for files, and only when asked for; bytes that are not UTF-8 are replaced. */
  readonly content?: string;
  /** Only for files: when the content was last written, in Unix seconds of the host's clock. */
  readonly modifiedAt?: number;
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

/**
 * Largest content of a file that a host may answer with, those of /proc aside. Configurations, units, certificates and keys have a few kilobytes; to compare or
 * parse a hostile one of megabytes would keep all other hosts of a run waiting.
 */
export const MAX_FILE_BYTES = 256 * 1024;

/** A read-only question to a host. */
export type FactQuery =
  | { readonly kind: 'file'; readonly path: string; readonly content?: boolean }
  | { readonly kind: 'list'; readonly path: string }
  /** `stdin`: what the command reads, in place of nothing; here what must not be in an argv is safe. */
  | { readonly kind: 'command'; readonly argv: readonly string[]; readonly stdin?: string }
  /** Of https nobody's certificate is verified: it is good for asking a component of the host itself whether it is well. */
  | { readonly kind: 'http'; readonly url: string; readonly timeoutSeconds: number };

/** What is answered to each kind of question; null: there is nothing at that path. */
export type Answer<Q extends FactQuery> = Q extends { kind: 'file' }
  ? FileFact | null
  : Q extends { kind: 'list' }
    ? readonly string[] | null
    : Q extends { kind: 'command' }
      ? CommandFact
      : HttpFact;

const KEYS = new WeakMap<FactQuery, string>();

/** What stands for a question wherever it is asked: the same text for the same question. */
export function queryKey(question: FactQuery): string {
  const known = KEYS.get(question);
  if (known !== undefined) return known;
  const key = JSON.stringify(question);
  KEYS.set(question, key);
  return key;
}

export type FactQueries = Readonly<Record<string, FactQuery>>;
export type Answers<Q extends FactQueries> = { readonly [K in keyof Q]: Answer<Q[K]> };
