import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { quoteShell } from '../../src/base/text/shell-quote.ts';
import { findProgram } from '../support/shells.ts';

const MODULE = new URL('../../src/cli/adapters/terminal-echo.ts', import.meta.url).pathname;
const TSX = new URL('../../node_modules/.bin/tsx', import.meta.url).pathname;

/** Runs statements on a terminal of their own; `show(name)` prints whether the terminal shows typed characters. */
function onTerminal(statements: string, after = 'true'): string {
  const program = `import { execFileSync } from 'node:child_process';
import { terminalEcho } from ${JSON.stringify(MODULE)};
const show = (name) => console.log(name, execFileSync('stty', ['-a'], { stdio: ['inherit', 'pipe', 'ignore'], encoding: 'utf8' }).match(/-?\\becho\\b/)[0]);
const echo = terminalEcho(process.stdin);
${statements}`;
  const command = `${TSX} -e ${quoteShell(program)}; ${after}`;
  return execFileSync('script', ['-qec', command, '/dev/null'], { encoding: 'utf8' }).replaceAll('\r', '');
}

describe.skipIf(findProgram('script') === null)('the echo of a terminal', { timeout: 60_000 }, () => {
  it('is off while a display is shown, and restored after it', () => {
    expect(onTerminal("show('before'); echo.off(); echo.off(); show('shown'); echo.restore(); echo.restore(); show('after');")).toBe(
      'before echo\nshown -echo\nafter echo\n',
    );
  });

  it('is restored when the process exits at once', () => {
    expect(onTerminal("echo.off(); show('shown'); process.exit(1);", "stty -a | grep -o -e '-*\\becho\\b'")).toBe('shown -echo\necho\n');
  });

  it('is not changed without a terminal on standard input', () => {
    expect(onTerminal("terminalEcho({}).off(); show('shown');")).toBe('shown echo\n');
  });
});
