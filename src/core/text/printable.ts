/**
 * Text of a stranger, fit for one line of ours: control characters become blanks, so that no terminal obeys them, and it has an end.
 * @param maxLength characters kept; default 200
 */
export function printable(text: string, maxLength = 200): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength)}…`;
}
