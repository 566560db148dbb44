import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assessWindows,
  describeWindow,
  formatLocalTime,
  isTimeZone,
  type MaintenanceWindow,
  openingsAround,
} from '../../../../src/maintenance/gates/windows.ts';

const HOUR = 3_600_000;
const BERLIN = { timeZone: 'Europe/Berlin' };

/** The openings that begin in a time, as `start – end` in UTC. */
function openings(window: MaintenanceWindow | readonly MaintenanceWindow[], from: string, to: string): readonly string[] {
  const utc = (ms: number): string => new Date(ms).toISOString().slice(5, 16);
  return openingsAround([window].flat(), Date.parse(from))
    .filter(({ startMs }) => startMs >= Date.parse(from) && startMs < Date.parse(to))
    .map(({ startMs, endMs }) => `${utc(startMs)} – ${utc(endMs)}`);
}

describe('maintenance windows', () => {
  it('open at the local time of their zone on their days', () => {
    expect(openings({ days: ['Tue'], startTime: '22:00', endTime: '23:30', ...BERLIN }, '2026-07-01T00:00Z', '2026-07-10T00:00Z')).toEqual([
      '07-07T20:00 – 07-07T21:30',
    ]);
    expect(openings({ startTime: '09:00', duration: '90m', timeZone: 'Asia/Kolkata' }, '2026-07-01T00:00Z', '2026-07-02T00:00Z')).toEqual([
      '07-01T03:30 – 07-01T05:00',
    ]);
  });

  it('that cross midnight belong to the day on which they open', () => {
    const window: MaintenanceWindow = { days: ['Fri'], startTime: '22:00', endTime: '04:00', timeZone: 'Etc/UTC' };
    expect(openings(window, '2026-07-01T00:00Z', '2026-07-08T00:00Z')).toEqual(['07-03T22:00 – 07-04T04:00']);
    expect(openings({ ...window, endTime: '22:00' }, '2026-07-01T00:00Z', '2026-07-08T00:00Z')).toEqual(['07-03T22:00 – 07-04T22:00']);
  });

  it('are one if they overlap or touch', () => {
    const each = { timeZone: 'Etc/UTC', days: ['Mon'] as const };
    const windows = [
      { ...each, startTime: '20:00', endTime: '22:00' },
      { ...each, startTime: '21:00', endTime: '23:00' },
      { ...each, startTime: '23:00', endTime: '00:00' },
    ];
    expect(openings(windows, '2026-07-06T00:00Z', '2026-07-07T00:00Z')).toEqual(['07-06T20:00 – 07-07T00:00']);
  });

  it('are an hour shorter or longer in the night of a change of clocks', () => {
    const night: MaintenanceWindow = { startTime: '01:00', endTime: '05:00', ...BERLIN };
    expect(openings(night, '2026-03-28T12:00Z', '2026-03-29T12:00Z')).toEqual(['03-29T00:00 – 03-29T03:00']);
    expect(openings(night, '2026-10-24T12:00Z', '2026-10-25T12:00Z')).toEqual(['10-24T23:00 – 10-25T04:00']);
    const lasting: MaintenanceWindow = { startTime: '01:00', duration: '4h', ...BERLIN };
    expect(openings(lasting, '2026-03-28T12:00Z', '2026-03-29T12:00Z')).toEqual(['03-29T00:00 – 03-29T04:00']);
  });

  it('begin after a skipped hour, and in the first of two equal hours', () => {
    expect(openings({ startTime: '02:30', endTime: '04:00', ...BERLIN }, '2026-03-28T12:00Z', '2026-03-29T12:00Z')).toEqual([
      '03-29T01:00 – 03-29T02:00',
    ]);
    expect(openings({ startTime: '02:15', endTime: '02:45', ...BERLIN }, '2026-03-28T12:00Z', '2026-03-29T12:00Z')).toEqual([]);
    expect(openings({ startTime: '02:15', endTime: '02:45', ...BERLIN }, '2026-10-24T12:00Z', '2026-10-25T12:00Z')).toEqual([
      '10-25T00:15 – 10-25T00:45',
    ]);
    // Lord Howe sets its clocks by half an hour; Samoa skipped 2011-12-30.
    expect(
      openings({ startTime: '02:10', endTime: '03:00', timeZone: 'Australia/Lord_Howe' }, '2026-10-03T12:00Z', '2026-10-04T12:00Z'),
    ).toEqual(['10-03T15:30 – 10-03T16:00']);
    expect(openings({ startTime: '10:00', endTime: '11:00', timeZone: 'Pacific/Apia' }, '2011-12-29T00:00Z', '2012-01-01T00:00Z')).toEqual([
      '12-29T20:00 – 12-29T21:00',
      '12-30T20:00 – 12-30T21:00',
      '12-31T20:00 – 12-31T21:00',
    ]);
  });

  it('have the length of their local times, give or take the change of clocks', () => {
    const zones = [
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'America/Santiago',
      'Africa/Casablanca',
      'Asia/Kathmandu',
      'Etc/UTC',
    ];
    const minute = fc.integer({ min: 0, max: 1439 });
    const text = (minutes: number): string =>
      `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
    fc.assert(
      fc.property(fc.constantFrom(...zones), minute, minute, fc.integer({ min: 0, max: 3650 }), (timeZone, start, end, day) => {
        const nowMs = Date.UTC(2024, 0, 1) + day * 24 * HOUR;
        const window: MaintenanceWindow = { startTime: text(start), endTime: text(end), days: ['Sun', 'Wed'], timeZone };
        const length = ((end - start + 1440) % 1440 || 1440) * 60_000;
        for (const { startMs, endMs } of openingsAround([window], nowMs)) {
          const isExact = Math.abs(endMs - startMs - length) <= HOUR;
          const local = formatLocalTime(startMs, timeZone);
          if (!isExact) throw new Error(`${local}: ${endMs - startMs} ms instead of ${length}`);
          const isOnDay = /^(?:Sun|Wed) /.test(local);
          if (!isOnDay) throw new Error(`opens on ${local}`);
          // Only a time that the zone skips is moved, to the end of the skipped time.
          const isAtTime = local.includes(` ${text(start)} `) || Number(local.slice(15, 17)) * 60 + Number(local.slice(18, 20)) > start;
          if (!isAtTime) throw new Error(`opens at ${local} instead of ${text(start)}`);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('permit exactly the work that ends before they close', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 14 * 24 * 60 }), fc.integer({ min: 1, max: 600 }), (minutes, needed) => {
        const nowMs = Date.UTC(2026, 9, 20) + minutes * 60_000;
        const windows: readonly MaintenanceWindow[] = [
          { days: ['Sat', 'Sun'], startTime: '22:00', endTime: '04:00', ...BERLIN },
          { days: ['Wed'], startTime: '13:00', duration: '2h', timeZone: 'America/New_York' },
        ];
        const neededMs = needed * 60_000;
        const { fits, opening, next } = assessWindows(windows, { nowMs, neededMs });
        expect(fits).toBe(opening !== null && opening.startMs <= nowMs && nowMs + neededMs <= opening.endMs);
        if (needed <= 6 * 60) expect(next).not.toBeNull();
        if (next !== null) expect(assessWindows(windows, { nowMs: next.startMs, neededMs }).fits).toBe(true);
      }),
    );
  });

  it('name the next opening that is long enough', () => {
    const windows: readonly MaintenanceWindow[] = [
      { days: ['Mon'], startTime: '10:00', endTime: '11:00', timeZone: 'Etc/UTC' },
      { days: ['Thu'], startTime: '10:00', endTime: '14:00', timeZone: 'Etc/UTC' },
    ];
    const at = { nowMs: Date.parse('2026-07-05T00:00Z'), neededMs: 2 * HOUR };
    expect(formatLocalTime(assessWindows(windows, at).next?.startMs ?? 0, 'Etc/UTC')).toBe('Thu 2026-07-09 10:00 Etc/UTC');
    expect(assessWindows(windows, { ...at, neededMs: 5 * HOUR }).next).toBeNull();
  });

  it('are described in one line', () => {
    expect(describeWindow({ days: ['Sat', 'Sun'], startTime: '22:00', endTime: '04:00', ...BERLIN })).toBe(
      'Sat,Sun 22:00-04:00 Europe/Berlin',
    );
    expect(describeWindow({ startTime: '22:00', duration: '6h0m0s', ...BERLIN })).toBe('each day 22:00 for 6h0m0s Europe/Berlin');
    expect(['Europe/Berlin', 'UTC', '+01:00', 'Mars/Olympus', ''].map(isTimeZone)).toEqual([true, true, false, false, false]);
  });
});
