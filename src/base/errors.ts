/** Where in an input something stands; line and column count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * One thing that is wrong, said so that a user can fix it. `message` is a clause without a final stop ("unknown field"), `hint` a sentence
 * without a final stop ("Did you mean criSocket?" keeps its question mark).
 */
export interface Problem {
  /** Stable, upper-case id, e.g. `CONFIG_UNKNOWN_FIELD`. */
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly severity?: 'error' | 'warning';
  /** The host it concerns: first word of the line. */
  readonly host?: string;
  readonly position?: Position;
  /** Field path inside the document, e.g. `nodeRegistration.taints[0].effect`. */
  readonly path?: string;
}

/**
 * Exit codes of the command line: 1 a step failed, run again to go on · 2 usage or configuration, nothing touched · 3 preflight refused,
 * nothing touched · 4 some hosts of a rollout failed · 5 rolled back to the last known good configuration · 6 changes pending ·
 * 129, 130, 143 interrupted by SIGHUP, SIGINT, SIGTERM.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 129 | 130 | 143;

/** Signals that ask the program to come to an end, and the exit codes that shells give for them: 128 and the signal's number. */
const INTERRUPTIONS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

export interface AppErrorOptions {
  readonly exitCode?: ExitCode;
  /** Everything that helps to understand it (full stderr, journal): shown with `-v 5` only. */
  readonly detail?: string;
  readonly cause?: unknown;
}

/** The only error the program throws on purpose. Anything else that reaches the command line is a bug of ours and is reported as one. */
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

  /** The code of the first problem: what a caller decides on. */
  get code(): string {
    return this.problems[0]?.code ?? 'UNKNOWN';
  }
}

/** One line: `who: what: why. hint [CODE]`. */
export function formatProblem(problem: Problem): string {
  const { position, path, host } = problem;
  const place = position ? `${position.file}:${position.line}:${position.column}` : '';
  const who = [host ? `${host}:` : '', [place, path].filter(Boolean).join(' ')].filter(Boolean).join(' ');
  const hint = problem.hint ? ` ${/[.?!]$/.test(problem.hint) ? problem.hint : `${problem.hint}.`}` : '';
  const stop = hint && !/[.?!]$/.test(problem.message) ? '.' : '';
  return `${who}${who && !who.endsWith(':') ? ':' : ''}${who ? ' ' : ''}${problem.message}${stop}${hint} [${problem.code}]`;
}

/** True for an AppError whose first problem has this code. */
export function isAppError(error: unknown, code?: string): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** What an error says, in one line: of an AppError all its problems. */
export function messageOf(error: unknown): string {
  if (isAppError(error)) return error.problems.map(formatProblem).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** Does what follows from one host's facts: an AppError that names no host names this one. Anything else is thrown as it is. */
export function aboutHost<T>(host: string, what: () => T): T {
  try {
    return what();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { exitCode, detail } = error;
    throw new AppError(
      error.problems.map((problem) => ({ host, ...problem })),
      { exitCode, cause: error, ...(detail === undefined ? {} : { detail }) },
    );
  }
}

/** Usage: a flag or argument is wrong. Nothing was touched. */
export function usageError(message: string, hint?: string): AppError {
  return new AppError({ code: 'USAGE', message, ...(hint === undefined ? {} : { hint }) }, { exitCode: 2 });
}

/** The user stopped the program: the reason of the signal that every wait listens to. */
export function interrupted(signal: keyof typeof INTERRUPTIONS): AppError {
  return new AppError(
    { code: 'INTERRUPTED', message: `interrupted by ${signal}`, hint: 'Run the same command again to go on' },
    { exitCode: INTERRUPTIONS[signal] },
  );
}
