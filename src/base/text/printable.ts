/**
 * Text of a stranger, fit for one line of ours: control characters become blanks, so that no terminal obeys them, and it has an end.
 * @param maxLength characters kept; default 200
 */
export function printable(text: string, maxLength = 200): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength)}…`;
}

/**
 * What a terminal obeys, or shows in another order or not at all: C0 and C1 controls, DEL, format characters (bidirectional controls, zero width, tags,
 * soft hyphen), line and paragraph separators, unpaired surrogates. Newline and tab are left out.
 */
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const ALL_UNPRINTABLE = new RegExp(UNPRINTABLE, 'gu');

/** Whether a text has a character that a terminal obeys or hides, other than newline and tab. */
export function hasUnprintable(text: string): boolean {
  return UNPRINTABLE.test(text);
}

/** Replaces each character that a terminal obeys or hides by what `replacement` makes of its code point. Newlines and tabs are kept. */
export function replaceUnprintable(text: string, replacement: (codePoint: number) => string): string {
  return text.replace(ALL_UNPRINTABLE, (character) => replacement(character.codePointAt(0) as number));
}

/**
 * Escapes everything that a terminal obeys or hides: `\x1b`, `\u202e`, `\u{e0041}`. Newlines and tabs are kept; the result is not escaped again.
 * @see CVE-2021-25743: kubectl escapes the text of tables since 1.26
 */
export function visible(text: string): string {
  return replaceUnprintable(text, escapeCode);
}

/** As visible(), for text that is part of one line: newlines (`\x0a`) and tabs (`\x09`) are escaped, too. */
export function visibleInLine(text: string): string {
  return visible(text).replace(/[\t\n]/g, (character) => escapeCode(character.charCodeAt(0)));
}

function escapeCode(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`;
}

/**
 * Renders a value as JSON in which no character is left that a terminal obeys or hides: they are written as `\uXXXX`, which any reader of JSON undoes.
 * @param indent blanks per level; absent: one line
 */
export function printableJson(value: unknown, indent?: number): string {
  return replaceUnprintable(JSON.stringify(value, null, indent), (code) =>
    String.fromCodePoint(code)
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
