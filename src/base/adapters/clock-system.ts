import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock.ts';

export const systemClock: Clock = {
  now: () => new Date(),
  steadyMs: () => performance.now(),
  sleep: async (ms, signal) => {
    try {
      await sleep(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      // Node throws its own AbortError and drops the signal's reason.
      signal?.throwIfAborted();
      throw error;
    }
  },
};

/** The result of a promise; null when it is pending after a time. */
export async function resolveWithin<T>(timeoutMs: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
