import type { AppError } from '../../../base/errors.ts';

/** The time-out of a connection that is being made. */
export interface Deadline {
  /** Aborts with the error for the time-out, which names the stage. */
  readonly signal: AbortSignal;
  /** What is being waited for, as `no answer on port 22`. */
  enter(stage: string): void;
  /** Waits for something without letting the time run: people take theirs. */
  paused<T>(wait: () => Promise<T>): Promise<T>;
  /** Ends it early, with another reason. */
  readonly abort: (reason: unknown) => void;
  stop(): void;
}

/** @param timeoutError makes the error, from what was being waited for */
export function startDeadline(timeoutMs: number, timeoutError: (stage: string) => AppError): Deadline {
  const controller = new AbortController();
  let stage = 'no connection';
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => {
    timer = setTimeout(() => controller.abort(timeoutError(stage)), timeoutMs);
  };
  let stopped = false;
  start();
  return {
    signal: controller.signal,
    enter: (next) => {
      stage = next;
    },
    paused: async (wait) => {
      clearTimeout(timer);
      try {
        return await wait();
      } finally {
        if (!stopped) start();
      }
    },
    abort: (reason) => controller.abort(reason),
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
