/**
 * Splits the ssh arguments of an inventory into words: quotes of both kinds, backslashes; `#` begins a
 * comment, also inside a word.
 * @returns null when a quote is not closed or a backslash ends the line
 * @see Python's shlex.split(line, comments=True)
 */
export function splitHostLine(line: string): readonly string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string;
    if (/[ \t\r\n]/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (char === '#') break;
    else if (char === '\\') {
      if (++i >= line.length) return null;
      word = (word ?? '') + line[i];
    } else if (char === '"' || char === "'") {
      const quoted = readQuoted(line, i);
      if (quoted === null) return null;
      word = (word ?? '') + quoted.text;
      i = quoted.end;
    } else word = (word ?? '') + char;
  }
  if (word !== null) words.push(word);
  return words;
}

/** The text between quotes; in double quotes a backslash escapes a quote or a backslash. */
function readQuoted(line: string, start: number): { readonly text: string; readonly end: number } | null {
  const quote = line[start] as string;
  let text = '';
  for (let i = start + 1; i < line.length; i++) {
    const char = line[i] as string;
    if (char === quote) return { text, end: i };
    if (char === '\\' && quote === '"' && (line[i + 1] === '"' || line[i + 1] === '\\')) text += line[++i];
    else text += char;
  }
  return null;
}
