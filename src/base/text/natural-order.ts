const LETTER = /\p{L}/u;
const DIGITS = /^\p{Nd}+/u;

/**
 * As Kubernetes components print keys in YAML: letters by code point and after all other characters, runs of
 * digits by their numeric value (`a2` before `a10`). @see go.yaml.in/yaml/v2 key order
 */
export function sortKeysNaturally(keys: readonly string[]): readonly string[] {
  // The order is not transitive for unusual keys: sorting by code unit first makes the result independent of
  // the input order.
  return keys.toSorted().sort(compareKeys);
}

function compareKeys(left: string, right: string): number {
  let same = 0;
  while (same < left.length && left.charCodeAt(same) === right.charCodeAt(same)) same++;
  const [x, y] = [left.charCodeAt(same), right.charCodeAt(same)];
  return isAsciiLetter(x) && isAsciiLetter(y) ? x - y : compareFully(left, right);
}

function isAsciiLetter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}

function compareFully(left: string, right: string): number {
  const a = [...left];
  const b = [...right];
  const i = a.findIndex((char, index) => char !== b[index]);
  if (i === -1 || i >= b.length) return a.length - b.length;
  const [x = '', y = ''] = [a[i], b[i]];
  const letters = [LETTER.test(x), LETTER.test(y)];
  if (letters[0] && letters[1]) return codeOf(x) - codeOf(y);
  if (letters[0] || letters[1]) return letters[1] ? -1 : 1;
  const [numberA, numberB] = [digitsAt(a, i), digitsAt(b, i)];
  const leading = (x === '0' || y === '0') && endsInsideNumber(a, i) ? '1' : '';
  const [valueA, valueB] = [goNumber(leading, numberA), goNumber(leading, numberB)];
  if (valueA !== valueB) return valueA < valueB ? -1 : 1;
  return numberA.length - numberB.length || codeOf(x) - codeOf(y);
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}

function digitsAt(chars: readonly string[], index: number): readonly string[] {
  return [...(DIGITS.exec(chars.slice(index).join(''))?.[0] ?? '')];
}

/** Whether the digits before `index` include another one than 0: then a following 0 is significant, not padding. */
function endsInsideNumber(chars: readonly string[], index: number): boolean {
  for (let j = index - 1; j >= 0 && DIGITS.test(chars[j] ?? ''); j--) if (chars[j] !== '0') return true;
  return false;
}

/** Digits of any script by their distance from 0, wrapping at 64 bits. */
function goNumber(leading: string, digits: readonly string[]): bigint {
  let value = leading === '' ? 0n : 1n;
  for (const digit of digits) value = BigInt.asIntN(64, value * 10n + BigInt(codeOf(digit) - 0x30));
  return value;
}
