import { partsOf, renderText, type Text } from '../src/base/text/styled.ts';
import { wrapStyled } from '../src/base/text/wrap-styled.ts';
import type { Output } from '../src/cli/output/services.ts';

/** How much of a command's output is shown. */
export interface Fold {
  /** Lines shown as they are printed. */
  readonly head: number;
  /** Last lines, shown at the end of the command. */
  readonly tail: number;
}

/** A longer line is continued on the next one. */
const MAX_WIDTH = 118;
const CONTINUED = '      ';

/**
 * An output that shows the first and the last lines of a command, without empty lines. A live display is shown as it is.
 * @returns `end` shows the last lines; `printed` gives the complete output without styles
 */
export function foldOutput(output: Output, { head, tail }: Fold) {
  const printed = { stdout: '', stderr: '' };
  let shown = 0;
  const rest: (() => void)[] = [];
  const add = (stream: 'stdout' | 'stderr', text: Text): void => {
    printed[stream] += renderText(text, false);
    for (const line of linesOf(text)) {
      const show = (): void => output[stream](line);
      if (shown++ < head) show();
      else rest.push(show);
    }
  };
  const folding: Output = {
    ...output,
    stdout: (text) => add('stdout', text),
    stderr: (text) => add('stderr', text),
    prose: (text) => add('stdout', text),
  };
  return {
    output: folding,
    printed: (): { readonly stdout: string; readonly stderr: string } => printed,
    end: (): void => {
      const hidden = rest.length - tail;
      // A line that says that one line is missing would save nothing.
      if (hidden > 1) output.stdout(`  … ${hidden} more lines\n`);
      for (const show of hidden > 1 ? rest.slice(hidden) : rest) show();
    },
  };
}

/** The lines of a text that are not empty, each with its newline. */
function linesOf(text: Text): readonly Text[] {
  const lines: Exclude<Text, string>[number][][] = [[]];
  for (const part of typeof text === 'string' ? [text] : text) {
    const [first = '', ...others] = (typeof part === 'string' ? part : part.text).split('\n');
    const styledAs = (piece: string) => (typeof part === 'string' ? piece : { ...part, text: piece });
    lines.at(-1)?.push(styledAs(first));
    for (const piece of others) lines.push([styledAs(piece)]);
  }
  return lines.filter((line) => renderText(line, false).trim() !== '').map((line) => [...partsOf(continued(line)), '\n']);
}

/** A line without styles keeps its spaces: it may be a row of a table. */
function continued(line: Exclude<Text, string>): Text {
  const text = renderText(line, false);
  if (line.some((part) => typeof part !== 'string')) return wrapStyled(line, MAX_WIDTH);
  if (text.length <= MAX_WIDTH) return line;
  const end = lastSpace(text, MAX_WIDTH);
  return [text.slice(0, end), '\n', ...partsOf(continued([`${CONTINUED}${text.slice(end).trimStart()}`]))];
}

/** The last space that leaves at most `width` characters before it; without one, `width`. */
function lastSpace(text: string, width: number): number {
  const end = text.lastIndexOf(' ', width);
  return end > CONTINUED.length ? end : width;
}
