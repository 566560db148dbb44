import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderRemoteCommand } from '../../src/ssh/remote-command.ts';
import { ofThisProject } from '../support/shells.ts';
import { numberOfRuns } from '../support/thorough.ts';

const LOGIN_SHELLS = ['/bin/sh', '/bin/bash', '/bin/zsh', '/bin/ksh', '/bin/tcsh', '/bin/bsd-csh', '/usr/bin/fish'].filter((path) =>
  existsSync(path),
);

function runIn(shell: string, argv: readonly string[]): { status: number | null; stdout: Buffer; stderr: string } {
  const { command, stdinPrefix } = renderRemoteCommand(argv, 'mark');
  const { status, stdout, stderr } = spawnSync(shell, ['-c', command], { input: stdinPrefix });
  return { status, stdout, stderr: stderr.toString() };
}

const word = fc
  .array(
    fc.oneof(
      fc.constantFrom("'", '"', '\\', '!', '\n', '$', '`', '{a,b}', '*', '~', ' ', '#', '%', '\r', '^x^y', "\\'", '-n'),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join('').replaceAll('\0', ''));

describe.each(ofThisProject(LOGIN_SHELLS))('renderRemoteCommand in %s', (shell) => {
  it('starts exactly this argv, after the marker', () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 4 }), (words) => {
        const { stdout } = runIn(shell, ['printf', '%s\\0', ...words, 'end']);
        expect(stdout.equals(Buffer.from(`mark\n${[...words, 'end'].map((each) => `${each}\0`).join('')}`))).toBe(true);
      }),
      { numRuns: numberOfRuns(150) },
    );
  });

  it.each([100, 400, 900, 12_000])('accepts commands too long for one argument, or one word, of the login shell: %i', (count) => {
    const long = "it's é\n\\!".repeat(count);
    expect(runIn(shell, ['printf', '%s', long]).stdout.toString()).toBe(`mark\n${long}`);
    const line = ['/bin/sh', '-c', 'printf "%s|" "$0" "$@"; cat', 'a name:', long, 'b\nc'];
    const { command, stdinPrefix } = renderRemoteCommand(line, 'mark');
    const { stdout } = spawnSync(shell, ['-c', command], { input: `${stdinPrefix}rest\n` });
    expect(stdout.toString()).toBe(`mark\na name:|${long}|b\nc|rest\n`);
  });

  it.each([[['/nonexistent/x y']], [['/etc/passwd']], [['/etc']], [['nosuch']], [['-x']]])('reports that %j cannot be started', (argv) => {
    expect(runIn(shell, argv)).toMatchObject({ status: 127, stderr: 'mark missing\n' });
  });

  it('reports its process id, which is that of the program', () => {
    const { stdout, stderr } = runIn(shell, ['/bin/sh', '-c', 'echo $$']);
    expect(`mark ${stdout.toString().split('\n')[1]}\n`).toBe(stderr);
  });

  it.each([
    ['exit 3', 3],
    ['kill -TERM $$', 143],
  ])('reports its exit code, on a line after all other output: %s', (script, code) => {
    const { command } = renderRemoteCommand(['/bin/sh', '-c', `printf problem >&2; printf ';exec '; ${script}`], 'mark', {
      reportsExitCode: true,
    });
    const { status, stdout, stderr } = spawnSync(shell, ['-c', command], { encoding: 'utf8' });
    expect([status, stdout]).toEqual([code, 'mark\n;exec ']);
    expect(stderr).toMatch(new RegExp(`^mark \\d+\nproblem\nmark end ${code}\n$`));
  });

  it('passes exit codes through', () => expect(runIn(shell, ['/bin/sh', '-c', 'exit 42']).status).toBe(42));
});

describe('renderRemoteCommand', () => {
  it('starts only one shell for a script of one line', () => {
    const { command } = renderRemoteCommand(['/bin/sh', '-c', 'exit 3'], 'mark');
    expect(command.match(/\/bin\/sh/g)).toHaveLength(1);
    expect(spawnSync('/bin/sh', ['-c', command]).status).toBe(3);
  });

  it.each(['exit 3\n', ':\nexit 3'])('runs a script of several lines: %j', (script) => {
    const { command } = renderRemoteCommand(['/bin/sh', '-c', script], 'mark');
    expect(spawnSync('/bin/sh', ['-c', command]).status).toBe(3);
  });
});
