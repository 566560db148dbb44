import { isJsonObject } from '../base/json.ts';
import { sortKeysNaturally } from '../base/text/natural-order.ts';
import type { TypeNode } from './type-node.ts';
import { resolvePlainScalar } from './yaml-scalar.ts';

/** An encodable value: JSON, and integers of any size as bigint. */
export type YamlValue = null | boolean | number | bigint | string | readonly YamlValue[] | { readonly [key: string]: YamlValue };

/**
 * Encodes JSON data as YAML, byte-for-byte identical to Kubernetes components (kubeadm's config.yaml,
 * ConfigMaps, static pods): keys in natural order, lists not indented below their key, strings quoted only
 * where they would be read as another type, `|` for multi-line text, other text folded at the first space
 * after column 80. Two intended differences, so that all parsers read the text alike: text with the line separators
 * U+0085, U+2028 or U+2029 and the key `<<`, a merge without quotes, are always double-quoted.
 * @param type the type of the value, if JSON data holds integers beyond ±(2^53 - 1) as decimal text (see
 *   `withBigIntegers`)
 * @returns the text, with a final newline
 * @see sigs.k8s.io/yaml 1.6, go.yaml.in/yaml/v2 emitter and key order
 */
export function encodeYaml(given: YamlValue, type?: TypeNode): string {
  const value = type === undefined ? given : withBigIntegers(given, type);
  const out: string[] = [];
  if (!isBlock(value)) return `${inline(value, { indent: 2, column: 0 })}\n`;
  writeBlock(out, value, { indent: 0, started: false });
  return out.join('');
}

/**
 * Converts integers beyond ±(2^53 - 1), which JSON values hold as decimal text, where the field's type is an
 * integer.
 */
export function withBigIntegers(value: YamlValue, type: TypeNode | undefined): YamlValue {
  if (typeof value === 'string')
    return (type?.kind === 'int64' || type?.kind === 'durationOrNanoseconds') && isBigInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) {
    const items = type?.kind === 'list' ? type.items : undefined;
    return (value as readonly YamlValue[]).map((item) => withBigIntegers(item, items));
  }
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value as YamlMap);
  return Object.fromEntries(members.map(([key, item]) => [key, withBigIntegers(item, memberType(type, key))]));
}

function memberType(type: TypeNode | undefined, key: string): TypeNode | undefined {
  if (type?.kind === 'map') return type.values;
  return type?.kind === 'object' ? type.fields.get(key)?.type : undefined;
}

function isBigInteger(text: string): boolean {
  return /^-?[0-9]{16,19}$/.test(text) && !Number.isSafeInteger(Number(text));
}

type YamlMap = { readonly [key: string]: YamlValue };
/** A non-empty collection, written over several lines. Empty ones are `[]` and `{}`. */
function isBlock(value: YamlValue): value is readonly YamlValue[] | YamlMap {
  if (typeof value !== 'object' || value === null) return false;
  return Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0;
}

/** The start of a block: its indentation, and whether the line already has content (after `- `). */
interface BlockPlace {
  readonly indent: number;
  readonly started: boolean;
}

/** The start of a string (columns from 0), and the indentation of its further lines. */
interface Place {
  readonly indent: number;
  readonly column: number;
}

function writeBlock(out: string[], value: readonly YamlValue[] | YamlMap, place: BlockPlace): void {
  if (Array.isArray(value)) writeList(out, value as readonly YamlValue[], place);
  else writeMap(out, value as YamlMap, place);
}

function writeList(out: string[], items: readonly YamlValue[], { indent, started }: BlockPlace): void {
  for (const [index, item] of items.entries()) {
    out.push(started && index === 0 ? '- ' : `${' '.repeat(indent)}- `);
    writeAfterMark(out, item, indent + 2);
  }
}

function writeMap(out: string[], map: YamlMap, { indent, started }: BlockPlace): void {
  const margin = ' '.repeat(indent);
  for (const [index, key] of sortKeysNaturally(Object.keys(map)).entries()) {
    const value = map[key] as YamlValue;
    if (!started || index > 0) out.push(margin);
    if (isSimpleKey(key)) {
      const name = encodeString(key, null);
      out.push(name, ':');
      writeValue(out, value, { indent, column: indent + codePoints(name) + 2 });
    } else {
      out.push('? ', encodeString(key, { indent: indent + 2, column: indent + 2 }), '\n', margin, ': ');
      writeAfterMark(out, value, indent + 2);
    }
  }
}

/** Writes the value after `- ` or after `: ` of a long key: blocks begin on the same line. */
function writeAfterMark(out: string[], value: YamlValue, indent: number): void {
  if (isBlock(value)) writeBlock(out, value, { indent, started: true });
  else out.push(inline(value, { indent, column: indent }), '\n');
}

/** Writes the value after `key:`; lists are not indented. */
function writeValue(out: string[], value: YamlValue, { indent, column }: Place): void {
  if (isBlock(value)) {
    out.push('\n');
    writeBlock(out, value, { indent: Array.isArray(value) ? indent : indent + 2, started: false });
  } else out.push(' ', inline(value, { indent: indent + 2, column }), '\n');
}

function inline(value: YamlValue, place: Place): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return encodeString(value, place);
  if (typeof value === 'number') return encodeNumber(value);
  if (typeof value === 'object') return Array.isArray(value) ? '[]' : '{}';
  return String(value);
}

/** 64-bit integers in full, others as Go's shortest `%g`: with an exponent below 1e-4 and from 1e+06 on. */
function encodeNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? '.nan' : value > 0 ? '.inf' : '-.inf';
  const text = String(value === 0 ? 0 : value);
  if (Number.isInteger(value) && !text.includes('e') && BigInt(text) >= -(2n ** 63n) && BigInt(text) < 2n ** 64n) return text;
  const [mantissa = '', exponentText = ''] = value.toExponential().split('e');
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return text;
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

const UNPRINTABLE = /[^\n\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const LINE_SEPARATOR = /[\u0085\u2028\u2029]/;
/** Special without quotes: a leading indicator, a colon at the end of a word, a comment. */
const INDICATOR = /^(?:[#,[\]{}&*!|>'"%@`]|[?:-](?: |$)|---|\.\.\.)|:(?: |$)| #/;
const EDGE_SPACE = /^ | $/;

const MERGE_KEY = '<<';

/** `place` is null for a key, which must stay on one line. */
function encodeString(text: string, place: Place | null): string {
  if (UNPRINTABLE.test(text) || LINE_SEPARATOR.test(text) || / \n/.test(text)) return doubleQuoted(text, place);
  if (text.includes('\n')) return place === null || text.endsWith(' ') ? doubleQuoted(text, place) : literal(text, place.indent);
  if (!readsAsString(text) || (place === null && text === MERGE_KEY)) return doubleQuoted(text, place);
  if (EDGE_SPACE.test(text) || INDICATOR.test(text)) return singleQuoted(text, place);
  return place === null ? text : fold(text, place);
}

function literal(text: string, indent: number): string {
  const margin = ' '.repeat(indent);
  const hint = /^[ \n]/.test(text) ? '2' : '';
  const chomp = !text.endsWith('\n') ? '-' : text === '\n' || text.endsWith('\n\n') ? '+' : '';
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  return [`|${hint}${chomp}`, ...lines.map((line) => (line === '' ? '' : margin + line))].join('\n');
}

const BEST_WIDTH = 80;

/** Breaks a line at single spaces beyond column 80, as Go does: the line break replaces the space. */
function fold(text: string, { indent, column }: Place): string {
  if (column + text.length <= BEST_WIDTH || !text.includes(' ')) return text;
  const margin = `\n${' '.repeat(indent)}`;
  let at = column;
  let out = '';
  const chars = [...text];
  for (const [index, char] of chars.entries()) {
    const breaks = at > BEST_WIDTH && isFoldingSpace(chars, index) && chars[index + 1] !== ' ';
    out += breaks ? margin : char;
    at = breaks ? indent : at + 1;
  }
  return out;
}

function isFoldingSpace(chars: readonly string[], index: number): boolean {
  return chars[index] === ' ' && index > 0 && index < chars.length - 1 && chars[index - 1] !== ' ';
}

function singleQuoted(text: string, place: Place | null): string {
  const inner = text.replaceAll("'", "''");
  return place === null ? `'${inner}'` : `'${fold(inner, { indent: place.indent, column: place.column + 1 })}'`;
}

const CONTROLS = { '\0': '0', '\x07': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', '\x1b': 'e' };
const SEPARATORS = { '\u0085': 'N', '\u00a0': '_', '\u2028': 'L', '\u2029': 'P' };
const ESCAPES = new Map(Object.entries({ ...CONTROLS, ...SEPARATORS, '"': '"', '\\': '\\' }));

function doubleQuoted(text: string, place: Place | null): string {
  // The Go emitter treats every character as a byte order mark when the first one is.
  const escapeAll = text.startsWith('\ufeff');
  const chars = [...text];
  let column = (place?.column ?? 0) + 1;
  let out = '"';
  for (const [index, char] of chars.entries()) {
    if (place && !escapeAll && column > BEST_WIDTH && isFoldingSpace(chars, index)) {
      out += `\n${' '.repeat(place.indent)}${chars[index + 1] === ' ' ? '\\' : ''}`;
      column = place.indent + (chars[index + 1] === ' ' ? 1 : 0);
      continue;
    }
    const plain = !escapeAll && char !== '"' && char !== '\\' && char !== '\n' && !UNPRINTABLE.test(char);
    const shown = plain ? char : `\\${ESCAPES.get(char) ?? hexEscape(char.codePointAt(0) ?? 0)}`;
    column += plain ? 1 : shown.length;
    out += shown;
  }
  return `${out}"`;
}

function hexEscape(code: number): string {
  const hex = code.toString(16).toUpperCase();
  if (code <= 0xff) return `x${hex.padStart(2, '0')}`;
  return code <= 0xffff ? `u${hex.padStart(4, '0')}` : `U${hex.padStart(8, '0')}`;
}

/** Base 60, which Kubernetes does not support, is quoted for other YAML parsers. */
const BASE_60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const ODD_BINARY = /^0b[-+][01]+$/;

function readsAsString(text: string): boolean {
  if (BASE_60.test(text) || ODD_BINARY.test(text)) return false;
  const { type } = resolvePlainScalar(text);
  return type === 'string' || (type === 'timestamp' && !isCalendarDate(text));
}

/** Text in timestamp format that is not a valid date, such as 2001-02-30, is a string. */
function isCalendarDate(text: string): boolean {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = (text.match(/\d+/g) ?? []).map(Number);
  const [, offsetHours = '0', offsetMinutes = '0'] = /[-+](\d\d):(\d\d)$/.exec(text.slice(text.indexOf(':') + 1)) ?? [];
  const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  return day <= days && hour < 24 && minute < 60 && second < 60 && Number(offsetHours) <= 24 && Number(offsetMinutes) <= 60;
}

const MAX_SIMPLE_KEY_BYTES = 128;

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function isSimpleKey(key: string): boolean {
  if (key.includes('\n') || LINE_SEPARATOR.test(key) || key.includes('\r')) return false;
  // A UTF-16 code unit needs at most three bytes in UTF-8.
  return key.length * 3 <= MAX_SIMPLE_KEY_BYTES || new TextEncoder().encode(key).length <= MAX_SIMPLE_KEY_BYTES;
}
