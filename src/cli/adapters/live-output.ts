import type { RawOutput, TerminalSize } from '../output/services.ts';
import type { LiveTerminal, TerminalStream } from './live-terminal.ts';

/** The stream of a terminal, which reports a new size. */
export interface ResizableStream extends TerminalStream {
  on?(event: 'resize', listener: () => void): unknown;
}

/**
 * Output with a display in the last lines of a terminal. Other output is printed above the display. While an
 * incomplete line is on the terminal (a question), the display is hidden.
 * @param load loads the terminal when a display is shown for the first time
 */
export function withLiveDisplay(
  output: Omit<RawOutput, 'status'>,
  stream: ResizableStream,
  load: () => Promise<LiveTerminal>,
): Required<RawOutput> {
  let terminal: LiveTerminal | null = null;
  let isLoading = false;
  let render: ((size: TerminalSize) => string) | null = null;
  let isLineOpen = false;
  // A terminal without a size has 0 columns.
  const width = (): number | undefined => stream.columns || undefined;
  const draw = (): void => {
    if (terminal === null || render === null || isLineOpen) return;
    terminal.draw(render({ width: width() ?? 80, height: stream.rows || 24 }));
  };
  const start = async (): Promise<void> => {
    isLoading = true;
    terminal = await load();
    if (render !== null) terminal.echo?.off();
    stream.on?.('resize', () => {
      terminal?.resized();
      draw();
    });
    draw();
  };
  const above = (write: (text: string) => void, text: string): void => {
    if (text === '') return;
    if (!isLineOpen && render !== null) terminal?.erase();
    write(text);
    isLineOpen = !text.endsWith('\n');
    draw();
  };
  return {
    width,
    stdout: (text) => above(output.stdout, text),
    stderr: (text) => above(output.stderr, text),
    status: (next) => {
      if (next === null && render !== null && !isLineOpen) terminal?.erase();
      if (next === null) terminal?.echo?.restore();
      else if (render === null) terminal?.echo?.off();
      render = next;
      if (next !== null && !isLoading) void start();
      else draw();
    },
  };
}
