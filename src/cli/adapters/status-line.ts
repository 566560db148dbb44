import { visibleInLine } from '../../base/text/printable.ts';
import { cut } from '../../base/text/table.ts';
import type { RawOutput } from '../services.ts';

/**
 * Output with a status line at the bottom of a terminal. Other output is printed above that line.
 * @param width current number of columns of the terminal
 */
export function withStatusLine(output: Omit<RawOutput, 'status'>, width: () => number): RawOutput {
  let shown: string | null = null;
  const above = (write: (text: string) => void, text: string): void => {
    if (shown === null) {
      write(text);
      return;
    }
    output.stderr(ERASE);
    write(text);
    if (text.endsWith('\n')) output.stderr(shown);
    else shown = null;
  };
  return {
    stdout: (text) => above(output.stdout, text),
    stderr: (text) => above(output.stderr, text),
    status: (line) => {
      const text = line === null ? null : cut(visibleInLine(line), width() - 1);
      if (text === shown) return;
      if (shown !== null) output.stderr(ERASE);
      if (text !== null) output.stderr(text);
      shown = text;
    },
  };
}

/** Moves to the start of the line and clears the line. */
const ERASE = '\r\u001b[2K';
