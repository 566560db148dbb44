import { formatGoDuration } from '../../base/text/go-duration.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';

/** Time of the local host, and of the server at the same moment; null when the server sent none. */
export interface ClockReading {
  readonly local: Date;
  readonly remote: Date | null;
}

/** Larger clock differences are an error: certificates are backdated by minutes. */
const TOLERATED_MS = 5 * 60_000;

/** Whether both clocks are known and agree: then the certificate time is wrong, not a clock. */
export function clocksAgree(clock: ClockReading): boolean {
  return clock.remote !== null && !clocksDiffer(clock);
}

/** Whether the clocks differ by more than the backdating of certificates tolerates. */
export function clocksDiffer({ local, remote }: ClockReading): boolean {
  return remote !== null && Math.abs(local.getTime() - remote.getTime()) > TOLERATED_MS;
}

/**
 * `the local clock shows 2030-01-01T00:00:00Z, the clock of the API server shows 2030-01-01T02:00:00Z (2h0m0s ahead)`
 */
export function describeClocks({ local, remote }: ClockReading): string {
  const ours = `the local clock shows ${formatRfc3339(local)}`;
  if (remote === null) return ours;
  // Computed from the displayed seconds, since the Date header has no fractions.
  const seconds = Math.floor(remote.getTime() / 1000) - Math.floor(local.getTime() / 1000);
  const apart = formatGoDuration(BigInt(Math.abs(seconds)) * 1_000_000_000n);
  return `${ours}, the clock of the API server shows ${formatRfc3339(remote)}${seconds === 0 ? '' : ` (${apart} ${seconds > 0 ? 'ahead' : 'behind'})`}`;
}
