const SYNTAX = /^(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|([-+])(\d\d):(\d\d))$/;

/**
 * The same instant in UTC to the second, as Kubernetes prints it; null: invalid. Fractions of a second are
 * dropped.
 * @see Go 1.26 time.Parse with time.RFC3339; metav1.Time
 */
export function normaliseRfc3339(text: string): string | null {
  const match = SYNTAX.exec(text);
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [number, number, number, number, number, number];
  const [offsetHours, offsetMinutes] = [Number(match[8] ?? 0), Number(match[9] ?? 0)];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 24 || offsetMinutes > 60) return null;
  const offset = (offsetHours * 60 + offsetMinutes) * (match[7] === '-' ? -1 : 1);
  // Date.UTC maps years below 100 to 19xx; adding 400 years keeps the calendar identical.
  const time = new Date(Date.UTC(year + 400, month - 1, day, hour, minute - offset, second));
  const [date = '', clock = ''] = time.toISOString().split('T');
  return `${String(time.getUTCFullYear() - 400).padStart(4, '0')}${date.slice(-6)}T${clock.slice(0, 8)}Z`;
}

/** An instant as Kubernetes prints it: UTC, to the second. */
export function formatRfc3339(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

function daysIn(year: number, month: number): number {
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
}
