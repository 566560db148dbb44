import { describe, expect, it } from 'vitest';
import { withStatusLine } from '../../../../src/cli/adapters/status-line.ts';

/** Lines that a terminal shows after the written text; the last line may be incomplete. */
function terminal(width = 40) {
  let written = '';
  const write = (text: string): void => {
    written += text;
  };
  const plain = { stdout: write, stderr: write };
  const output = withStatusLine(plain, () => width);
  const screen = (): readonly string[] =>
    written.split('\n').map((line) => line.slice(Math.max(0, line.lastIndexOf('\r\u001b[2K') + (line.includes('\r\u001b[2K') ? 5 : 0))));
  return { output, screen };
}

describe('a line at the bottom of the terminal', () => {
  it('stays below the output', () => {
    const { output, screen } = terminal();
    output.status?.('1/3 hosts');
    output.stderr('node1: done\n');
    output.status?.('2/3 hosts');
    output.stdout('result\n');
    expect(screen()).toEqual(['node1: done', 'result', '2/3 hosts']);
  });

  it('is removed at the end', () => {
    const { output, screen } = terminal();
    output.status?.('1/3 hosts');
    output.stderr('node1: done\n');
    output.status?.(null);
    output.stdout('end\n');
    expect(screen()).toEqual(['node1: done', 'end', '']);
  });

  it('is not wider than the terminal, and contains no terminal escape sequences', () => {
    const { output, screen } = terminal(16);
    output.status?.('a\u001b[31mb\n\u202ec and so on');
    expect(screen()).toEqual(['a\\x1b[31mb\\x0a…']);
  });

  it('does not split an incomplete line', () => {
    const { output, screen } = terminal();
    output.status?.('1/3');
    output.stderr('Really? ');
    output.stderr('yes\n');
    expect(screen()).toEqual(['Really? yes', '']);
  });
});
