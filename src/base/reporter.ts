import type { JsonObject } from './json.ts';

/**
 * Everything the program says while it works. `code` is stable and upper-case (`PHASE_STARTED`), `message` is for people. Secrets never
 * get here: what holds them prints as `[secret]`.
 */
export interface ReportEvent {
  readonly level: 'debug' | 'info' | 'warning' | 'error';
  readonly code: string;
  readonly message: string;
  readonly host?: string;
  readonly phase?: string;
  /** Verbosity at which it is shown (`-v`): 0 always, 1 facts, 2 commands, 3 output. */
  readonly verbosity?: 0 | 1 | 2 | 3 | 4 | 5;
  readonly data?: JsonObject;
}

/** A listener: progress on a terminal, plain lines, JSON lines, or a list in a test. Nothing is decided in one. */
export interface Reporter {
  /** Events that are shown only above this verbosity nobody hears; absent: all are heard. */
  readonly verbosity?: number;
  report(event: ReportEvent): void;
}

/** Makes the reporters of a run. */
export interface Reporters {
  reporter(options: { readonly verbosity: number; readonly format: 'text' | 'json' }): Reporter;
}
