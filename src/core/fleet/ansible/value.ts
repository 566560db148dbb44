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
  const literal = text
    .replace(/^[ \t]+/, '')
    .replace(/\s+$/, '')
    .replace(/\s*#.*$/, (comment) => (/["']/.test(text) ? comment : ''));
  const constant = CONSTANTS.get(literal);
  if (constant !== undefined) return constant;
  const number = parseNumber(literal);
  if (number !== null) return number;
  const quoted = parseStrings(literal);
  if (quoted !== null) return quoted;
  return isStructure(literal) ? STRUCTURE : text;
}

const CONSTANTS: ReadonlyMap<string, AnsibleValue> = new Map<string, AnsibleValue>([
  ['True', true],
  ['False', false],
  ['None', null],
]);

function parseNumber(text: string): number | null {
  const [, signs = '', digits = ''] = /^([-+\s]*)(.*)$/s.exec(text) ?? [];
  if (!INTEGER.test(digits) && !FLOAT.test(digits)) return null;
  const value = Number(digits.replace(/_/g, ''));
  return [...signs].filter((sign) => sign === '-').length % 2 === 1 ? -value : value;
}

/** One or several Python strings side by side. */
function parseStrings(text: string): string | null {
  let rest = text;
  let result: string | null = null;
  while (rest !== '') {
    const match = /^([rRuU]?)(?:"((?:[^"\\\n]|\\[\s\S])*)"|'((?:[^'\\\n]|\\[\s\S])*)')[ \t]*/.exec(rest);
    if (match === null) return null;
    const inside = match[2] ?? match[3] ?? '';
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

/** A list, tuple, dict or set whose brackets close where it ends; what is in it is not looked at but for quotes. */
function isStructure(text: string): boolean {
  if (!/^[[({]/.test(text) || /^\{\{/.test(text)) return false;
  const open: string[] = [];
  const stripped = text.replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, 'q');
  for (const [at, char] of [...stripped].entries()) {
    if ('[({'.includes(char)) open.push(char === '[' ? ']' : char === '(' ? ')' : '}');
    else if ('])}'.includes(char)) {
      if (open.pop() !== char) return false;
      if (open.length === 0 && at < stripped.length - 1) return false;
    }
  }
  // Bare words are names, and those are no literals.
  const words = stripped.match(/[A-Za-z_]\w*/g) ?? [];
  return open.length === 0 && words.every((word) => word === 'q' || CONSTANTS.has(word));
}
