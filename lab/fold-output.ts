import { renderText, type Text } from '../src/base/text/styled.ts';
import type { Output } from '../src/cli/output/services.ts';

/** How much of a command's output is shown. */
export interface Fold {
  /** Lines shown as they are printed. */
  readonly head: number;
  /** Last lines, shown at the end of the command. */
  readonly tail: number;
}

/** A longer line is cut between words. */
const MAX_WIDTH = 118;

/**
 * An output that shows the first and the last lines of a command, without empty lines. A live display is shown as it is.
 * @returns `end` shows the last lines; `stdout` gives the complete standard output without styles
 */
export function foldOutput(output: Output, { head, tail }: Fold) {
  let printed = '';
  let shown = 0;
  const rest: (() => void)[] = [];
  const add = (stream: 'stdout' | 'stderr', text: Text): void => {
    for (const line of linesOf(text)) {
      const show = (): void => output[stream](line);
      if (shown++ < head) show();
      else rest.push(show);
    }
  };
  const folding: Output = {
    ...output,
    stdout: (text) => {
      printed += renderText(text, false);
      add('stdout', text);
    },
    stderr: (text) => add('stderr', text),
  };
  return {
    output: folding,
    stdout: (): string => printed,
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
  return lines.filter((line) => renderText(line, false).trim() !== '').map((line) => [...cutBetweenWords(line), '\n']);
}

function cutBetweenWords(line: Exclude<Text, string>): Exclude<Text, string> {
  const text = renderText(line, false);
  if (text.length <= MAX_WIDTH) return line;
  const end = text.lastIndexOf(' ', MAX_WIDTH - 2);
  return [`${text.slice(0, end > 0 ? end : MAX_WIDTH - 2)} …`];
}
