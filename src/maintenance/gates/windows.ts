import { memoized } from '../../base/memoized.ts';
import { goDurationMs } from '../../base/text/go-duration.ts';

export const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;

/** A maintenance window that opens at the same local time on some days of the week. */
export interface MaintenanceWindow {
  /** Days on which the window opens, also if it closes on the next day. Absent: each day. */
  readonly days?: readonly (typeof DAYS)[number][] | undefined;
  /** `HH:MM`, local time of the time zone. */
  readonly startTime: string;
  /** `HH:MM`; not later than `startTime`: on the next day. */
  readonly endTime?: string;
  /** Duration from the start, in place of `endTime`. */
  readonly duration?: string;
  /** IANA name, e.g. `Europe/Berlin`. */
  readonly timeZone: string;
}

/** A time in which windows are open without interruption. Milliseconds since the epoch; the end is exclusive. */
export interface Opening {
  readonly startMs: number;
  readonly endMs: number;
  readonly timeZone: string;
}

/** `opening`: the present one; null: the windows are closed. `next`: the next one that is long enough; null: none is. */
interface WindowState {
  readonly fits: boolean;
  readonly opening: Opening | null;
  readonly next: Opening | null;
}

const DAY_MS = 86_400_000;
/** Windows last 25 hours at most, in the night in which clocks are set back. */
const DAYS_BEFORE = 3;
/** Two weeks have each window twice, of which a change of clocks shortens one at most. */
const DAYS_AFTER = 15;

/** Whether work that takes a time fits into the open window, and otherwise the next window in which it fits. */
export function assessWindows(
  windows: readonly MaintenanceWindow[],
  { nowMs, neededMs }: { readonly nowMs: number; readonly neededMs: number },
): WindowState {
  const openings = openingsAround(windows, nowMs);
  const opening = openings.find(({ startMs, endMs }) => startMs <= nowMs && nowMs < endMs) ?? null;
  const next = openings.find(({ startMs, endMs }) => startMs > nowMs && endMs - startMs >= neededMs) ?? null;
  return { fits: opening !== null && nowMs + neededMs <= opening.endMs, opening, next };
}

/** The openings of the days around a time, in order; windows that overlap or follow each other immediately are one. */
export function openingsAround(windows: readonly MaintenanceWindow[], nowMs: number): readonly Opening[] {
  const each = windows.flatMap((window) => openingsOf(window, nowMs)).toSorted((a, b) => a.startMs - b.startMs);
  const merged: Opening[] = [];
  for (const opening of each) {
    const last = merged.at(-1);
    if (last === undefined || opening.startMs > last.endMs) merged.push(opening);
    else merged[merged.length - 1] = { ...last, endMs: Math.max(last.endMs, opening.endMs) };
  }
  return merged;
}

function openingsOf({ days = DAYS, startTime, endTime, duration, timeZone }: MaintenanceWindow, nowMs: number): readonly Opening[] {
  const today = Math.floor(localMs(nowMs, timeZone) / DAY_MS);
  return Array.from({ length: DAYS_BEFORE + DAYS_AFTER + 1 }, (_, i) => today - DAYS_BEFORE + i).flatMap((day) => {
    const name = DAYS[new Date(day * DAY_MS).getUTCDay()] as (typeof DAYS)[number];
    if (!days.includes(name)) return [];
    const startMs = instantOf(day * DAY_MS + minutesOf(startTime) * 60_000, timeZone);
    const endDay = endTime !== undefined && minutesOf(endTime) <= minutesOf(startTime) ? day + 1 : day;
    const endMs =
      endTime === undefined ? startMs + goDurationMs(duration ?? '0s') : instantOf(endDay * DAY_MS + minutesOf(endTime) * 60_000, timeZone);
    // The whole window may be in the hour that is skipped when clocks are set forward.
    return endMs > startMs ? [{ startMs, endMs, timeZone }] : [];
  });
}

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}

/**
 * The instant of a local time. A local time that occurs twice is the first one; one that is skipped is the instant at which clocks
 * are set forward.
 * @param wallMs the local time, written as milliseconds of UTC
 */
function instantOf(wallMs: number, timeZone: string): number {
  const [before, after] = [wallMs - MOST_OFFSET_MS, wallMs + MOST_OFFSET_MS];
  const offsets = [before, after].map((at) => localMs(at, timeZone) - at);
  const found = offsets.map((offset) => wallMs - offset).filter((at) => localMs(at, timeZone) === wallMs);
  if (found.length > 0) return Math.min(...found);
  let [low, high] = [before, after];
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000;
    if (localMs(middle, timeZone) < wallMs) low = middle;
    else high = middle;
  }
  return high;
}

/** More than the difference between any local time and UTC, including a day that a zone skips. */
const MOST_OFFSET_MS = 38 * 3_600_000;

const formatOf = memoized(
  (timeZone: string) =>
    new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    }),
);

/** The local time of an instant, written as milliseconds of UTC. */
function localMs(ms: number, timeZone: string): number {
  const part: Record<string, number> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(ms)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

export function isTimeZone(name: string): boolean {
  try {
    // Offsets such as +01:00 know no daylight saving time.
    return /^[A-Za-z]/.test(name) && formatOf(name) !== undefined;
  } catch {
    return false;
  }
}

/** `Mon 2026-11-30 22:00 Europe/Berlin`. */
export function formatLocalTime(ms: number, timeZone: string): string {
  const local = new Date(localMs(ms, timeZone));
  return `${DAYS[local.getUTCDay()]} ${local.toISOString().slice(0, 16).replace('T', ' ')} ${timeZone}`;
}

/** `Mon,Tue 22:00-04:00 Europe/Berlin`. */
export function describeWindow({ days, startTime, endTime, duration, timeZone }: MaintenanceWindow): string {
  return `${days === undefined ? 'each day' : days.join(',')} ${startTime}${endTime === undefined ? ` for ${duration}` : `-${endTime}`} ${timeZone}`;
}
