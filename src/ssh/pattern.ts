/**
 * Reports whether a text matches an OpenSSH pattern: `*` any number of characters, `?` exactly one, no other
 * special characters.
 * @see ssh_config(5) PATTERNS, openssh match.c
 */
export function matchPattern(text: string, pattern: string): boolean {
  let t = 0;
  let p = 0;
  let star = -1;
  let retryAt = 0;
  // Greedy with one retry point: linear for usual patterns, never exponential for hostile ones.
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === '*') {
      star = p++;
      retryAt = t;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++retryAt;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Whether a pattern matches and no negated one (`!pattern`) does. */
export function matchPatternList(text: string, patterns: readonly string[]): boolean {
  const negated = patterns.some((pattern) => pattern.startsWith('!') && matchPattern(text, pattern.slice(1)));
  return !negated && patterns.some((pattern) => !pattern.startsWith('!') && matchPattern(text, pattern));
}

/** One compiled segment of a path pattern. */
interface GlobSegment {
  /** The literal name; null for a segment with `*`, `?` or a bracket expression. */
  readonly literal: string | null;
  matches(name: string): boolean;
}

type Token =
  | { readonly kind: 'many' }
  | { readonly kind: 'any' }
  | { readonly kind: 'character'; readonly character: string }
  | { readonly kind: 'set'; readonly isNegated: boolean; readonly has: readonly ((character: string) => boolean)[] };

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
 * @see glob(7), openssh openbsd-compat/glob.c
 */
export function compileGlobSegment(segment: string): GlobSegment {
  const tokens = tokensOf(unquote(segment));
  const literal = tokens.every((token) => token.kind === 'character') ? tokens.map(({ character }) => character).join('') : null;
  const first = tokens[0];
  const hasDot = first?.kind === 'character' && first.character === '.';
  return { literal, matches: (name) => (hasDot || !name.startsWith('.')) && matchTokens([...name], tokens) };
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
    } else if (isSpecial(at, '*')) tokens.push({ kind: 'many' });
    else if (isSpecial(at, '?')) tokens.push({ kind: 'any' });
    else tokens.push({ kind: 'character', character: at.character });
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
  return i < pattern.length ? { token: { kind: 'set', isNegated, has }, end: i } : null;
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

/** Greedy with one backtracking point: never exponential. */
function matchTokens(name: readonly string[], tokens: readonly Token[]): boolean {
  let n = 0;
  let t = 0;
  let star = -1;
  let retryAt = 0;
  while (n < name.length) {
    const token = tokens[t];
    if (token?.kind === 'many') {
      star = t++;
      retryAt = n;
    } else if (token !== undefined && matchesOne(name[n] as string, token)) {
      t++;
      n++;
    } else if (star >= 0) {
      t = star + 1;
      n = ++retryAt;
    } else return false;
  }
  return tokens.slice(t).every(({ kind }) => kind === 'many');
}

function matchesOne(character: string, token: Token): boolean {
  switch (token.kind) {
    case 'character':
      return token.character === character;
    case 'set':
      return token.has.some((has) => has(character)) !== token.isNegated;
    default:
      return true;
  }
}
