import type { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import ansiEscapes from 'ansi-escapes';
import { createLogUpdate } from 'log-update';
import type { TerminalEcho } from './terminal-echo.ts';

/** A terminal whose last lines are redrawn. */
export interface LiveTerminal {
  /** Off while a display is shown. Absent: unchanged. */
  readonly echo?: TerminalEcho;
  draw(text: string): void;
  /** Removes the drawn lines. */
  erase(): void;
  /** The terminal has another size: terminals wrap the drawn lines again when they become narrower. */
  resized(): void;
}

/** The stream of a terminal. */
export type TerminalStream = Pick<Writable, 'write'> & { readonly columns?: number; readonly rows?: number };

/** Loaded when a display is shown for the first time. */
export function liveTerminal(stream: TerminalStream): LiveTerminal {
  // The cursor stays visible: a process that is killed cannot show it again.
  const update = createLogUpdate(stream as NodeJS.WritableStream, { showCursor: true });
  let drawn = '';
  return {
    draw: (text) => {
      if (text === drawn) return;
      // log-update 7 compares frames and leaves equal last lines in place, also when lines above them are removed.
      update.clear();
      update(text);
      drawn = text;
    },
    erase: () => {
      update.clear();
      drawn = '';
    },
    resized: () => {
      if (drawn === '') return;
      const width = stream.columns || 80;
      const rows = drawn.split('\n').reduce((sum, line) => sum + Math.max(1, Math.ceil(stripVTControlCharacters(line).length / width)), 1);
      stream.write(ansiEscapes.eraseLines(rows));
      update.done();
      drawn = '';
    },
  };
}
