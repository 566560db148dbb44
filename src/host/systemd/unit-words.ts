const CONTROLS = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };
const ESCAPES: Readonly<Record<string, string>> = { ...CONTROLS, s: ' ', '\\': '\\', '"': '"', "'": "'" };
const SPACE = /[ \t\n\r]/;

/**
 * Splits a value of ExecStart= or Environment= into words: quotes are removed, C escapes are replaced. A word with an
 * unknown escape keeps all its backslashes.
 * @see systemd.syntax(7) "QUOTING"; systemd src/basic/extract-word.c (252); the test cases were verified with systemd 252
 */
export function splitUnitWords(text: string): readonly string[] {
  const words: string[] = [];
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const { word, end } = readWord(text, at, true) ?? readWord(text, at, false) ?? { word: '', end: text.length };
    words.push(word);
    at = end;
  }
  return words;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && SPACE.test(text.charAt(at))) at++;
  return at;
}

/** Null: the word has an unknown escape. */
function readWord(text: string, from: number, unescapes: boolean): { readonly word: string; readonly end: number } | null {
  let word = '';
  let quote = '';
  for (let at = from; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\' && unescapes) {
      const escaped = readEscape(text.slice(at + 1));
      if (escaped === null) return null;
      word += escaped.text;
      at += escaped.length;
    } else if (quote !== '') {
      if (char === quote) quote = '';
      else word += char;
    } else if (char === '"' || char === "'") quote = char;
    else if (SPACE.test(char)) return { word, end: at };
    else word += char;
  }
  return { word, end: text.length };
}

function readEscape(rest: string): { readonly text: string; readonly length: number } | null {
  const simple = ESCAPES[rest.charAt(0)];
  if (simple !== undefined) return { text: simple, length: 1 };
  const code = /^(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))/.exec(rest);
  if (code === null) return null;
  const [whole, hex, short, long, octal] = code;
  const point = octal === undefined ? Number.parseInt(hex ?? short ?? long ?? '', 16) : Number.parseInt(octal, 8);
  return point === 0 || point > 0x10ffff ? null : { text: String.fromCodePoint(point), length: whole.length };
}
