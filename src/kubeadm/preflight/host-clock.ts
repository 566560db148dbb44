import type { Finding } from './check.ts';

/** Certificates are backdated by some minutes. */
const CLOCK_BEHIND_SECONDS = 300;
const CLOCK_AHEAD_SECONDS = 3600;

/**
 * The difference of a host's clock from the local clock, which discovery compares with that of the API server.
 * @param clock Unix seconds
 * @param now Unix milliseconds on the local host
 */
export function clockFindings(clock: number | null, now: number): readonly Finding[] {
  if (clock === null) return [];
  const behind = Math.round(now / 1000) - clock;
  const id = 'HostClock';
  if (behind >= CLOCK_BEHIND_SECONDS) {
    const message = `the clock of the host is ${inMinutes(behind)} behind the local clock: new certificates would not be valid on the host yet`;
    return [{ id, severity: 'error', message, hint: 'Synchronize the clock (timedatectl set-ntp true)' }];
  }
  if (-behind < CLOCK_AHEAD_SECONDS) return [];
  const message = `the clock of the host is ${inMinutes(-behind)} ahead of the local clock. Synchronize the clocks (timedatectl set-ntp true)`;
  return [{ id, severity: 'warning', message }];
}

function inMinutes(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} minutes` : minutes < 2880 ? `${Math.round(minutes / 60)} hours` : `${Math.round(minutes / 1440)} days`;
}
