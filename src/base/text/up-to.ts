/** The part of a text before a separator; the whole text when the separator does not occur. */
export function upTo(text: string, what: string): string {
  const at = text.indexOf(what);
  return at < 0 ? text : text.slice(0, at);
}
