import type { Clock } from '../../base/clock.ts';

/** Messages in order of arrival, for one reader. */
interface EventQueue<T> {
  put(message: T): void;
  /**
   * Returns the next message, or null when none arrived within `ms`.
   * @param ms null: waits without a limit
   */
  take(ms: number | null): Promise<T | null>;
}

/** Creates a queue; `take` rejects with the reason of the signal when it is aborted. */
export function createEventQueue<T>(clock: Clock, signal: AbortSignal): EventQueue<T> {
  const messages: T[] = [];
  let wake: () => void = () => undefined;
  return {
    put: (message) => {
      messages.push(message);
      wake();
    },
    take: async (ms) => {
      signal.throwIfAborted();
      if (messages.length > 0) return messages.shift() as T;
      const stop = new AbortController();
      const abort = () => stop.abort(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      try {
        const arrival = new Promise<void>((resolve, reject) => {
          wake = resolve;
          stop.signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
        const timeout = ms === null ? [] : [clock.sleep(ms, stop.signal).catch(() => undefined)];
        await Promise.race([arrival, ...timeout]);
        signal.throwIfAborted();
        arrival.catch(() => undefined);
      } finally {
        wake = () => undefined;
        signal.removeEventListener('abort', abort);
        stop.abort();
      }
      return messages.shift() ?? null;
    },
  };
}
