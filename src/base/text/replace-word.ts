/** Replaces a name where it is not part of a longer one. Searches a fixed string: a regular expression per host would be slow for thousands of hosts. */
export function replaceWord(text: string, word: string, by: string): string {
  let result = '';
  let from = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at)) {
    const end = at + word.length;
    if (isUnmatched(text, at, end)) {
      result += text.slice(from, at) + by;
      from = end;
      at = end;
    } else at++;
  }
  return from === 0 ? text : result + text.slice(from);
}

const NAME_CHARACTER = /[\w-]/;
const WORD_CHARACTER = /\w/;

/** Whether the match is not part of a longer name; a trailing dot may end a sentence. */
function isUnmatched(text: string, start: number, end: number): boolean {
  const [before, after] = [text.charAt(start - 1), text.charAt(end)];
  if (before === '.' || NAME_CHARACTER.test(before) || NAME_CHARACTER.test(after)) return false;
  return after !== '.' || !WORD_CHARACTER.test(text.charAt(end + 1));
}
