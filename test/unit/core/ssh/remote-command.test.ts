import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderRemoteCommand } from '../../../../src/core/ssh/remote-command.ts';
import { quoteShell } from '../../../../src/core/text/shell-quote.ts';

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

describe.each(LOGIN_SHELLS)('renderRemoteCommand in %s', (shell) => {
  it('starts the very argv, after the mark', () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 4 }), (words) => {
        const { stdout } = runIn(shell, ['printf', '%s\\0', ...words, 'end']);
        expect(stdout.equals(Buffer.from(`mark\n${[...words, 'end'].map((each) => `${each}\0`).join('')}`))).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it.each([100, 400, 900, 12_000])('takes what is too long for one argument, or one word, of the login shell: %i', (count) => {
    const long = "it's é\n\\!".repeat(count);
    expect(runIn(shell, ['printf', '%s', long]).stdout.toString()).toBe(`mark\n${long}`);
    const line = ['/bin/sh', '-c', 'printf "%s|" "$0" "$@"; cat', 'a name:', long, 'b\nc'];
    const { command, stdinPrefix } = renderRemoteCommand(line, 'mark');
    const { stdout } = spawnSync(shell, ['-c', command], { input: `${stdinPrefix}rest\n` });
    expect(stdout.toString()).toBe(`mark\na name:|${long}|b\nc|rest\n`);
  });

  it('hands over an input in the command', () => {
    fc.assert(
      fc.property(word, fc.array(word, { maxLength: 3 }), (text, words) => {
        const input = `${text}\n`;
        const argv = ['sh', '-c', 'cat; printf "%s\\0" "$@"', 'sh', ...words];
        const { command, stdinPrefix, includesInput } = renderRemoteCommand(argv, 'mark', { input });
        expect([stdinPrefix, includesInput]).toEqual(['', true]);
        const { stdout } = spawnSync(shell, ['-c', command], { input: 'not this' });
        expect(stdout.toString()).toBe(`mark\n${input}${words.length === 0 ? '\0' : words.map((each) => `${each}\0`).join('')}`);
      }),
      { numRuns: 40 },
    );
  });

  it('gives a line of sh its input in a variable, and starts no other shell for it', () => {
    fc.assert(
      fc.property(word, word, fc.array(word, { maxLength: 3 }), (text, more, words) => {
        const line = `printf '%s\\0' "$0" "$@" "$kubeletadm_stdin" "$(cat)" ${quoteShell(more)}; exit 4`;
        const { command, includesInput } = renderRemoteCommand(['/bin/sh', '-c', line, 'a name:', ...words], 'mark', {
          input: `${text}\n`,
        });
        const { status, stdout } = spawnSync(shell, ['-c', command], { input: '' });
        expect([includesInput, status]).toEqual([true, 4]);
        expect(stdout.toString()).toBe(`mark\n${['a name:', ...words, text, '', more].map((each) => `${each}\0`).join('')}`);
      }),
      { numRuns: 40 },
    );
  });

  it('leaves no variable behind for what the line starts', () => {
    const argv = ['/bin/sh', '-c', 'env | grep -c kubeletadm_stdin'];
    const { command } = renderRemoteCommand(argv, 'mark', { input: 'x\n' });
    expect(spawnSync(shell, ['-c', command]).stdout.toString()).toBe('mark\n0\n');
  });

  it('hands over 28 KB of input in the command where the server takes it', () => {
    const input = "it's one line\n".repeat(2000);
    const { command, includesInput } = renderRemoteCommand(['cat'], 'mark', { input, maxCommandBytes: 100_000 });
    expect(includesInput).toBe(true);
    expect(spawnSync(shell, ['-c', command]).stdout.toString()).toBe(`mark\n${input}`);
  });

  it.each([[['/nonexistent/x y']], [['/etc/passwd']], [['/etc']], [['nosuch']], [['-x']]])('tells that %j cannot be started', (argv) => {
    expect(runIn(shell, argv)).toMatchObject({ status: 127, stderr: 'mark missing\n' });
  });

  it('tells its process id, which stays that of the program', () => {
    const { stdout, stderr } = runIn(shell, ['/bin/sh', '-c', 'echo $$']);
    expect(`mark ${stdout.toString().split('\n')[1]}\n`).toBe(stderr);
  });

  it.each([
    ['exit 3', 3],
    ['kill -TERM $$', 143],
  ])('says how it ended, on a line after all else: %s', (script, code) => {
    const { command } = renderRemoteCommand(['/bin/sh', '-c', `printf problem >&2; printf ';exec '; ${script}`], 'mark', {
      tellsEnd: true,
    });
    const { status, stdout, stderr } = spawnSync(shell, ['-c', command], { encoding: 'utf8' });
    expect([status, stdout]).toEqual([code, 'mark\n;exec ']);
    expect(stderr).toMatch(new RegExp(`^mark \\d+\nproblem\nmark end ${code}\n$`));
  });

  it('hands exit codes through', () => expect(runIn(shell, ['/bin/sh', '-c', 'exit 42']).status).toBe(42));
});

describe('renderRemoteCommand', () => {
  it.each([
    ['too long', 'x\n'.repeat(5000)],
    ['without a newline at its end', 'x'],
    ['with a NUL', 'x\0\n'],
  ])('leaves an input to stdin: %s', (_, input) => {
    expect(renderRemoteCommand(['cat'], 'mark', { input }).includesInput).toBe(false);
  });
});
