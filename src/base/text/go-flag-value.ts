import { parseGoDuration } from './go-duration.ts';
import { parseIp } from './ip.ts';

const BOOLEANS: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True', '0', 'f', 'F', 'FALSE', 'false', 'False']);
const UNSIGNED = `(?:0[xX]_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0[bB]_?[01]+(?:_[01]+)*|0[oO]?_?[0-7]+(?:_[0-7]+)*|0|[1-9][0-9]*(?:_[0-9]+)*)`;
const INTEGER = new RegExp(`^[+-]?${UNSIGNED}$`);
/** klog's level is decimal, with zeros in front. */
const NATURAL = new RegExp(`^(?:${UNSIGNED}|[0-9]+)$`);
/** More than Go accepts: only texts that are certainly no number are rejected. */
const FLOAT = /^[+-]?(?:[0-9.][0-9a-fxp_.+-]*|inf|infinity|nan)$/i;

const INT = { accepts: (text: string) => INTEGER.test(text), expected: 'an integer' };
const UINT: typeof INT = { accepts: (text) => NATURAL.test(text), expected: 'an integer that is not negative' };
const NUMBER: typeof INT = { accepts: (text) => /[0-9nf]/i.test(text) && FLOAT.test(text), expected: 'a number' };

const TYPES: ReadonlyMap<string, typeof INT> = new Map([
  ['bool', { accepts: (text) => BOOLEANS.has(text), expected: 'true or false' }],
  ['duration', { accepts: (text) => parseGoDuration(text) !== null, expected: 'a duration with a unit, e.g. 30s' }],
  ['ip', { accepts: (text) => text.trim() === '' || parseIp(text.trim()) !== null, expected: 'an IP address' }],
  ...['int', 'int32', 'int64'].map((name) => [name, INT] as const),
  ...['uint', 'uint32', 'uint64', 'Level'].map((name) => [name, UINT] as const),
  ...['float', 'float32', 'float64'].map((name) => [name, NUMBER] as const),
]);

/**
 * What a flag of a pflag type expects if its program rejects this text: `true or false`; null: accepted, or a
 * type that is not checked (strings, lists, maps).
 * @see github.com/spf13/pflag; Go's flag and strconv: base 0, so `0x10` and `1_000` are integers
 */
export function expectedFlagValue(type: string, text: string): string | null {
  const known = TYPES.get(type);
  return known === undefined || known.accepts(text) ? null : known.expected;
}
