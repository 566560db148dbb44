import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderKeptShell, renderNextLine, renderRemoteCommand, type ShellLine } from '../../../../src/core/ssh/remote-command.ts';
import { quoteShell } from '../../../../src/core/text/shell-quote.ts';
import { untilTrue } from '../../../support/until-true.ts';

const LOGIN_SHELLS = ['/bin/sh', '/bin/bash', '/bin/zsh', '/bin/ksh', '/bin/tcsh', '/bin/bsd-csh', '/usr/bin/fish'].filter((path) =>
  existsSync(path),
);
/** What a host may have as `/bin/sh`. */
const INNER_SHELLS = ['/bin/dash', '/bin/bash', '/bin/mksh', '/bin/busybox sh'].filter((path) => existsSync(path.split(' ')[0] ?? ''));

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

describe.each([...LOGIN_SHELLS.map((login) => [login, '/bin/sh'] as const), ...INNER_SHELLS.map((inner) => ['/bin/sh', inner] as const)])(
  'a kept shell in %s, as %s',
  (login, inner) => {
    /** Runs lines, each when the one before has told its end; gives both streams and the shell's exit code. */
    async function runLines(first: ShellLine | null, next: readonly ShellLine[]): Promise<readonly [string, string, number | null]> {
      const { command, includesFirst } = renderKeptShell(first, 100_000);
      expect(includesFirst).toBe(first !== null);
      const shell = spawn(login, ['-c', command.replace('/bin/sh', inner)]);
      const [out, errors]: [Buffer[], Buffer[]] = [[], []];
      shell.stdout.on('data', (chunk: Buffer) => out.push(chunk));
      shell.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
      const closed = new Promise<number | null>((resolve) => shell.once('close', resolve));
      const text = (chunks: readonly Buffer[]): string => Buffer.concat(chunks).toString();
      const untilEnd = (mark: string): Promise<void> =>
        untilTrue(() => [out, errors].every((stream) => text(stream).includes(`${mark} end`)));
      if (first !== null) await untilEnd(first.mark);
      for (const line of next) {
        shell.stdin.write(renderNextLine(line));
        await untilEnd(line.mark);
      }
      shell.stdin.end();
      const code = await closed;
      return [text(out), text(errors).replace(/^(mark\d) \d+$/gm, '$1 pid'), code];
    }

    it('runs lines one after the other, each with its own variables and stdin', async () => {
      const line = (mark: string, more: string): ShellLine => ({
        argv: [
          '/bin/sh',
          '-c',
          `printf '%s|' "$kubeletadm_stdin" "$@" "\${v-none}"; cat; v=set; cd /; printf problem >&2; exit 0`,
          'sh',
          "it's",
          'a\nb',
        ],
        mark,
        stdin: `$in\n'${more}\\\n`,
      });
      const [out, errors, code] = await runLines(line('mark1', ''), [line('mark2', 'é'), line('mark3', 'x\n'.repeat(50_000))]);
      const said = (mark: string, more: string): string => `${mark}\n$in\n'${more}\\|it's|a\nb|none|${mark} end\n`;
      expect(out).toBe(said('mark1', '') + said('mark2', 'é') + said('mark3', 'x\n'.repeat(50_000)));
      expect(errors).toBe(['mark1', 'mark2', 'mark3'].map((mark) => `${mark} pid\nproblem${mark} end 0\n`).join(''));
      expect(code).toBe(0);
    });

    it('waits for the first as for the others where that may not be seen', async () => {
      const [out, errors] = await runLines(null, [
        { argv: ['/bin/sh', '-c', 'eval "$kubeletadm_stdin"'], mark: 'mark1', stdin: 'echo in; exit 7' },
      ]);
      expect([out, errors]).toEqual(['mark1\nin\nmark1 end\n', 'mark1 pid\nmark1 end 7\n']);
    });

    it('runs nothing of a line that broke off', () => {
      const { command } = renderKeptShell(null);
      const whole = renderNextLine({ argv: ['/bin/sh', '-c', 'echo ran'], mark: 'mark', stdin: '' });
      const { stdout } = spawnSync(login, ['-c', command.replace('/bin/sh', inner)], { input: whole.slice(0, -1) });
      expect(stdout.toString()).toBe('');
    });
  },
);

describe('renderRemoteCommand', () => {
  it.each([
    ['too long', 'x\n'.repeat(5000)],
    ['without a newline at its end', 'x'],
    ['with a NUL', 'x\0\n'],
  ])('leaves an input to stdin: %s', (_, input) => {
    expect(renderRemoteCommand(['cat'], 'mark', { input }).includesInput).toBe(false);
  });
});
