/** A position in an input file; lines and columns count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * One error or warning that a user can fix. `message` is a clause without a final full stop ("unknown
 * field"), `hint` a sentence without a final full stop ("Did you mean criSocket?" keeps its question mark).
 */
export interface Problem {
  /** Stable, upper-case id, e.g. `CONFIG_UNKNOWN_FIELD`. */
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly severity?: 'error' | 'warning' | undefined;
  /** The affected host, printed first in the line. Never undefined: `{ host, ...problem }` adds a missing host. */
  readonly host?: string;
  readonly position?: Position | undefined;
  /** Field path inside the document, e.g. `nodeRegistration.taints[0].effect`. */
  readonly path?: string | undefined;
}

/**
 * Exit codes of the command line: 1 a step failed, rerun the command to resume · 2 usage or configuration
 * error, nothing changed · 3 preflight failed, nothing changed · 4 some hosts of a rollout failed · 5 rolled
 * back to the last known good configuration · 6 changes pending · 129, 130, 143 interrupted by SIGHUP,
 * SIGINT, SIGTERM.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 129 | 130 | 143;

/** Signals that interrupt the program, with the exit codes of shells: 128 plus the signal number. */
const INTERRUPTIONS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

export interface AppErrorOptions {
  readonly exitCode?: ExitCode;
  /** Everything that helps to analyse the error (full stderr, journal); shown with `-v 5` only. */
  readonly detail?: string | undefined;
  readonly cause?: unknown | undefined;
}

/** The only error that is thrown on purpose. The command line reports every other error as a bug of kubeletadm. */
export class AppError extends Error {
  readonly problems: readonly Problem[];
  readonly exitCode: ExitCode;
  readonly detail: string | undefined;

  constructor(problems: Problem | readonly Problem[], options: AppErrorOptions = {}) {
    const list = Array.isArray(problems) ? (problems as readonly Problem[]) : [problems as Problem];
    super(list.map(formatProblem).join('\n'), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.problems = list;
    this.exitCode = options.exitCode ?? 1;
    this.detail = options.detail;
  }

  /** The code of the first problem, for callers that branch on it. */
  get code(): string {
    return this.problems[0]?.code ?? 'UNKNOWN';
  }
}

/** `join.yaml:5:3`; the file `-` is `standard input`. */
export function formatPosition({ file, line, column }: Position): string {
  return `${file === '-' ? 'standard input' : file}:${line}:${column}`;
}

/** One line: `host: position path: message. Hint [CODE]`. */
export function formatProblem(problem: Problem): string {
  return `${problemText(problem)} [${problem.code}]`;
}

/** `formatProblem` without the code. */
export function problemText(problem: Problem): string {
  const { position, path, host } = problem;
  const place = position ? formatPosition(position) : '';
  const subject = [host ? `${host}:` : '', [place, path].filter(Boolean).join(' ')].filter(Boolean).join(' ');
  const hint = problem.hint ? ` ${/[.?!]$/.test(problem.hint) ? problem.hint : `${problem.hint}.`}` : '';
  const stop = hint && !/[.?!]$/.test(problem.message) ? '.' : '';
  return `${subject}${subject && !subject.endsWith(':') ? ':' : ''}${subject ? ' ' : ''}${problem.message}${stop}${hint}`;
}

/** True for an AppError whose first problem has this code. */
export function isAppError(error: unknown, code?: string): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** The message of the first problem, without its subject and hint. */
export function firstMessage({ problems, code }: AppError): string {
  return problems[0]?.message ?? code;
}

/** The message of an error in one line; of an AppError, all its problems. */
export function messageOf(error: unknown): string {
  if (isAppError(error)) return error.problems.map(formatProblem).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** AppErrors of a function that processes the facts of one host get this host. */
export function withHostInErrors<T>(host: string, what: () => T): T {
  try {
    return what();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { exitCode, detail } = error;
    throw new AppError(
      error.problems.map((problem) => ({ host, ...problem })),
      { exitCode, cause: error, detail },
    );
  }
}

/** Usage error: a flag or argument is invalid. Nothing was changed. */
export function usageError(message: string, hint?: string): AppError {
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}

/** The user answered a question with no. @param what that was asked: `apply`, `the upgrade` */
export function declined(what: string): AppError {
  return new AppError({ code: 'DECLINED', message: `${what} was declined: nothing was changed` });
}

/** The user interrupted the program: the abort reason of the process-wide signal. */
export function interrupted(signal: keyof typeof INTERRUPTIONS): AppError {
  return new AppError(
    { code: 'INTERRUPTED', message: `interrupted by ${signal}`, hint: 'Rerun the same command to resume' },
    { exitCode: INTERRUPTIONS[signal] },
  );
}

/** AppErrors become values; other errors are bugs and propagate. */
export async function settle<T>(work: Promise<T>): Promise<{ readonly value: T } | { readonly error: AppError }> {
  try {
    return { value: await work };
  } catch (error) {
    if (isAppError(error)) return { error };
    throw error;
  }
}

/** The result of work; null after an AppError. */
export async function unlessRefused<T>(work: Promise<T>): Promise<T | null> {
  const settled = await settle(work);
  return 'value' in settled ? settled.value : null;
}
