/** The longest line that a terminal does not break; undefined: the width is unknown, or there is no terminal. */
export function lineWidth({ width }: { readonly width?: (() => number | undefined) | undefined }): number | undefined {
  const columns = width?.();
  return columns === undefined ? undefined : columns - 1;
}

/** Breaks a text at spaces into lines of at most `width` characters; longer words are not broken. */
export function wrapText(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).filter(Boolean)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}

/** Continued lines are indented by this. */
const INDENTATION = 2;
/** Narrower lines would have a word each. */
const LEAST_LINE = 20;

/**
 * Breaks a line at spaces, as a terminal breaks it in the middle of a word. The further lines are indented.
 * @param options.before length of what is in front of the text on its line. Default: 0
 * @param options.width undefined: not broken
 */
export function wrapLine(text: string, { width, before = 0 }: { readonly width: number | undefined; readonly before?: number }): string {
  if (width === undefined || before + text.length <= width) return text;
  const start = /^ */.exec(text)?.[0] ?? '';
  const words = text.trim().replace(/\s+/g, ' ');
  const first = wrapText(words, Math.max(width - before - start.length, LEAST_LINE))[0] ?? '';
  const rest = wrapText(words.slice(first.length), Math.max(width - INDENTATION - start.length, LEAST_LINE));
  return [`${start}${first}`, ...rest.map((line) => `${start}${' '.repeat(INDENTATION)}${line}`)].join('\n');
}
