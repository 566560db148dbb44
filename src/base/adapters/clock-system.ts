import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock.ts';

/** The real clock. */
export const systemClock: Clock = {
  now: () => new Date(),
  sleep: async (ms, signal) => {
    try {
      await sleep(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      // Node throws an AbortError of its own, whatever the reason.
      signal?.throwIfAborted();
      throw error;
    }
  },
};
