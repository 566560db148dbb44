import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type ResizableStream, withLiveDisplay } from '../../../../src/cli/adapters/live-output.ts';
import { liveTerminal } from '../../../../src/cli/adapters/live-terminal.ts';

/** A terminal of some size that interprets what log-update and the program write. */
class Screen extends EventEmitter implements ResizableStream {
  columns = 40;
  rows = 10;
  lines: string[] = [''];
  row = 0;
  column = 0;

  write = (text: string): boolean => {
    for (const [token] of text.matchAll(/\u001b\[\??[0-9]*[A-Za-z]|[\s\S]/g)) this.#handle(token);
    return true;
  };

  /** Wraps the lines again, as terminals do. */
  resize(columns: number): void {
    const wrapped = this.lines.flatMap((line) => line.match(new RegExp(`.{1,${columns}}`, 'g')) ?? ['']);
    this.row += wrapped.length - this.lines.length;
    this.lines = wrapped;
    this.columns = columns;
    this.emit('resize');
  }

  shown(): readonly string[] {
    const lines = this.lines.map((line) => line.trimEnd());
    return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1);
  }

  #handle(token: string): void {
    const [, count = '1', kind] = /^\u001b\[\??([0-9]*)([A-Za-z])$/.exec(token) ?? [];
    const times = Number(count || 1);
    if (kind === 'A') this.row = Math.max(0, this.row - times);
    else if (kind === 'B') this.row += times;
    else if (kind === 'G' || token === '\r') this.column = 0;
    else if (kind === 'K') this.lines[this.row] = count === '2' ? '' : (this.lines[this.row] ?? '').slice(0, this.column);
    else if (token === '\n') {
      this.row++;
      this.column = 0;
    } else if (kind === undefined) {
      const line = (this.lines[this.row] ?? '').padEnd(this.column);
      this.lines[this.row] = line.slice(0, this.column) + token + line.slice(this.column + 1);
      this.column++;
    }
    while (this.lines.length <= this.row) this.lines.push('');
  }
}

async function world() {
  const screen = new Screen();
  const write = (text: string): void => void screen.write(text);
  let loads = 0;
  const output = withLiveDisplay({ stdout: write, stderr: write }, screen, async () => {
    loads++;
    return liveTerminal(screen);
  });
  const show = async (text: string): Promise<void> => {
    output.status(() => text);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { screen, output, show, loads: () => loads };
}

describe('a display in the last lines of a terminal', () => {
  it('stays below the output', async () => {
    const { screen, output, show } = await world();
    await show('1/3 hosts\n  n1 inspecting');
    output.stderr('n1: done\n');
    await show('2/3 hosts\n  n2 inspecting\n  n3 inspecting');
    output.stdout('result\n');
    expect(screen.shown()).toEqual(['n1: done', 'result', '2/3 hosts', '  n2 inspecting', '  n3 inspecting']);
    await show('3/3 hosts');
    expect(screen.shown()).toEqual(['n1: done', 'result', '3/3 hosts']);
  });

  it('keeps the output above and the order of its lines when lines in the middle appear and disappear', async () => {
    const { screen, output, show } = await world();
    output.stderr('n0: done\n');
    for (const middle of [['n1', 'n2', 'n3'], ['n3'], ['n3', 'n4'], []]) {
      const lines = ['1/3 hosts', ...middle, '1 failed'];
      await show(lines.join('\n'));
      expect(screen.shown()).toEqual(['n0: done', ...lines]);
    }
  });

  it('is erased at the end', async () => {
    const { screen, output, show } = await world();
    await show('1/3 hosts\n  n1 inspecting');
    output.status(null);
    output.stdout('end\n');
    expect(screen.shown()).toEqual(['end']);
  });

  it('is not loaded before it is shown, and is not shown if it ends while it is loaded', async () => {
    const { screen, output, show, loads } = await world();
    output.stdout('a\n');
    output.status(null);
    expect(loads()).toBe(0);
    const shown = show('1/3 hosts');
    output.status(null);
    await shown;
    expect([loads(), screen.shown()]).toEqual([1, ['a']]);
  });

  it('is hidden while a line is incomplete, so that it does not split a question', async () => {
    const { screen, output, show } = await world();
    await show('1/3 hosts');
    output.stderr('Really? ');
    await show('2/3 hosts');
    output.stderr('yes\n');
    expect(screen.shown()).toEqual(['Really? yes', '2/3 hosts']);
  });

  it('is rendered for the size of the terminal, and again when the size changes', async () => {
    const { screen, output } = await world();
    output.stdout('before\n');
    output.status(({ width, height }) => `${'x'.repeat(width - 1)}\nheight ${height}`);
    await new Promise((resolve) => setImmediate(resolve));
    expect(screen.shown()).toEqual(['before', 'x'.repeat(39), 'height 10']);
    screen.rows = 6;
    screen.resize(20);
    expect(screen.shown()).toEqual(['before', 'x'.repeat(19), 'height 6']);
    screen.resize(60);
    expect(screen.shown()).toEqual(['before', 'x'.repeat(59), 'height 6']);
  });
});
