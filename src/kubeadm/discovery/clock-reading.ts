import { formatGoDuration } from '../../base/text/go-duration.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';

/** What this machine's clock says, and what the server's did at the same time; null when it did not tell. */
export interface ClockReading {
  readonly local: Date;
  readonly remote: Date | null;
}

/** From here on clocks count as set wrong: certificates are dated back by minutes. */
const TOLERATED_MS = 5 * 60_000;

/** Whether both clocks are known and agree: then the time of a certificate is wrong, not a clock. */
export function clocksAgree(clock: ClockReading): boolean {
  return clock.remote !== null && !clocksDiffer(clock);
}

/** Whether the two clocks are further apart than certificates forgive. */
export function clocksDiffer({ local, remote }: ClockReading): boolean {
  return remote !== null && Math.abs(local.getTime() - remote.getTime()) > TOLERATED_MS;
}

/** `this machine's clock says 2030-01-01T00:00:00Z, that of the API server 2030-01-01T02:00:00Z, 2h0m0s later` */
export function describeClocks({ local, remote }: ClockReading): string {
  const ours = `the local clock shows ${formatRfc3339(local)}`;
  if (remote === null) return ours;
  // Of the seconds that are shown: the header Date has no fractions.
  const seconds = Math.floor(remote.getTime() / 1000) - Math.floor(local.getTime() / 1000);
  const apart = formatGoDuration(BigInt(Math.abs(seconds)) * 1_000_000_000n);
  return `${ours}, the clock of the API server ${formatRfc3339(remote)}${seconds === 0 ? '' : `, ${apart} ${seconds > 0 ? 'ahead' : 'behind'}`}`;
}
