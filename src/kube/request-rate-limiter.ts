import { onAbort } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';

/**
 * Progress, or a repeated request of a wait. Steps start before polls, which would delay the hosts that are
 * joining. Every third slot belongs to the polls: a wait has a deadline, and must notice its result also
 * while steps are waiting.
 */
export type RequestUrgency = 'step' | 'poll';

/** Number of steps that start before the first waiting poll. */
const STEPS_PER_POLL = 2;

/** A limit for the requests of a process to API servers, shared by all its connections. */
export interface RequestRateLimiter {
  /** Spaces the starts of requests evenly, so that many hosts do not send bursts. `perSecond` may be a fraction. */
  limit(perSecond: number): void;
  /** Waits until the next request may start. Without a limit: not at all. */
  waitForSlot(signal: AbortSignal | undefined, urgency?: RequestUrgency): Promise<void>;
}

/** Creates a limiter that does not limit until `limit` is called. */
export function createRequestRateLimiter(clock: Clock): RequestRateLimiter {
  let spacingMs = 0;
  let nextAt = 0;
  let isServing = false;
  let stepsBeforePoll = 0;
  const queues: Readonly<Record<RequestUrgency, Set<() => void>>> = { step: new Set(), poll: new Set() };

  const nextQueue = (): Set<() => void> => {
    const { step, poll } = queues;
    if (poll.size > 0 && (step.size === 0 || stepsBeforePoll >= STEPS_PER_POLL)) {
      stepsBeforePoll = 0;
      return poll;
    }
    stepsBeforePoll = poll.size === 0 ? 0 : stepsBeforePoll + 1;
    return step;
  };
  /** Starts the waiting requests one after the other. */
  const serve = async (): Promise<void> => {
    if (isServing) return;
    isServing = true;
    while (queues.step.size + queues.poll.size > 0) {
      const now = clock.now().getTime();
      if (nextAt > now) await clock.sleep(nextAt - now);
      const queue = nextQueue();
      const [start] = queue;
      // All waiting requests may have been aborted during the sleep.
      if (start === undefined) break;
      queue.delete(start);
      nextAt = Math.max(nextAt, now) + spacingMs;
      start();
    }
    isServing = false;
  };
  return {
    limit: (perSecond) => {
      spacingMs = 1000 / perSecond;
    },
    waitForSlot: (signal, urgency = 'step') => {
      if (spacingMs === 0) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const queue = queues[urgency];
        const start = (): void => {
          forget();
          resolve();
        };
        queue.add(start);
        const forget = onAbort(signal, (reason) => {
          queue.delete(start);
          reject(reason);
        });
        void serve();
      });
    },
  };
}
