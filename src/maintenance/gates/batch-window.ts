import { formatGoDuration } from '../../base/text/go-duration.ts';
import { assessWindows, formatLocalTime, type MaintenanceWindow } from './windows.ts';

/** Expected duration of the first batch without a declared duration. */
const ASSUMED_MS = 600_000;

/**
 * Why a batch does not start now, as a clause; null: it fits into a window, or none is declared.
 * @param given.longestMs duration of the longest batch so far; 0: none has ended
 * @param given.declaredMs declared duration of a batch; 0: none
 */
export function whyWindowClosed(
  windows: readonly MaintenanceWindow[],
  given: { readonly nowMs: number; readonly batch: number; readonly longestMs: number; readonly declaredMs: number },
): string | null {
  if (windows.length === 0) return null;
  const { nowMs, batch } = given;
  const { neededMs, estimate } = estimateOf(given);
  const { fits, opening, next } = assessWindows(windows, { nowMs, neededMs });
  if (fits) return null;
  const opens =
    next === null
      ? `no window is as long as a batch (${estimate})`
      : `the next window opens on ${formatLocalTime(next.startMs, next.timeZone)}`;
  if (opening === null) return `no maintenance window is open; ${opens}`;
  const closes = formatLocalTime(opening.endMs, opening.timeZone);
  return `batch ${batch} may not finish before the maintenance window closes on ${closes} (${estimate}); ${opens}`;
}

/** The expected duration of the next batch, and its source as a clause. */
function estimateOf({ longestMs, declaredMs }: { readonly longestMs: number; readonly declaredMs: number }) {
  const neededMs = Math.max(declaredMs, longestMs) || ASSUMED_MS;
  const source =
    neededMs === longestMs
      ? 'the longest batch took'
      : neededMs === declaredMs
        ? 'the declared duration is'
        : 'assumed for the first batch:';
  return { neededMs, estimate: `${source} ${durationText(neededMs)}` };
}

export function durationText(ms: number): string {
  return formatGoDuration(BigInt(Math.round(ms / 1000)) * 1_000_000_000n);
}
