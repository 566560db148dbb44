import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canBeKept, KEPT_SHELL, renderKeptLine, renderRemoteCommand, type ShellLine } from '../../../../src/core/ssh/remote-command.ts';
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
    const start = (): string => KEPT_SHELL.replace('/bin/sh', inner);

    /** Runs lines, each when the one before has told its end; gives both streams and the shell's exit code. */
    async function runLines(lines: readonly ShellLine[]): Promise<readonly [string, string, number | null]> {
      const shell = spawn(login, ['-c', start()]);
      const [out, errors]: [Buffer[], Buffer[]] = [[], []];
      shell.stdout.on('data', (chunk: Buffer) => out.push(chunk));
      shell.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
      const closed = new Promise<number | null>((resolve) => shell.once('close', resolve));
      const text = (chunks: readonly Buffer[]): string => Buffer.concat(chunks).toString();
      for (const line of lines) {
        shell.stdin.write(renderKeptLine(line, line === lines[0]));
        await untilTrue(() => [out, errors].every((stream) => text(stream).includes(`${line.mark} end`)));
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
      const [out, errors, code] = await runLines([line('mark1', ''), line('mark2', 'é'), line('mark3', 'x\n'.repeat(30_000))]);
      const said = (mark: string, more: string): string => `$in\n'${more}\\|it's|a\nb|none|${mark} end\n`;
      expect(out).toBe(`mark1\n${said('mark1', '')}${said('mark2', 'é')}${said('mark3', 'x\n'.repeat(30_000))}`);
      expect(errors).toBe(['mark1', 'mark2', 'mark3'].map((mark) => `${mark} pid\nproblem${mark} end 0\n`).join(''));
      expect(code).toBe(0);
    });

    it('hands over any stdin, any words', async () => {
      const argv = ['/bin/sh', '-c', `printf '%s\\0' "$@" "$kubeletadm_stdin" "$(cat)"; exit 4`, 'sh'];
      await fc.assert(
        fc.asyncProperty(word, fc.array(word, { maxLength: 3 }), async (stdin, words) => {
          const [out, errors] = await runLines([{ argv: [...argv, ...words], mark: 'mark1', stdin }]);
          const said = [...words, stdin.replace(/\n+$/, ''), ''].map((each) => `${each}\0`).join('');
          expect([out, errors]).toEqual([`mark1\n${said}mark1 end\n`, 'mark1 pid\nmark1 end 4\n']);
        }),
        { numRuns: 15 },
      );
    });

    it('leaves no variable behind for what a line starts', async () => {
      const [out] = await runLines([{ argv: ['/bin/sh', '-c', 'env | grep -c kubeletadm_stdin'], mark: 'mark1', stdin: 'x' }]);
      expect(out).toBe('mark1\n0\nmark1 end\n');
    });

    it('runs nothing of a line whose beginning a profile has read', () => {
      const stdin = "it's() {\n:\n}\necho ran >&2\necho 'ran' >&2\necho ran >&2;\n".repeat(3);
      const whole = renderKeptLine({ argv: ['/bin/sh', '-c', 'eval "$kubeletadm_stdin"', 'sh'], mark: 'mark', stdin }, true);
      for (let cut = 1; cut < whole.length; cut += 29) {
        const { stderr } = spawnSync(login, ['-c', start()], { input: whole.slice(cut), encoding: 'utf8' });
        expect(stderr.split('\n')).not.toContain('ran');
      }
    });

    it('runs nothing of a line that broke off', () => {
      const whole = renderKeptLine({ argv: ['/bin/sh', '-c', 'echo ran >&2', 'sh', 'a b'], mark: 'mark', stdin: "it's\nin" }, false);
      const cuts = [
        20,
        30,
        whole.indexOf("'\\''"),
        whole.indexOf('set --'),
        whole.indexOf(';(eval'),
        whole.indexOf(';r='),
        whole.length - 2,
      ];
      for (const cut of cuts) {
        const { stdout, stderr } = spawnSync(login, ['-c', start()], { input: whole.slice(0, cut), encoding: 'utf8' });
        expect(`${cut}: ${stdout}${stderr.replace(/.*(?:[Ss]yntax|unexpected|unmatched|unterminated|no closing|unclosed).*\n/g, '')}`).toBe(
          `${cut}: `,
        );
      }
    });
  },
);

describe('canBeKept', () => {
  it.each([
    ['a line', ['/bin/sh', '-c', 'x', 'sh', 'y'], 'z', true],
    ['another program', ['cat'], 'z', false],
    ['a NUL', ['/bin/sh', '-c', 'x'], 'x\0', false],
    ['much to read byte by byte', ['/bin/sh', '-c', 'x'], 'x'.repeat(100_000), false],
  ])('%s', (_, argv, stdin, expected) => expect(canBeKept(argv, stdin)).toBe(expected));
});
