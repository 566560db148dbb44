/**
 * Reports whether a text matches an OpenSSH pattern: `*` any number of characters, `?` exactly one, no other
 * special characters.
 * @see ssh_config(5) PATTERNS, openssh match.c
 */
export function matchPattern(text: string, pattern: string): boolean {
  if (!/[*?]/.test(pattern)) return text === pattern;
  const tokens = pattern.split('').map((at): Token => (at === '*' ? null : at === '?' ? () => true : at));
  return matchTokens(text.split(''), tokens);
}

/** A character, a test for one, or any number of characters (null). */
type Token = string | ((character: string) => boolean) | null;

/** Greedy with one retry point: linear for usual patterns, never exponential for hostile ones. */
function matchTokens(text: readonly string[], tokens: readonly Token[]): boolean {
  let [n, t, star, retryAt] = [0, 0, -1, 0];
  while (n < text.length) {
    const token = tokens[t];
    const character = text[n] as string;
    if (token === null) {
      star = t++;
      retryAt = n;
    } else if (typeof token === 'function' ? token(character) : token === character) {
      t++;
      n++;
    } else if (star >= 0) {
      t = star + 1;
      n = ++retryAt;
    } else return false;
  }
  return tokens.slice(t).every((token) => token === null);
}

/** Whether a pattern matches and no negated one (`!pattern`) does. */
export function matchPatternList(text: string, patterns: readonly string[]): boolean {
  const negated = patterns.some((pattern) => pattern.startsWith('!') && matchPattern(text, pattern.slice(1)));
  return !negated && patterns.some((pattern) => !pattern.startsWith('!') && matchPattern(text, pattern));
}

/** In the C locale, as in ssh. */
const CLASSES: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  digit: /[0-9]/,
  lower: /[a-z]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[\t-\r ]/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
};

/**
 * Compiles one segment (the text between two slashes) of an Include pattern: `*`, `?`, `[a-z]`, `[!a-z]`,
 * `[[:digit:]]`, and a backslash that escapes the next character. An unclosed bracket is literal; a leading
 * dot must be matched explicitly.
 * @returns `literal`: the name, if the segment has no special characters
 * @see glob(7), openssh openbsd-compat/glob.c
 */
export function compileGlobSegment(segment: string): { readonly literal: string | null; matches(name: string): boolean } {
  const tokens = tokensOf(unquote(segment));
  const literal = tokens.every((token) => typeof token === 'string') ? tokens.join('') : null;
  return { literal, matches: (name) => (tokens[0] === '.' || !name.startsWith('.')) && matchTokens([...name], tokens) };
}

interface PatternCharacter {
  readonly character: string;
  /** Escaped by a backslash. */
  readonly isQuoted: boolean;
}

function unquote(pattern: string): readonly PatternCharacter[] {
  return [...pattern.matchAll(/\\(.)|(.)/gsu)].map(([, quoted, plain]) => ({
    character: quoted ?? plain ?? '',
    isQuoted: quoted !== undefined,
  }));
}

function isSpecial(at: PatternCharacter | undefined, character: string): boolean {
  return at !== undefined && !at.isQuoted && at.character === character;
}

function tokensOf(pattern: readonly PatternCharacter[]): readonly Token[] {
  const tokens: Token[] = [];
  for (let i = 0; i < pattern.length; i++) {
    const at = pattern[i] as PatternCharacter;
    const set = isSpecial(at, '[') ? readSet(pattern, i + 1) : null;
    if (set !== null) {
      tokens.push(set.token);
      i = set.end;
    } else if (isSpecial(at, '*')) tokens.push(null);
    else if (isSpecial(at, '?')) tokens.push(() => true);
    else tokens.push(at.character);
  }
  return tokens;
}

/** Parses a bracket expression after its `[`; null when it is not closed. Its first character may be `]`. */
function readSet(pattern: readonly PatternCharacter[], start: number): { readonly token: Token; readonly end: number } | null {
  const isNegated = isSpecial(pattern[start], '!');
  let i = isNegated ? start + 1 : start;
  if (!pattern.slice(i + 1).some((at) => isSpecial(at, ']'))) return null;
  const has: ((character: string) => boolean)[] = [];
  do {
    const name = className(pattern, i);
    const characters = name === null ? undefined : CLASSES[name];
    if (name !== null && characters !== undefined) {
      has.push((character) => characters.test(character));
      i += name.length + 4;
      continue;
    }
    const from = pattern[i]?.character ?? '';
    const isRange = isSpecial(pattern[i + 1], '-') && pattern[i + 2] !== undefined && !isSpecial(pattern[i + 2], ']');
    const to = isRange ? (pattern[i + 2]?.character ?? '') : from;
    has.push((character) => character >= from && character <= to);
    i += isRange ? 3 : 1;
  } while (i < pattern.length && !isSpecial(pattern[i], ']'));
  if (i >= pattern.length) return null;
  return { token: (character) => has.some((test) => test(character)) !== isNegated, end: i };
}

/** `digit` of `[:digit:]`; null for other text. */
function className(pattern: readonly PatternCharacter[], start: number): string | null {
  if (!isSpecial(pattern[start], '[') || !isSpecial(pattern[start + 1], ':')) return null;
  const text = pattern
    .slice(start + 2, start + 10)
    .map(({ character }) => character)
    .join('');
  const [, name = ''] = /^([a-z]+):\]/.exec(text) ?? [];
  return Object.hasOwn(CLASSES, name) ? name : null;
}
