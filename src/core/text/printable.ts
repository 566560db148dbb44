/**
 * Text of a stranger, fit for one line of ours: control characters become blanks, so that no terminal obeys them, and it has an end.
 * @param maxLength characters kept; default 200
 */
export function printable(text: string, maxLength = 200): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength)}…`;
}

/** A host can't write to the terminal: its control characters are shown, not sent. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
