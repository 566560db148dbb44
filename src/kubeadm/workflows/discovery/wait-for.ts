import type { Clock } from '../../../base/clock.ts';
import { AppError, type Problem } from '../../../base/errors.ts';
import type { Reporter } from '../../../base/reporter.ts';
import { formatGoDuration } from '../../../base/text/go-duration.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import type { Web } from '../../../kube/web.ts';

/** What discovery works with. */
export interface DiscoveryContext {
  readonly web: Web;
  readonly clock: Clock;
  readonly reporter: Reporter;
  readonly signal?: AbortSignal;
}

/** Until when discovery goes on: `timeouts.discovery` counts once for all of it. */
export interface Deadline {
  readonly timeoutMs: number;
  readonly endsAt: number;
}

/** What one try gave. Who throws does not want another. */
export type Attempt<T> = { readonly done: T } | { readonly wait: Problem };

/** Longest time for one request, as kubeadm has it. */
const REQUEST_MS = 10_000;
/** kubeadm 1.36 asks every five seconds; the first pauses are shorter, because most of the time little is missing. */
const PAUSES_MS = [1_000, 2_000, 5_000];
const PROGRESS_MS = 30_000;

/** Counts from now. */
export function deadlineIn(timeoutMs: number, clock: Clock): Deadline {
  return { timeoutMs, endsAt: clock.now().getTime() + timeoutMs };
}

/** For one request: no longer than what is left, but never nothing. */
export function requestTimeoutMs({ endsAt }: Deadline, clock: Clock): number {
  return Math.max(Math.min(REQUEST_MS, endsAt - clock.now().getTime()), 1_000);
}

/**
 * Tries again and again until it is done or the time is over; at least once. What it waits for is said at once, when it changes, and twice a minute.
 * @throws AppError with the last problem (exit code 1) when the time is over; the signal's reason
 */
export async function waitFor<T>(context: DiscoveryContext, deadline: Deadline, attempt: () => Promise<Attempt<T>>): Promise<T> {
  const { clock } = context;
  return waitUntil(context, {
    probe: async () => {
      const result = await attempt();
      return 'done' in result ? result : { pending: result.wait };
    },
    timeoutMs: deadline.endsAt - clock.now().getTime(),
    pauseMs: (_, tries) => PAUSES_MS[tries - 1] ?? 5_000,
    progressMs: PROGRESS_MS,
    changed: ({ message }) => message,
    describe: ({ message }) => `${message}; asking again, for ${duration(deadline.endsAt - clock.now().getTime())} at most`,
    timedOut: (problem, waitedMs) => {
      throw new AppError({ ...problem, message: `${problem.message} (asked for ${duration(waitedMs)})` });
    },
  });
}

function duration(ms: number): string {
  return formatGoDuration(BigInt(Math.max(Math.round(ms / 1000), 0)) * 1_000_000_000n);
}
