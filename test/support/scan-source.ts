/** A TypeScript source, read without a compiler: its imports and regular expressions. */
export interface ScannedSource {
  /**
   * The text with comments and the content of strings, templates and regular expressions replaced by spaces;
   * positions are unchanged.
   */
  readonly code: string;
  readonly imports: readonly SourceImport[];
  readonly regexes: readonly RegexLiteral[];
  lineOf(offset: number): number;
}

export interface SourceImport {
  readonly specifier: string;
  readonly line: number;
  /** `import type` and `export type`: removed at runtime. */
  readonly typeOnly: boolean;
  /** The text between the keyword and `from`: `{ a, b }`. Empty for `import()` and `import 'x'`. */
  readonly clause: string;
}

export interface RegexLiteral {
  readonly pattern: string;
  readonly flags: string;
  readonly line: number;
}

/** Scans a source file. */
export function scanSource(text: string): ScannedSource {
  const { code, regexes } = blankOut(text);
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const lineOf = (offset: number): number => starts.findLastIndex((start) => start <= offset) + 1;
  return {
    code,
    imports: findImports(text, code, lineOf),
    regexes: regexes.map(({ offset, ...regex }) => ({ ...regex, line: lineOf(offset) })),
    lineOf,
  };
}

function findImports(text: string, code: string, lineOf: (offset: number) => number): readonly SourceImport[] {
  const found: SourceImport[] = [];
  const pattern = /\b(import|export)(\s+type\b)?([^;'"`()]*?)\bfrom\s*(['"])|\bimport\s*(['"])|\bimport\s*\(\s*(['"`])/g;
  for (const match of code.matchAll(pattern)) {
    const open = match.index + match[0].length;
    const quote = match[4] ?? match[5] ?? (match[6] as string);
    const specifier = text.slice(open, text.indexOf(quote, open));
    found.push({ specifier, line: lineOf(match.index), typeOnly: match[2] !== undefined, clause: (match[3] ?? '').trim() });
  }
  return found;
}

/** Characters and words after which a slash starts a regular expression. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|delete|await|yield))$/;

function blankOut(text: string) {
  const out = text.split('');
  const regexes: { readonly pattern: string; readonly flags: string; readonly offset: number }[] = [];
  const templates: number[] = [];
  let depth = 0;
  const blank = (from: number, to: number): void => {
    for (let i = from; i < to; i++) if (out[i] !== '\n') out[i] = ' ';
  };
  const code = text.startsWith('#!') ? indexOrEnd(text, '\n', 0) : 0;
  blank(0, code);
  for (let at = code; at < text.length; ) {
    const char = text[at];
    let end = at + 1;
    if (char === '/' && text[at + 1] === '/') {
      end = indexOrEnd(text, '\n', at);
      blank(at, end);
    } else if (char === '/' && text[at + 1] === '*') {
      end = indexOrEnd(text, '*/', at + 2) + 2;
      blank(at, end);
    } else if (char === "'" || char === '"') {
      end = endOfString(text, at + 1, char);
      blank(at + 1, end - 1);
    } else if (char === '`' || (char === '}' && templates.at(-1) === depth)) {
      if (char === '}') templates.pop();
      const { end: to, opens } = endOfTemplatePart(text, at + 1);
      blank(at + 1, opens ? to - 2 : to - 1);
      if (opens) templates.push(depth);
      end = to;
    } else if (
      char === '/' &&
      BEFORE_REGEX.test(
        out
          .slice(Math.max(0, at - 40), at)
          .join('')
          .trimEnd(),
      )
    ) {
      end = endOfRegex(text, at + 1);
      regexes.push({ pattern: text.slice(at + 1, end - 1), flags: /^[a-z]*/.exec(text.slice(end, end + 10))?.[0] ?? '', offset: at });
      blank(at + 1, end - 1);
    } else if (char === '{') depth++;
    else if (char === '}') depth--;
    at = end;
  }
  return { code: out.join(''), regexes };
}

function indexOrEnd(text: string, what: string, from: number): number {
  const index = text.indexOf(what, from);
  return index < 0 ? text.length : index;
}

function endOfString(text: string, from: number, quote: string): number {
  let at = from;
  while (at < text.length && text[at] !== quote && text[at] !== '\n') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** Up to the closing backquote, or up to and with `${`. */
function endOfTemplatePart(text: string, from: number): { readonly end: number; readonly opens: boolean } {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '`') return { end: at + 1, opens: false };
    else if (text[at] === '$' && text[at + 1] === '{') return { end: at + 2, opens: true };
  }
  return { end: text.length, opens: false };
}

function endOfRegex(text: string, from: number): number {
  let inClass = false;
  let at = from;
  for (; at < text.length && text[at] !== '\n'; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '[') inClass = true;
    else if (text[at] === ']') inClass = false;
    else if (text[at] === '/' && !inClass) break;
  }
  return at + 1;
}
