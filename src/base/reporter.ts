import type { JsonObject } from './json.ts';

/** `code` is stable and upper-case (`PHASE_STARTED`), `message` is for people. Secrets print as `[secret]`. */
export interface ReportEvent {
  readonly level: 'debug' | 'info' | 'warning' | 'error';
  readonly code: string;
  readonly message: string;
  readonly host?: string | undefined;
  readonly phase?: string | undefined;
  /** Minimum verbosity (`-v`) that shows the event: 0 always, 1 facts, 2 commands, 3 output. */
  readonly verbosity?: 0 | 1 | 2 | 3 | 4 | 5 | undefined;
  readonly data?: JsonObject | undefined;
}

/** Progress on a terminal, plain lines, JSON lines, or a list in a test. A reporter makes no decisions. */
export interface Reporter {
  /** The reporter drops events above this verbosity; absent: it shows all. */
  readonly verbosity?: number | undefined;
  report(event: ReportEvent): void;
}

/** Creates the reporters of a run. */
export interface Reporters {
  reporter(options: { readonly verbosity: number; readonly format: 'text' | 'json' }): Reporter;
}
