import { trimTrailing } from './trim-trailing.ts';

/** `100Mi`, `1.5`, `200m` or `1e3`. The amount is exact: `unscaled` × 10^-`scale`. */
export interface Quantity {
  readonly unscaled: bigint;
  readonly scale: number;
  /** The suffix family of the input; formatting keeps it where that is exact. */
  readonly format: 'BinarySI' | 'DecimalSI' | 'DecimalExponent';
  /** As Go prints a value just parsed: texts that look canonical are unchanged (`1.500k`, `007`). */
  readonly text: string;
}

const DECIMAL_SUFFIXES = new Map(Object.entries({ n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }));
const BINARY_SUFFIXES = new Map(Object.entries({ Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 }));
const DECIMAL_NAMES = new Map([...DECIMAL_SUFFIXES].map(([name, exponent]) => [exponent, name]));
const BINARY_NAMES = new Map([...BINARY_SUFFIXES].map(([name, exponent]) => [exponent, name]));

const MAX_INT64: Amount = { unscaled: 2n ** 63n - 1n, scale: 0 };
/** Smaller parts are rounded up, away from zero. */
const MAX_SCALE = 9;
/** Limits the cost of exact arithmetic; valid quantities are far shorter. */
const MAX_TEXT = 4096;
const SYNTAX = /^([+-]?)([0-9]*)(\.[0-9]*)?((?:[eEinumkKMGTP]+[-+]?[0-9]*|[-+][0-9]*)?)$/;

interface Amount {
  readonly unscaled: bigint;
  readonly scale: number;
}

interface Suffix extends Pick<Quantity, 'format'> {
  readonly exponent: number;
}

/** Without sign and leading zeros; `whole` is `0` when no digit precedes the decimal point. */
interface Digits {
  readonly whole: string;
  readonly fraction: string;
  /** False for a suffix without digits, such as `Mi`: zero in Go's fast path, otherwise rejected. */
  readonly present: boolean;
}

/**
 * Null: not a quantity.
 * @see k8s.io/apimachinery pkg/api/resource (1.36): parts below nano are rounded up, binary amounts are
 *   capped at 2^63-1
 */
export function parseQuantity(text: string): Quantity | null {
  const match = text.length > MAX_TEXT ? null : SYNTAX.exec(text);
  if (match === null || text === '') return null;
  const [, sign = '', zeros = '', point = '', suffixText = ''] = match;
  const written = zeros.replace(/^0+/, '');
  const suffix = parseSuffix(suffixText);
  if (suffix === null) return null;
  const digits = { whole: written || '0', fraction: point.slice(1), present: /[0-9]/.test(text.slice(0, text.length - suffixText.length)) };
  const short = isShort(digits, suffix);
  if (!short && !digits.present) return null;
  const size = short ? amountOf(digits, suffix) : bounded(amountOf(digits, suffix), suffix.format);
  const format = !short && suffix.format === 'BinarySI' && isBelowOne(size) ? 'DecimalSI' : suffix.format;
  const amount = { unscaled: sign === '-' ? -size.unscaled : size.unscaled, scale: size.scale, format };
  return { ...amount, text: text === '0' || (short && looksCanonical(digits, suffix)) ? text : formatQuantity(amount) };
}

function parseSuffix(text: string): Suffix | null {
  const decimal = DECIMAL_SUFFIXES.get(text);
  if (decimal !== undefined) return { format: 'DecimalSI', exponent: decimal };
  const binary = BINARY_SUFFIXES.get(text);
  if (binary !== undefined) return { format: 'BinarySI', exponent: binary };
  if (!/^[eE][-+]?[0-9]+$/.test(text)) return null;
  const exponent = BigInt(text.slice(1).replace(/^\+/, ''));
  // Parsed as 64 bits, stored as 32.
  return exponent >= -(2n ** 63n) && exponent < 2n ** 63n
    ? { format: 'DecimalExponent', exponent: Number(BigInt.asIntN(32, exponent)) }
    : null;
}

/** Whether Go's short representation (64 bits and a power of ten) fits: neither rounded nor capped. */
function isShort({ whole, fraction }: Digits, { format, exponent }: Suffix): boolean {
  if (format !== 'BinarySI') return whole.length + fraction.length <= 18 && exponent - fraction.length >= -MAX_SCALE;
  return fraction === '' && whole.length + Math.trunc(exponent * 0.3) <= 14;
}

/** Go keeps a text that already looks canonical, even when it is not: `1.500k`. */
function looksCanonical({ whole, fraction }: Digits, { format, exponent }: Suffix): boolean {
  if (format === 'BinarySI') return BigInt(whole) % 8n !== 0n;
  return (exponent - fraction.length) % 3 === 0 && !(whole + fraction).endsWith('000') && !whole.startsWith('0');
}

function amountOf({ whole, fraction }: Digits, { format, exponent }: Suffix): Amount {
  const unscaled = BigInt(whole + fraction);
  if (format === 'BinarySI') return { unscaled: unscaled << BigInt(exponent), scale: fraction.length };
  return { unscaled, scale: fraction.length - exponent };
}

function bounded(amount: Amount, format: Quantity['format']): Amount {
  const rounded = roundAway(amount, MAX_SCALE);
  return format === 'BinarySI' && compareQuantities(rounded, MAX_INT64) > 0 ? MAX_INT64 : rounded;
}

/** Truncates decimals beyond `scale`; a truncated remainder adds one unit, away from zero. */
function roundAway({ unscaled, scale: from }: Amount, scale: number): Amount {
  if (from <= scale) return { unscaled, scale: from };
  const unit = unscaled < 0n ? -1n : 1n;
  if (unscaled === 0n) return { unscaled, scale };
  if (from - scale > digitCount(unscaled)) return { unscaled: unit, scale };
  const divisor = 10n ** BigInt(from - scale);
  return { unscaled: unscaled / divisor + (unscaled % divisor === 0n ? 0n : unit), scale };
}

function isBelowOne(amount: Amount): boolean {
  return amount.unscaled > 0n && compareQuantities(amount, { unscaled: 1n, scale: 0 }) < 0;
}

/**
 * The canonical text: no fraction, the largest suffix of its family that keeps it exact, `0` for zero. Binary
 * amounts below 1024 or with a fraction are printed with decimal suffixes. Beyond 10^20 Go has no decimal
 * suffix and drops it; this function does the same.
 * @see k8s.io/apimachinery pkg/api/resource (1.36) CanonicalizeBytes
 */
export function formatQuantity({ unscaled, scale, format }: Pick<Quantity, 'unscaled' | 'scale' | 'format'>): string {
  if (unscaled === 0n) return '0';
  if (format === 'BinarySI') {
    const whole = wholeAmount({ unscaled, scale });
    if (whole !== null && (whole <= -1024n || whole >= 1024n)) return formatBinary(whole);
  }
  let [mantissa, exponent] = withoutZeros(unscaled, -scale);
  while (exponent % 3 !== 0) {
    mantissa *= 10n;
    exponent--;
  }
  if (format === 'DecimalExponent') return exponent === 0 ? String(mantissa) : `${mantissa}e${exponent}`;
  return `${mantissa}${DECIMAL_NAMES.get(exponent) ?? ''}`;
}

function formatBinary(whole: bigint): string {
  let [mantissa, exponent] = [whole, 0];
  while (mantissa % 1024n === 0n) {
    mantissa /= 1024n;
    exponent += 10;
  }
  return `${mantissa}${BINARY_NAMES.get(exponent) ?? ''}`;
}

/** The amount when it is an integer, else null. */
function wholeAmount({ unscaled, scale }: Amount): bigint | null {
  if (scale <= 0) return unscaled * 10n ** BigInt(-scale);
  const divisor = 10n ** BigInt(scale);
  return unscaled % divisor === 0n ? unscaled / divisor : null;
}

function withoutZeros(unscaled: bigint, exponent: number): [bigint, number] {
  const digits = String(unscaled);
  const zeros = digits.length - trimTrailing(digits, '0').length;
  return [BigInt(digits.slice(0, digits.length - zeros)), exponent + zeros];
}

/** -1, 0 or 1. */
export function quantitySign({ unscaled }: Amount): -1 | 0 | 1 {
  return unscaled > 0n ? 1 : unscaled < 0n ? -1 : 0;
}

/** Larger values cannot occur in sums of the program. */
const MAX_VALUE_DIGITS = 64;

/** An integer, rounded up away from zero (bytes of a memory quantity); beyond 64 digits ±10^64. */
export function quantityValue({ unscaled, scale }: Quantity): bigint {
  const { unscaled: value, scale: left } = roundAway({ unscaled, scale }, 0);
  if (value === 0n) return 0n;
  if (digitCount(value) - left > MAX_VALUE_DIGITS) return (value < 0n ? -1n : 1n) * 10n ** BigInt(MAX_VALUE_DIGITS);
  return value * 10n ** BigInt(-left);
}

/** Compares two quantities by amount: -1, 0 or 1. Their formats are ignored. */
export function compareQuantities(a: Amount, b: Amount): number {
  const [signA, signB] = [quantitySign(a), quantitySign(b)];
  if (signA !== signB || signA === 0) return Math.sign(signA - signB);
  // Exponents reach 2^31: comparing the number of digits first avoids expanding amounts of different
  // magnitude.
  const [lengthA, lengthB] = [digitCount(a.unscaled) - a.scale, digitCount(b.unscaled) - b.scale];
  if (lengthA !== lengthB) return lengthA > lengthB ? signA : -signA;
  const shift = a.scale - b.scale;
  const [x, y] = [a.unscaled * 10n ** BigInt(Math.max(-shift, 0)), b.unscaled * 10n ** BigInt(Math.max(shift, 0))];
  return x === y ? 0 : x > y ? 1 : -1;
}

function digitCount(value: bigint): number {
  return String(value < 0n ? -value : value).length;
}
