import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock.ts';

export const systemClock: Clock = {
  now: () => new Date(),
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
