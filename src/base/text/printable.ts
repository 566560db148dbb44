/** One line of limited length, with spaces for control characters, which a terminal would interpret. */
export function printable(text: string, maxLength = 200): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength)}…`;
}

/**
 * C0 and C1 controls except newline and tab, DEL, format characters (bidirectional controls, zero width,
 * tags, soft hyphen), line and paragraph separators, unpaired surrogates.
 */
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const ALL_UNPRINTABLE = new RegExp(UNPRINTABLE, 'gu');

/** Whether a text has a character that a terminal interprets or hides, other than newline and tab. */
export function hasUnprintable(text: string): boolean {
  return UNPRINTABLE.test(text);
}

/** For each character that a terminal interprets or hides, except newlines and tabs. */
export function replaceUnprintable(text: string, replacement: (codePoint: number) => string): string {
  return text.replace(ALL_UNPRINTABLE, (character) => replacement(character.codePointAt(0) as number));
}

/**
 * `\x1b`, `\u202e`, `\u{e0041}`; backslashes are not escaped.
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

/** JSON without characters that a terminal interprets or hides: every JSON parser decodes `\uXXXX`. */
export function printableJson(value: unknown, indent?: number): string {
  return replaceUnprintable(JSON.stringify(value, null, indent), (code) =>
    String.fromCodePoint(code)
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
