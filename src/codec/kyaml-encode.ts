import { isJsonObject, type Json } from '../base/json.ts';
import { resolvePlainScalar } from './yaml-scalar.ts';

/**
 * A value as one document of KYAML, the strict subset of YAML with braces and quoted strings, as kubectl and kubeadm print it.
 * @see Kubernetes KEP-5295; sigs.k8s.io/yaml/kyaml
 */
export function encodeKyaml(value: Json): string {
  return `---\n${encodeValue(value, 0)}\n`;
}

function encodeValue(value: Json, depth: number): string {
  if (typeof value === 'string') return encodeString(value, depth + 1);
  if (Array.isArray(value)) return encodeList(value, depth);
  if (isJsonObject(value)) return encodeObject(value, depth);
  return JSON.stringify(value);
}

/** Lists of objects and lists have their brackets next to those of the items. */
function encodeList(list: readonly Json[], depth: number): string {
  if (list.length === 0) return '[]';
  if (list.every((item) => typeof item === 'object' && item !== null))
    return `[${list.map((item) => encodeValue(item, depth)).join(', ')}]`;
  return `[\n${list.map((item) => `${indent(depth + 1)}${encodeValue(item, depth + 1)},\n`).join('')}${indent(depth)}]`;
}

function encodeObject(object: Readonly<Record<string, unknown>>, depth: number): string {
  const members = Object.entries(object) as [string, Json][];
  if (members.length === 0) return '{}';
  const lines = members.map(([key, value]) => `${indent(depth + 1)}${encodeKey(key)}: ${encodeValue(value, depth + 1)},\n`);
  return `{\n${lines.join('')}${indent(depth)}}`;
}

function indent(depth: number): string {
  return '  '.repeat(depth);
}

const SEXAGESIMAL = /^[+-]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;

/** A key is quoted unless it consists of letters, digits and `_`, with `-`, `.` and `/` inside, and no reader takes it for another type. */
function encodeKey(key: string): string {
  const isPlain = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_./-]*[\p{L}\p{N}_])?$/u.test(key);
  return isPlain && resolvePlainScalar(key).type === 'string' && !SEXAGESIMAL.test(key) ? key : `"${escapeText(key, '\\n', '\\t')}"`;
}

/** Strings of several lines have one line each, folded with a backslash; leading white space of a line is escaped. */
function encodeString(text: string, depth: number): string {
  if (!text.includes('\n')) return `"${escapeText(text, '\\n', '\t')}"`;
  const lines = text.split('\n');
  const shown = lines.map((line, i) => {
    const isLast = i === lines.length - 1;
    if (isLast && line === '') return '';
    return `${indent(depth)}${/^\s/.test(line) ? '\\' : ' '}${escapeText(line, '\\n', '\t')}${isLast ? '' : '\\n'}\\\n`;
  });
  return `"\\\n${shown.join('')}${indent(depth)}"`;
}

const NAMED: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\r', '\\r'],
  ['\v', '\\v'],
  ['\0', '\\0'],
  ['\u0085', '\\N'],
  ['\u00a0', '\\_'],
  ['\u2028', '\\L'],
  ['\u2029', '\\P'],
]);

/** Escapes quotes, backslashes and all characters that Go does not print. */
function escapeText(text: string, newline: string, tab: string): string {
  return text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (character) => {
    if (character === '\n') return newline;
    if (character === '\t') return tab;
    const code = character.codePointAt(0) ?? 0;
    const hex = (digits: number): string => code.toString(16).padStart(digits, '0');
    return (
      NAMED.get(character) ??
      (code === 0x1b ? '\\e' : code < 0x20 || code === 0x7f ? `\\x${hex(2)}` : code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`)
    );
  });
}
