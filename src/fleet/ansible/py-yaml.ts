import type { SourceEntry, SourceNode, SourceScalar } from '../../codec/source.ts';
import { type AnsibleValue, STRUCTURE } from './value.ts';

/**
 * Plain values as PyYAML reads them, which is YAML 1.1 too but not as Kubernetes has it: `y` and `n` are texts, `12:30` is a number, `1e3` is not.
 * @see PyYAML resolver.py
 */
const BOOL = /^(?:(yes|Yes|YES|true|True|TRUE|on|On|ON)|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const NULL = /^(?:~|null|Null|NULL|)$/;
const INT = /^([-+]?)(?:0b([01_]+)|0x([0-9a-fA-F_]+)|0([0-7_]+)|(0|[1-9][0-9_]*)|([1-9][0-9_]*(?::[0-5]?[0-9])+))$/;
const FLOAT = /^[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?$/;
const SEXAGESIMAL_FLOAT = /^([-+]?)([0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)$/;

/** A node as a variable's value. `text` is that of the document, in which the node has its place. */
export function pyValue(node: SourceNode, text: string): AnsibleValue {
  if (node.kind !== 'scalar') return STRUCTURE;
  return isPlain(node, text) ? plainValue(node.text) : node.scalar.type === 'null' ? null : node.text;
}

/** A key as it was written: `n`, where Kubernetes reads `false`. */
export function pyKey({ key, keyOffset }: SourceEntry, text: string): string {
  if (text.startsWith(key, keyOffset) || /["'?*&!{[]/.test(text[keyOffset] ?? '"')) return key;
  const word = /[^\s:,[\]{}]+/y;
  word.lastIndex = keyOffset;
  return word.exec(text)?.[0] ?? key;
}

/** Not quoted, no block and no alias: the value stands where the node is. */
function isPlain({ text: value, offset }: SourceScalar, text: string): boolean {
  return text.startsWith(value, offset) && !/["'|>*&!]/.test(text[offset] ?? '');
}

function plainValue(text: string): AnsibleValue {
  const bool = BOOL.exec(text);
  if (bool) return bool[1] !== undefined;
  if (NULL.test(text)) return null;
  const int = INT.exec(text);
  if (int) return integer(int) ?? text;
  const digits = text.replace(/_/g, '');
  if (FLOAT.test(text)) return Number(digits);
  const [, sign, parts] = SEXAGESIMAL_FLOAT.exec(text) ?? [];
  return parts === undefined ? text : signed(sign, sixties(parts.replace(/_/g, '')));
}

function integer([, sign, binary, hex, octal, decimal, sixty]: RegExpExecArray): number | null {
  const clean = (digits: string): string => digits.replace(/_/g, '');
  for (const [digits, base] of [
    [binary, 2],
    [hex, 16],
    [octal, 8],
    [decimal, 10],
  ] as const) {
    if (digits === undefined) continue;
    const value = clean(digits) === '' ? (base === 8 ? 0 : Number.NaN) : Number.parseInt(clean(digits), base);
    return Number.isNaN(value) ? null : signed(sign, value);
  }
  return sixty === undefined ? null : signed(sign, sixties(clean(sixty)));
}

function sixties(text: string): number {
  return text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
}

function signed(sign: string | undefined, value: number): number {
  return sign === '-' && value !== 0 ? -value : value;
}
