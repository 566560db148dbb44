/** The text without any `char` at its end. One pass, where `/char+$/` tries again at each of a run of them. */
export function trimTrailing(text: string, char: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === char) end--;
  return text.slice(0, end);
}
