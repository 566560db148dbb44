import type { Clock } from './clock.ts';
import type { Reporter } from './reporter.ts';

/** The result of a probe, or the pending state. */
export type Probed<T, P> = { readonly done: T } | { readonly pending: P };

/** The environment of a wait. `host` and `phase` are included in its progress events. */
export interface WaitContext {
  readonly clock: Clock;
  readonly reporter?: Reporter | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly host?: { readonly name: string } | undefined;
  readonly phase?: string | undefined;
}

export interface Wait<T, P> {
  /** Checks once. An error ends the wait. `elapsedMs` returns the milliseconds since it began. */
  readonly probe: (elapsedMs: () => number) => Promise<Probed<T, P>>;
  readonly timeoutMs: number;
  /** Milliseconds before the next probe. @param tries the number of probes so far */
  readonly pauseMs: (waitedMs: number, tries: number) => number;
  /** The result after the timeout, or the error to throw. */
  readonly timedOut: (pending: P, waitedMs: number) => T | Promise<T>;
  /** The message of a progress event. An error ends the wait. */
  readonly describe?: (pending: P, waitedMs: number) => string | Promise<string>;
  /** Milliseconds between two progress events. Default: 10,000. */
  readonly progressMs?: number;
  /** Also report immediately, and whenever this text changes. */
  readonly changed?: (pending: P) => string;
}

const PROGRESS_MS = 10_000;

/**
 * Probes at least once, and a last time at the timeout. Reports progress (WAITING) in between.
 * @throws errors of `probe`, `describe` and `timedOut`; the signal's reason
 */
export async function waitUntil<T, P>(
  { clock, reporter, signal, host, phase }: WaitContext,
  { probe, timeoutMs, pauseMs, timedOut, describe, progressMs = PROGRESS_MS, changed }: Wait<T, P>,
): Promise<T> {
  const started = clock.now().getTime();
  const elapsedMs = (): number => clock.now().getTime() - started;
  let nextProgressMs = changed === undefined ? progressMs : 0;
  let reported: string | undefined;
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    const probed = await probe(elapsedMs);
    if ('done' in probed) return probed.done;
    const { pending } = probed;
    const waitedMs = elapsedMs();
    if (waitedMs >= timeoutMs) return await timedOut(pending, waitedMs);
    const state = changed?.(pending);
    if (describe !== undefined && (waitedMs >= nextProgressMs || state !== reported)) {
      nextProgressMs = changed === undefined ? nextProgressMs + progressMs : waitedMs + progressMs;
      reported = state;
      const message = await describe(pending, waitedMs);
      reporter?.report({ level: 'info', code: 'WAITING', host: host?.name, phase, message });
    }
    await clock.sleep(Math.min(pauseMs(waitedMs, tries), Math.max(timeoutMs - elapsedMs(), 1)), signal);
  }
}

/** For `pauseMs`: a short wait ends quickly, and a long wait costs little. */
export function quickAtFirst(pauses: {
  readonly quickMs: number;
  readonly forMs: number;
  readonly slowMs: number;
}): Wait<never, never>['pauseMs'] {
  return (waitedMs) => (waitedMs < pauses.forMs ? pauses.quickMs : pauses.slowMs);
}

const LATER_API_PAUSE = quickAtFirst({ quickMs: 500, forMs: 10_000, slowMs: 1_000 });

/** For waits that send requests to an API server or to etcd. */
export const API_PAUSE: Wait<never, never>['pauseMs'] = (waitedMs, tries) => {
  if (waitedMs < 1_000) return 100;
  return waitedMs < 2_000 ? 200 : LATER_API_PAUSE(waitedMs, tries);
};
