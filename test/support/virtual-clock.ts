import type { FakeClock } from './fake-clock.ts';

/** Turns of the event loop for everything that can run before the time advances. */
const TURNS = 4;

/**
 * A clock for simulations with several sleepers. Unlike that of `fakeClock`, concurrent sleeps overlap: the
 * time advances to the end of the next sleep once all sleepers sleep.
 */
export function virtualClock(start: Date = new Date('2030-01-01T00:00:00Z')): FakeClock {
  let elapsedMs = 0;
  let timers: readonly { readonly atMs: number; readonly wake: () => void }[] = [];
  let isRunning = false;
  const run = async (): Promise<void> => {
    while (timers.length > 0) {
      for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
      const next = timers.reduce<(typeof timers)[number] | null>((a, b) => (a === null || b.atMs < a.atMs ? b : a), null);
      if (next === null) break;
      timers = timers.filter((one) => one !== next);
      elapsedMs = Math.max(elapsedMs, next.atMs);
      next.wake();
    }
    isRunning = false;
  };
  const add = (atMs: number, wake: () => void): (() => void) => {
    const timer = { atMs, wake };
    timers = [...timers, timer];
    if (!isRunning) {
      isRunning = true;
      void run();
    }
    return () => {
      timers = timers.filter((one) => one !== timer);
    };
  };
  return {
    get elapsedMs() {
      return elapsedMs;
    },
    now: () => new Date(start.getTime() + elapsedMs),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) return reject(signal.reason);
        const abort = (): void => {
          remove();
          reject(signal?.reason);
        };
        const remove = add(elapsedMs + ms, () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        });
        signal?.addEventListener('abort', abort, { once: true });
      }),
    at: (atMs, action) => void add(atMs, action),
    advance: (ms) => {
      elapsedMs += ms;
    },
  };
}
