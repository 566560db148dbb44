/** The time source of the program. Tests pass a clock that they advance manually. */
export interface Clock {
  now(): Date;
  /** Milliseconds since some moment, unaffected by changes of the system time. Absent: as `now`. */
  readonly steadyMs?: () => number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The time of a run, and its end on request. */
export interface RunTime {
  readonly clock: Clock;
  /** Aborted by the first Ctrl-C or SIGTERM, and when the terminal goes away. */
  readonly signal: AbortSignal;
}
