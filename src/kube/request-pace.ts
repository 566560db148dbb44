import type { Clock } from '../base/clock.ts';

/** A limit for the requests of a process to API servers, shared by all its connections. */
export interface RequestPace {
  /**
   * Starts at most that many requests per second, evenly spaced, so that many hosts that join at once do not send
   * their requests in bursts.
   * @param perSecond greater than 0; fractions are allowed
   */
  limit(perSecond: number): void;
  /** Waits until the next request may start. Without a limit: not at all. */
  turn(signal: AbortSignal | undefined): Promise<void>;
}

/** A pace without a limit. */
export function requestPace(clock: Clock): RequestPace {
  let spacingMs = 0;
  let nextAt = 0;
  return {
    limit: (perSecond) => {
      spacingMs = 1000 / perSecond;
    },
    turn: async (signal) => {
      if (spacingMs === 0) return;
      const now = clock.now().getTime();
      const at = Math.max(now, nextAt);
      nextAt = at + spacingMs;
      if (at > now) await clock.sleep(at - now, signal);
    },
  };
}
