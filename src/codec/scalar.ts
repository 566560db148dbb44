import type { Json } from '../base/json.ts';
import { formatGoDuration, parseGoDuration } from '../base/text/go-duration.ts';
import { maskSecrets } from '../base/text/mask.ts';
import { parseQuantity } from '../base/text/quantity.ts';
import { normaliseRfc3339 } from '../base/text/rfc3339.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import type { ScalarNode } from './type-node.ts';

/** The JSON input of the kubelet: numbers as text, because their format decides (`50` is an int32, `50.5` is not). */
export type ScalarToken =
  | { readonly kind: 'null' }
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string };

/** Why a scalar is rejected; `wrongScalar` converts it into a problem. */
export interface ScalarFault {
  readonly kind: 'wrong-type' | 'out-of-range' | 'invalid-duration' | 'invalid-quantity' | 'invalid-timestamp';
  readonly message: string;
  readonly hint?: string | undefined;
}

type ScalarResult = { readonly value: Json } | { readonly fault: ScalarFault };

/**
 * Decodes a scalar with the rules of the kubelet's JSON decoder. Durations and quantities are normalised as
 * Go prints them, timestamps in UTC. An integer beyond ±(2^53 - 1) is decimal text, because a JavaScript
 * number cannot represent it exactly; the encoder recognises it by the type.
 * @param token the caller handles null, except for durations, which reject it
 */
export function readScalar(type: ScalarNode, token: ScalarToken): ScalarResult {
  switch (type.kind) {
    case 'string':
      return token.kind === 'string' ? { value: token.value } : wrongType('must be a string', token, hintString(token));
    case 'bool':
      return token.kind === 'bool' ? { value: token.value } : wrongType('must be true or false', token, hintBool(token));
    case 'int32':
    case 'int64':
    case 'uint32':
      return readInteger(type.kind, token);
    case 'float':
      return readFloat(token);
    case 'duration':
      return readDuration(token);
    case 'durationOrNanoseconds':
      return token.kind === 'number' ? readInteger('int64', token) : readDuration(token);
    case 'quantity':
      return readQuantity(token);
    case 'intOrString':
      return token.kind === 'string' ? { value: token.value } : readInteger('int32', token);
    case 'timestamp':
      return readTimestamp(token);
  }
}

/** Go's value for a null scalar inside a list or map. */
export function zeroScalar(type: ScalarNode): Json {
  switch (type.kind) {
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'duration':
      return '0s';
    case 'quantity':
      return '0';
    case 'timestamp':
      return null;
    default:
      return 0;
  }
}

const RANGES = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
} as const;
const MAX_DIGITS = 400;

function readInteger(type: keyof typeof RANGES, token: ScalarToken): ScalarResult {
  if (token.kind !== 'number') return wrongType('must be an integer', token, hintNumber(token));
  const [min, max] = RANGES[type];
  const isWhole = /^-?[0-9]+$/.test(token.text);
  if (!isWhole && !isHugeWhole(token.text)) return wrongType('must be an integer', token);
  const value = isWhole && token.text.length <= MAX_DIGITS ? BigInt(token.text) : null;
  // Go's parser of unsigned integers accepts no sign, not even for zero.
  if (value === null || value < min || value > max || (min === 0n && token.text.startsWith('-'))) {
    return { fault: { kind: 'out-of-range', message: `must be an integer from ${min} to ${max}, not ${shorten(token.text)}` } };
  }
  return { value: Number.isSafeInteger(Number(value)) ? Number(value) : String(value) };
}

/** `1e+21`: an integer in exponent notation. */
function isHugeWhole(text: string): boolean {
  return /^-?[0-9](?:\.[0-9]+)?e\+[0-9]+$/.test(text);
}

function readFloat(token: ScalarToken): ScalarResult {
  if (token.kind !== 'number') return wrongType('must be a number', token, hintNumber(token));
  const value = Number(token.text);
  if (Number.isFinite(value)) return { value };
  return { fault: { kind: 'out-of-range', message: `must be a 64-bit number, not ${shorten(token.text)}` } };
}

function readDuration(token: ScalarToken): ScalarResult {
  if (token.kind !== 'string') return durationFault(`must be a duration, not ${describe(token)}`, hintDuration(token));
  const nanoseconds = parseGoDuration(token.value);
  if (nanoseconds !== null) return { value: formatGoDuration(nanoseconds) };
  return durationFault(`${describe(token)} is not a valid duration`, hintDurationText(token.value));
}

function durationFault(message: string, hint: string): ScalarResult {
  return { fault: { kind: 'invalid-duration', message, hint } };
}

function readQuantity(token: ScalarToken): ScalarResult {
  if (token.kind === 'bool') return wrongType('must be a quantity', token);
  if (token.kind === 'null') return { value: '0' };
  const text = token.kind === 'string' ? trimGoSpace(token.value) : token.text;
  const quantity = parseQuantity(text);
  if (quantity !== null) return { value: quantity.text };
  const hint = 'Use a number with a suffix such as Mi, Gi, M, G or m';
  return { fault: { kind: 'invalid-quantity', message: `${describe(token)} is not a valid quantity`, hint } };
}

const GO_SPACE = ' \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000';

/** Go trims the JSON text, in which control characters and line separators are escaped and therefore kept. */
function trimGoSpace(text: string): string {
  return trimTrailing(text, GO_SPACE).replace(/^[ \u0085\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+/, '');
}

function readTimestamp(token: ScalarToken): ScalarResult {
  if (token.kind !== 'string') return wrongType('must be a timestamp', token);
  const value = normaliseRfc3339(token.value);
  if (value !== null) return { value };
  const hint = 'Use RFC 3339, such as 2026-01-02T03:04:05Z';
  return { fault: { kind: 'invalid-timestamp', message: `${describe(token)} is not a valid timestamp`, hint } };
}

function wrongType(expected: string, token: ScalarToken, hint?: string): ScalarResult {
  return { fault: { kind: 'wrong-type', message: `${expected}, not ${describe(token)}`, hint } };
}

function hintString(token: ScalarToken): string | undefined {
  const text = token.kind === 'number' ? token.text : token.kind === 'bool' ? String(token.value) : undefined;
  return text === undefined ? undefined : `Quote the value: "${text}"`;
}

function hintBool(token: ScalarToken): string | undefined {
  const text = token.kind === 'string' ? token.value.toLowerCase() : token.kind === 'number' ? token.text : '';
  if (['true', 'yes', 'on', 'y', '1'].includes(text)) return 'Use true, without quotes';
  return ['false', 'no', 'off', 'n', '0'].includes(text) ? 'Use false, without quotes' : undefined;
}

function hintNumber(token: ScalarToken): string | undefined {
  return token.kind === 'string' && /^[-+]?[0-9]+(?:\.[0-9]+)?$/.test(token.value) ? `Use ${token.value}, without quotes` : undefined;
}

function hintDuration(token: ScalarToken): string {
  if (token.kind === 'null') return 'Omit the field, or use 0s';
  return token.kind === 'number' ? `Add a unit, for example ${token.text}s` : 'Use a duration such as 1h30m or 10s';
}

function hintDurationText(text: string): string {
  const days = /^([0-9]{1,6})d$/.exec(text)?.[1];
  if (days !== undefined) return `Days are not a valid unit: use ${Number(days) * 24}h`;
  return /^[0-9]+$/.test(text) ? `Add a unit, for example ${shorten(text)}s` : 'Use a duration such as 1h30m or 10s';
}

function describe(token: ScalarToken): string {
  switch (token.kind) {
    case 'null':
      return 'null';
    case 'bool':
      return String(token.value);
    case 'number':
      return `the number ${shorten(token.text)}`;
    case 'string':
      return `the string ${quote(token.value)}`;
  }
}

/** Quoted, so that leading and trailing spaces are visible; without characters that a terminal interprets. */
function quote(text: string): string {
  return JSON.stringify(shorten(maskSecrets(text))).replace(/\p{C}/gu, ' ');
}

function shorten(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}
