/** The first part of a text, up to where something begins; all of it where that is not in it. */
export function upTo(text: string, what: string): string {
  const at = text.indexOf(what);
  return at < 0 ? text : text.slice(0, at);
}
