import { partsOf, type StyledPart, type Text } from './styled.ts';
import { wrapLine } from './wrap-line.ts';

/** Breaks the lines of a text at spaces, as `wrapLine` does, and keeps the styles. @param width undefined: nothing is broken */
export function wrapStyled(text: Text, width: number | undefined): Text {
  if (width === undefined) return text;
  const parts = partsOf(text);
  const plain = parts.map((part) => (typeof part === 'string' ? part : part.text)).join('');
  const wrapped = plain
    .split('\n')
    .map((line) => wrapLine(line, { width }))
    .join('\n');
  if (wrapped === plain) return text;
  // Only white space differs: each part ends after as many other characters as before.
  let at = 0;
  const taken = parts.map((part): string | StyledPart => {
    let left = (typeof part === 'string' ? part : part.text).replace(/\s/g, '').length;
    const start = at;
    while (left > 0) if (/\S/.test(wrapped[at++] ?? 'x')) left--;
    const piece = wrapped.slice(start, at);
    return typeof part === 'string' ? piece : { ...part, text: piece };
  });
  return [...taken, wrapped.slice(at)];
}
