const SPACE = /[ \t\n\r]/;
const LINE_END = /[\n\r]/;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Parses a file of systemd's `EnvironmentFile=`: quotes, backslashes and continuation lines as in systemd;
 * comments are skipped, the last assignment of a variable wins, assignments to invalid names are dropped.
 * @see systemd.exec(5) EnvironmentFile=; the test cases were verified with systemd 252
 */
export function parseEnvironmentFile(text: string): ReadonlyMap<string, string> {
  return new Map(readAssignments(text).flatMap(({ name, value }) => (isVariableName(name) ? [[name, value] as const] : [])));
}

export function isVariableName(name: string): boolean {
  return NAME.test(name);
}

/** All assignments of a file of `EnvironmentFile=`, also those that systemd drops because of their names. */
export function readAssignments(text: string): readonly { readonly name: string; readonly value: string; readonly line: number }[] {
  const assignments: { readonly name: string; readonly value: string; readonly line: number }[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    const char = text.charAt(at);
    if (SPACE.test(char)) {
      if (char === '\n') line++;
      at++;
      continue;
    }
    const lineEnd = endOfLine(text, at);
    const equals = at + text.slice(at, lineEnd).indexOf('=');
    if (char === '#' || char === ';' || equals < at) {
      at = lineEnd;
      continue;
    }
    const { value, end } = readValue(text, equals + 1);
    assignments.push({ name: text.slice(at, equals).trimEnd(), value, line });
    line += text.slice(at, end).split('\n').length - 1;
    at = end;
  }
  return assignments;
}

function endOfLine(text: string, from: number): number {
  const end = text.slice(from).search(LINE_END);
  return end < 0 ? text.length : from + end;
}

/**
 * Quotes are special at the start of a value or directly after another quoted part, but not inside plain
 * text. In double quotes only `\"`, `\\`, `` \` ``, `\$` and an escaped newline are escapes; single quotes
 * have none; elsewhere a backslash escapes the next character.
 */
function readValue(text: string, from: number): { readonly value: string; readonly end: number } {
  let value = '';
  let solid = 0;
  let state: 'start' | 'plain' | '"' | "'" = 'start';
  for (let at = from; at < text.length; at++) {
    const char = text.charAt(at);
    if (state === '"' || state === "'") {
      if (char === state) state = 'start';
      else if (char === '\\' && state === '"') value += unescapeQuoted(text.charAt(++at));
      else value += char;
      solid = value.length;
    } else if (LINE_END.test(char)) {
      return { value: value.slice(0, solid), end: at };
    } else if (state === 'start' && (char === '"' || char === "'")) {
      state = char;
    } else if (char === '\\') {
      state = 'plain';
      const next = text.charAt(++at);
      if (!LINE_END.test(next)) value += next;
      solid = value.length;
    } else if (state === 'plain' || !SPACE.test(char)) {
      state = 'plain';
      value += char;
      if (!SPACE.test(char)) solid = value.length;
    }
  }
  return { value: value.slice(0, solid), end: text.length };
}

function unescapeQuoted(char: string): string {
  if (char === '\n' || char === '') return '';
  return '"\\`$'.includes(char) ? char : `\\${char}`;
}

/**
 * Splits the value of a bare `$VARIABLE` word of ExecStart at spaces. Quotes are removed; a backslash escapes
 * the next character, also in quotes. An open quote ends with the text; a final backslash is dropped.
 * @see systemd.service(5) COMMAND LINES; the test cases were verified with systemd 252
 */
export function splitCommandWords(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\') {
      word = (word ?? '') + text.charAt(++at);
    } else if (quote !== '') {
      if (char === quote) quote = '';
      else word += char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (SPACE.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? '') + char;
  }
  return word === null ? words : [...words, word];
}
