/**
 * Sanitises untrusted text for one line of output: control characters become spaces, so that a terminal does
 * not interpret them, and the length is limited.
 * @param maxLength maximum number of characters; default 200
 */
export function printable(text: string, maxLength = 200): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength)}…`;
}

/**
 * Characters that a terminal interprets, reorders or hides: C0 and C1 controls, DEL, format characters
 * (bidirectional controls, zero width, tags, soft hyphen), line and paragraph separators, unpaired
 * surrogates. Newline and tab are excluded.
 */
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const ALL_UNPRINTABLE = new RegExp(UNPRINTABLE, 'gu');

/** Whether a text has a character that a terminal interprets or hides, other than newline and tab. */
export function hasUnprintable(text: string): boolean {
  return UNPRINTABLE.test(text);
}

/**
 * Replaces each character that a terminal interprets or hides by `replacement(codePoint)`. Newlines and tabs
 * are kept.
 */
export function replaceUnprintable(text: string, replacement: (codePoint: number) => string): string {
  return text.replace(ALL_UNPRINTABLE, (character) => replacement(character.codePointAt(0) as number));
}

/**
 * Escapes every character that a terminal interprets or hides: `\x1b`, `\u202e`, `\u{e0041}`. Newlines and
 * tabs are kept; backslashes are not escaped.
 * @see CVE-2021-25743: kubectl escapes the text of tables since 1.26
 */
export function escapeUnprintable(text: string): string {
  return replaceUnprintable(text, escapeCode);
}

/** As escapeUnprintable(), for text inside one line: newlines (`\x0a`) and tabs (`\x09`) are escaped, too. */
export function escapeUnprintableInLine(text: string): string {
  return escapeUnprintable(text).replace(/[\t\n]/g, (character) => escapeCode(character.charCodeAt(0)));
}

function escapeCode(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`;
}

/**
 * Renders a value as JSON without characters that a terminal interprets or hides: they are written as
 * `\uXXXX`, which every JSON parser decodes.
 * @param indent spaces per level; absent: one line
 */
export function printableJson(value: unknown, indent?: number): string {
  return replaceUnprintable(JSON.stringify(value, null, indent), (code) =>
    String.fromCodePoint(code)
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
