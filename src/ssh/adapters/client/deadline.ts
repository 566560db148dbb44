import type { AppError } from '../../../base/errors.ts';

export interface Deadline {
  /** Aborts with the timeout error, which names the stage. */
  readonly signal: AbortSignal;
  /** Sets the stage, e.g. `no answer on port 22`. */
  enter(stage: string): void;
  /** Waits for user input; the timeout is suspended meanwhile and restarts afterwards. */
  paused<T>(wait: () => Promise<T>): Promise<T>;
  /** Aborts early, with another reason. */
  readonly abort: (reason: unknown) => void;
  stop(): void;
}

/** @param timeoutError creates the error from the current stage */
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
