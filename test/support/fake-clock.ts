import type { Clock } from '../../src/base/clock.ts';

/** A clock that advances only during sleeps. */
export interface FakeClock extends Clock {
  /** Milliseconds since the clock was created. */
  readonly elapsedMs: number;
  /** Runs an action when that many milliseconds have passed, during a sleep. */
  at(elapsedMs: number, action: () => void): void;
  /** Advances the time without a sleep. */
  advance(ms: number): void;
}

/** A clock for tests: a sleep returns immediately and advances the clock. */
export function fakeClock(start: Date = new Date('2030-01-01T00:00:00Z')): FakeClock {
  let elapsedMs = 0;
  let planned: { readonly atMs: number; readonly action: () => void }[] = [];
  const advance = (ms: number): void => {
    const until = elapsedMs + ms;
    for (;;) {
      const next = planned.filter(({ atMs }) => atMs <= until).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      planned = planned.filter((one) => one !== next);
      elapsedMs = Math.max(elapsedMs, next.atMs);
      next.action();
    }
    elapsedMs = until;
  };
  return {
    get elapsedMs() {
      return elapsedMs;
    },
    now: () => new Date(start.getTime() + elapsedMs),
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      advance(ms);
      // One turn of the event loop, so that loops with a fake clock can be aborted.
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    },
    at: (atMs, action) => {
      planned.push({ atMs, action });
    },
    advance,
  };
}
