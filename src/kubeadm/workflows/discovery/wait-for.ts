import type { Clock } from '../../../base/clock.ts';
import { AppError, type Problem } from '../../../base/errors.ts';
import type { Reporter } from '../../../base/reporter.ts';
import { formatGoDuration } from '../../../base/text/go-duration.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import type { HttpsClient } from '../../../kube/https-client.ts';

/** Ports of discovery. */
export interface DiscoveryContext {
  readonly web: HttpsClient;
  readonly clock: Clock;
  readonly reporter: Reporter;
  readonly signal?: AbortSignal;
}

/** End of discovery: `timeouts.discovery` limits all steps together. */
export interface Deadline {
  readonly timeoutMs: number;
  readonly endsAt: number;
}

/** Result of one attempt; an attempt that throws is not retried. */
export type Attempt<T> = { readonly done: T } | { readonly retryReason: Problem };

/** Timeout of one request, as in kubeadm. */
const REQUEST_MS = 10_000;
/** kubeadm 1.36 retries every five seconds; the first pauses are shorter, because usually little is missing. */
const PAUSES_MS = [1_000, 2_000, 5_000];
const PROGRESS_MS = 30_000;

/** A deadline that starts now. */
export function deadlineIn(timeoutMs: number, clock: Clock): Deadline {
  return { timeoutMs, endsAt: clock.now().getTime() + timeoutMs };
}

/** Timeout of one request: the remaining time up to `REQUEST_MS`, at least one second. */
export function requestTimeoutMs({ endsAt }: Deadline, clock: Clock): number {
  return Math.max(Math.min(REQUEST_MS, endsAt - clock.now().getTime()), 1_000);
}

/**
 * Retries until an attempt succeeds or the deadline has passed; at least once. Reports the pending problem immediately,
 * when it changes, and every 30 seconds.
 * @throws AppError with the last problem (exit code 1) after the deadline; the signal's reason
 */
export async function waitFor<T>(context: DiscoveryContext, deadline: Deadline, attempt: () => Promise<Attempt<T>>): Promise<T> {
  const { clock } = context;
  return waitUntil(context, {
    probe: async () => {
      const result = await attempt();
      return 'done' in result ? result : { pending: result.retryReason };
    },
    timeoutMs: deadline.endsAt - clock.now().getTime(),
    pauseMs: (_, tries) => PAUSES_MS[tries - 1] ?? 5_000,
    progressMs: PROGRESS_MS,
    changed: ({ message }) => message,
    describe: ({ message }) => `${message}; retrying for up to ${duration(deadline.endsAt - clock.now().getTime())}`,
    timedOut: (problem, waitedMs) => {
      throw new AppError({ ...problem, message: `${problem.message} (gave up after ${duration(waitedMs)})` });
    },
  });
}

function duration(ms: number): string {
  return formatGoDuration(BigInt(Math.max(Math.round(ms / 1000), 0)) * 1_000_000_000n);
}
