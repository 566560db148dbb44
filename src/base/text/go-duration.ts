import { trimTrailing } from './trim-trailing.ts';

const NANOSECOND = 1n;
const MICROSECOND = 1_000n;
const MILLISECOND = 1_000_000n;
const SECOND = 1_000_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;

const MICROSECONDS = { us: MICROSECOND, '\u00b5s': MICROSECOND, '\u03bcs': MICROSECOND };
const UNITS = new Map(Object.entries({ ns: NANOSECOND, ...MICROSECONDS, ms: MILLISECOND, s: SECOND, m: MINUTE, h: HOUR }));

/** One above the largest duration: only a negative duration may have this absolute value. */
const LIMIT = 2n ** 63n;
const PART = /([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)/y;

/**
 * Parses Go's syntax (`1h30m`, `.5m`, `+10s`, `1.5µs`, `0`), as metav1.Duration fields, kubeadm's timeouts
 * and duration flags accept it. Returns nanoseconds; null: invalid, or beyond 64 bits (about 2562047h47m).
 * @see Go 1.26 time.ParseDuration, including the rounding of fractions
 */
export function parseGoDuration(text: string): bigint | null {
  const sign = text.startsWith('-') || text.startsWith('+') ? text.charAt(0) : '';
  const body = text.slice(sign.length);
  if (body === '0') return 0n;
  if (body === '') return null;
  let total = 0n;
  PART.lastIndex = 0;
  while (PART.lastIndex < body.length) {
    const match = PART.exec(body);
    const part = match && parsePart(match[1] ?? '', match[3] ?? '', match[4] ?? '');
    if (part === null) return null;
    // Go adds in unsigned 64 bits: two parts of 2^63 wrap to zero.
    total = BigInt.asUintN(64, total + part);
    if (total > LIMIT) return null;
  }
  if (sign === '-') return -total;
  return total === LIMIT ? null : total;
}

function parsePart(whole: string, fraction: string, unitName: string): bigint | null {
  const unit = UNITS.get(unitName);
  if (unit === undefined || (whole === '' && fraction === '') || whole.length > 4096) return null;
  const count = BigInt(whole);
  if (count > LIMIT / unit) return null;
  const nanoseconds = count * unit + fractionOf(fraction, unit);
  return nanoseconds > LIMIT ? null : nanoseconds;
}

/** Go computes the fraction in floating point; digits that do not fit into 64 bits are ignored. */
function fractionOf(digits: string, unit: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    if (value > (LIMIT - 1n) / 10n) break;
    const next = value * 10n + BigInt(digit);
    if (next > LIMIT) break;
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(unit) / scale)));
}

/** `1m0s`, `1h0m0s`, `1.5s`, `100ms`, `2µs`, `0s`. @see Go 1.26 time.Duration.String */
export function formatGoDuration(nanoseconds: bigint): string {
  const sign = nanoseconds < 0n ? '-' : '';
  const rest = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  if (rest === 0n) return '0s';
  if (rest < MICROSECOND) return `${sign}${rest}ns`;
  if (rest < MILLISECOND) return `${sign}${decimal(rest, MICROSECOND)}\u00b5s`;
  if (rest < SECOND) return `${sign}${decimal(rest, MILLISECOND)}ms`;
  const hours = rest / HOUR;
  const minutes = (rest % HOUR) / MINUTE;
  const seconds = `${decimal(rest % MINUTE, SECOND)}s`;
  if (hours > 0n) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0n ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

function decimal(value: bigint, unit: bigint): string {
  const digits = String(unit).length - 1;
  const fraction = trimTrailing(String(value % unit).padStart(digits, '0'), '0');
  return fraction === '' ? String(value / unit) : `${value / unit}.${fraction}`;
}

/** Fractions are truncated. The text is a valid duration. */
export function goDurationMs(text: string): number {
  return Number((parseGoDuration(text) ?? 0n) / 1_000_000n);
}

/** Whether a text is a Go duration that is a reasonable timeout: from one second to one day. */
export function isTimeLimit(text: string): boolean {
  const nanoseconds = parseGoDuration(text);
  return nanoseconds !== null && nanoseconds >= 1_000_000_000n && nanoseconds <= 86_400_000_000_000n;
}
