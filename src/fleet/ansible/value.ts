/** A value of an inventory variable: one JSON scalar; lists and mappings are kept as such, without what is in them. */
export type AnsibleValue = string | number | boolean | null | typeof STRUCTURE;

/** A list or mapping: no use in a template. */
export const STRUCTURE: unique symbol = Symbol('structure');

const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\n': '',
};

const DIGITS = '[0-9](?:_?[0-9])*';
const INTEGER = /^(?:0(?:_?0)*|[1-9](?:_?[0-9])*|0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+)$/;
const FLOAT = new RegExp(`^(?:(?:${DIGITS})?\\.${DIGITS}|${DIGITS}\\.)(?:[eE][-+]?${DIGITS})?$|^${DIGITS}[eE][-+]?${DIGITS}$`);

/**
 * A value as an INI inventory has it: what Python would take for a literal is one, anything else is the text itself.
 * @see ansible plugins/inventory/ini.py (`_parse_value`), Python's `ast.literal_eval`
 */
export function parseIniValue(text: string): AnsibleValue {
  const quoted = parseStrings(text.replace(/^[ \t]+/, ''));
  if (quoted !== null) return quoted;
  const literal = withoutStrings(text).replace(/#.*$/s, '').trim();
  const constant = CONSTANTS.get(literal);
  if (constant !== undefined) return constant;
  const number = parseNumber(literal);
  if (number !== null) return number;
  return literal === '...' || isComplex(literal) || isStructure(literal) ? STRUCTURE : text;
}

/** Each string is an `\0`, which nothing else can hold. */
function withoutStrings(text: string): string {
  let result = '';
  let at = 0;
  for (let open = text.search(/["']/); open >= 0; ) {
    const string = (text[open] === '"' ? /^"(?:[^"\\\n]|\\.)*"/ : /^'(?:[^'\\\n]|\\.)*'/).exec(text.slice(open))?.[0];
    // One that is not closed is no literal, nor is anything with it.
    if (string === undefined) break;
    const start = open > at && /[rbuRBU]/.test(text.charAt(open - 1)) ? open - 1 : open;
    result += `${text.slice(at, start)}\0`;
    at = open + string.length;
    const next = text.slice(at).search(/["']/);
    open = next < 0 ? -1 : at + next;
  }
  return result + text.slice(at);
}

/** `1j`, `1 + 2j`. */
function isComplex(text: string): boolean {
  const [, before = '0', imaginary = ''] = /^(?:([-+]*[0-9._e]+)\s*[-+]\s*|[-+]*)([0-9._e]+)[jJ]$/i.exec(text) ?? [];
  return parseNumber(before) !== null && parseNumber(imaginary) !== null;
}

const CONSTANTS: ReadonlyMap<string, AnsibleValue> = new Map<string, AnsibleValue>([
  ['True', true],
  ['False', false],
  ['None', null],
]);

function parseNumber(text: string): number | null {
  const [, sign = '', digits = ''] = /^([-+]?)\s*(.*)$/s.exec(text) ?? [];
  if (!INTEGER.test(digits) && !FLOAT.test(digits)) return null;
  const value = Number(digits.replace(/_/g, ''));
  return sign === '-' && value !== 0 ? -value : value;
}

/** One or several Python strings side by side, or one of bytes; a comment may follow. */
function parseStrings(text: string): string | null {
  let rest = text;
  let result: string | null = null;
  while (rest !== '' && !(result !== null && rest.startsWith('#'))) {
    const match = /^([rRuUbB]?)(?:"""([^"\\]*)"""|"((?:[^"\\\n]|\\[\s\S])*)"|'((?:[^'\\\n]|\\[\s\S])*)')[ \t]*/.exec(rest);
    if (match === null) return null;
    const inside = match[2] ?? match[3] ?? match[4] ?? '';
    const value = /^r$/i.test(match[1] ?? '') ? inside : unescapeString(inside);
    if (value === null) return null;
    result = (result ?? '') + value;
    rest = rest.slice(match[0].length);
  }
  return result;
}

function unescapeString(text: string): string | null {
  let isWrong = false;
  const value = text.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([\s\S]))/g,
    (whole, x, u, long, octal, other) => {
      const code = x ?? u ?? long;
      if (code !== undefined) {
        const point = Number.parseInt(code, 16);
        if (point > 0x10ffff) isWrong = true;
        return point > 0x10ffff ? '' : String.fromCodePoint(point);
      }
      if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
      if (/[xuUN]/.test(other)) isWrong = true;
      return ESCAPES[other] ?? whole;
    },
  );
  return isWrong ? null : value;
}

/** A list, tuple, dict or set whose brackets close where it ends. Only numbers and constants may stand in it, and strings, which are `\0` here. */
function isStructure(text: string): boolean {
  if (!/^[[({]/.test(text) || /^\{\{/.test(text)) return false;
  const open: string[] = [];
  for (const [at, char] of [...text].entries()) {
    if ('[({'.includes(char)) open.push(char === '[' ? ']' : char === '(' ? ')' : '}');
    else if ('])}'.includes(char)) {
      if (open.pop() !== char) return false;
      if (open.length === 0 && at < text.length - 1) return false;
    }
  }
  // Bare words are names, and those are no literals.
  const words = text.match(/[A-Za-z_]\w*/g) ?? [];
  return open.length === 0 && words.every((word) => CONSTANTS.has(word));
}
