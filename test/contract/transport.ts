import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isAppError } from '../../src/base/errors.ts';
import type { RunResult, Transport } from '../../src/host/transport.ts';
import { untilTrue } from '../support/until-true.ts';

/** The environment of the suite. Its commands run on the local host, so that the suite can inspect their effects. */
export interface TransportWorld {
  /** A new transport; the suite closes it. */
  open(): Transport;
  /** Closes the connections of all transports without DISCONNECT; absent for transports without connections. */
  readonly dropConnections?: () => void;
  stop(): Promise<void>;
}

const MEBIBYTE = 1024 * 1024;

/** The contract of Transport, for every implementation. */
export function transportContract(name: string, start: () => Promise<TransportWorld>): void {
  describe(`transport ${name}`, () => {
    let world: TransportWorld;
    let transport: Transport;
    let directory: string;
    const opened: Transport[] = [];
    const open = (): Transport => {
      const next = world.open();
      opened.push(next);
      return next;
    };
    const sh = (script: string, ...args: string[]): readonly string[] => ['/bin/sh', '-c', script, 'sh', ...args];
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'kubeletadm-transport-'));
      world = await start();
      transport = open();
    });
    afterEach(async () => {
      for (const each of opened.splice(1)) await each.close();
    });
    afterAll(async () => {
      await transport?.close();
      await world?.stop();
      rmSync(directory, { recursive: true, force: true });
    });

    it.each([0, 1, 2, 126, 127, 255])('resolves on exit code %i', async (code) => {
      expect(await transport.run(sh(`exit ${code}`))).toMatchObject({ exitCode: code, signal: null });
    });

    it('keeps stdout and stderr apart, and trims neither', async () => {
      const { stdout, stderr } = await transport.run(sh('printf "\\n out \\n\\n"; printf " err\\n" >&2'));
      expect([text(stdout), text(stderr)]).toEqual(['\n out \n\n', ' err\n']);
    });

    it.each(['TERM', 'KILL', 'SEGV'])('has no exit code when SIG%s ended it', async (signal) => {
      expect(await transport.run(sh(`kill -${signal} $$`))).toMatchObject({ exitCode: null, signal: `SIG${signal}` });
    });

    it.each([['nosuchprogram'], ['/nonexistent/program'], ['/etc/passwd'], ['/etc']])('cannot start %s', async (program) => {
      await expect(transport.run([program, 'x'])).rejects.toSatisfy(
        (error) => isAppError(error, 'HOST_COMMAND_NOT_FOUND') && error.message.startsWith(`${transport.name}: cannot start ${program}: `),
      );
    });

    const HOSTILE: readonly (readonly [string, string])[] = [
      ['empty', ''],
      ['blanks', '  a  b '],
      ['newlines', '\na\n\nb\n'],
      ['tabs and carriage returns', '\ta\r\n'],
      ['single quotes', "it's 'quoted'"],
      ['double quotes', '"a" "b'],
      ['backslashes', '\\ \\\\ \\n \\\' \\" \\'],
      ['expansions', '$HOME $(id) `id` ${x:-y} $((1+1)) ~ * ? [a] {a,b}'],
      ['operators', '; & && | || > < # ! !! ^a^b'],
      ['leading hyphens', '--help'],
      ['assignment', 'A=b'],
      ['Unicode', 'Größe 名前 😀 \u00a0'],
      ['control characters', '\u0001\u0007\u001b[0m\u007f'],
      ['100 KB of text', 'x'.repeat(100_000)],
      ['100 KB of quotes and newlines', '\'\n\\!"'.repeat(20_000)],
    ];

    it.each(HOSTILE)('passes an argument: %s', async (_, argument) => {
      const { stdout } = await transport.run(sh('printf "%s\\0" "$#" "$@"', argument, 'end'));
      expect(Buffer.from(stdout).equals(Buffer.from(`2\0${argument}\0end\0`))).toBe(true);
    });

    it('rejects an argument beyond the limit of Linux', async () => {
      await expect(transport.run(sh(':', 'x'.repeat(131_072)))).rejects.toSatisfy((error) => isAppError(error, 'HOST_COMMAND_TOO_LONG'));
    });

    it('rethrows a programming error', async () => {
      await expect(transport.run([])).rejects.toThrow(RangeError);
      await expect(transport.run(['printf', 'a\0b'])).rejects.toThrow(RangeError);
    });

    it('has an empty stdin unless one is given', async () => {
      expect(text((await transport.run(['cat'], { timeoutMs: 10_000 })).stdout)).toBe('');
    });

    it('sends 5 MiB of stdin and receives it back', async () => {
      const stdin = 'é\n\0'.repeat((5 * MEBIBYTE) / 4);
      const { stdout } = await transport.run(['cat'], { stdin });
      expect(Buffer.from(stdout).equals(Buffer.from(stdin))).toBe(true);
    });

    it('receives 5 MiB of bytes unchanged', async () => {
      const path = join(directory, 'bytes');
      const bytes = Buffer.from(Uint8Array.from({ length: 5 * MEBIBYTE }, (_, i) => (i * 31 + (i >> 8)) & 0xff));
      writeFileSync(path, bytes);
      const chunks: Uint8Array[] = [];
      const { stdout } = await transport.run(['cat', path], { onStdout: (chunk) => chunks.push(chunk) });
      expect(Buffer.from(stdout).equals(bytes)).toBe(true);
      expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
      expect(chunks.length).toBeGreaterThan(1);
    });

    it('receives 3 MiB of stderr in addition to stdout', async () => {
      const { stdout, stderr } = await transport.run(sh('head -c 3145728 /dev/zero >&2; echo done'));
      expect([text(stdout), stderr.byteLength]).toEqual(['done\n', 3 * MEBIBYTE]);
    });

    it('receives 3 MiB of each, in turn and at the same time', async () => {
      const { stdout, stderr } = await transport.run(
        sh('for i in 1 2 3; do head -c 1048576 /dev/zero & head -c 1048576 /dev/zero >&2; wait; done'),
      );
      expect([stdout.byteLength, stderr.byteLength]).toEqual([3 * MEBIBYTE, 3 * MEBIBYTE]);
    });

    it('sends any stdin', async () => {
      for (const stdin of [
        "it's one\n",
        '\n\n',
        '',
        'no line end',
        'a\0b\n',
        'E\n$i `id` $(id) \\\n',
        'é\r\n'.repeat(200),
        'x'.repeat(200_000),
      ]) {
        const { stdout, stderr, exitCode } = await transport.run(['sh', '-c', 'cat; printf "err\\n" >&2; exit 5'], { stdin });
        expect([text(stdout) === stdin, text(stderr), exitCode]).toEqual([true, 'err\n', 5]);
      }
    });

    it('runs commands one after the other, each with its own streams, stdin and exit code', async () => {
      const mine = open();
      for (let i = 0; i < 4; i++) {
        const { exitCode, stdout, stderr } = await mine.run(sh('cat; echo "$1"; printf "é\\n\\n" >&2; cd /; exit "$1"', String(i)), {
          stdin: `in ${i}\n`,
        });
        expect([exitCode, text(stdout), text(stderr)]).toEqual([i, `in ${i}\n${i}\n`, 'é\n\n']);
      }
    });

    it('waits for the exit code of a command that closed its output long before', async () => {
      const path = join(directory, 'late-exit');
      const running = transport.run(sh('exec >&- 2>&-; echo $$ >"$1.pid"; until [ -e "$1" ]; do sleep 0.05; done; exit 7', path));
      await untilTrue(() => existsSync(`${path}.pid`));
      writeFileSync(path, '');
      expect(await running).toMatchObject({ exitCode: 7, signal: null });
    });

    it.each([
      ['at all', 'exit 3', 3],
      ['completely', 'head -c 10 >/dev/null; exit 4', 4],
    ])('accepts a command that does not read its stdin %s', async (_, script, exitCode) => {
      expect(await transport.run(sh(script), { stdin: 'x'.repeat(5 * MEBIBYTE) })).toMatchObject({ exitCode });
    });

    it('reports stdout as it arrives', async () => {
      const path = join(directory, 'go-on');
      const received: string[] = [];
      const running = transport.run(sh('echo first; until [ -e "$1" ]; do sleep 0.05; done; echo second', path), {
        onStdout: (chunk) => received.push(text(chunk)),
      });
      await untilTrue(() => received.join('') === 'first\n');
      writeFileSync(path, '');
      expect(text((await running).stdout)).toBe('first\nsecond\n');
    });

    it('stops the command when the listener throws, and rejects with its error', async () => {
      const onStdout = (): void => {
        throw new Error('cannot take it');
      };
      await expect(transport.run(sh('echo x; sleep 600'), { onStdout, timeoutMs: 20_000 })).rejects.toThrow('cannot take it');
    });

    it('runs 20 commands at a time, without mixing their output', async () => {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          transport.run(sh('read -r line; sleep 0.1; echo "$1 $line"; exit "$1"', String(i)), { stdin: `in ${i}\n` }),
        ),
      );
      expect(results.map(({ exitCode, stdout }) => [exitCode, text(stdout)])).toEqual(
        Array.from({ length: 20 }, (_, i) => [i, `${i} in ${i}\n`]),
      );
    });

    /** Starts a command that does not end, with a child process; returns their process ids once they run. */
    async function startEndless(
      run: (argv: readonly string[]) => Promise<RunResult>,
    ): Promise<{ outcome: Promise<unknown>; pids: number[] }> {
      const path = join(mkdtempSync(join(directory, 'endless-')), 'pids');
      const argv = sh('sleep 600 & echo "$$ $!" >"$1.new"; mv "$1.new" "$1"; wait; sleep 600', path);
      const outcome = run(argv).catch((error: unknown) => error);
      const read = (): number[] => {
        try {
          return readFileSync(path, 'utf8').trim().split(' ').map(Number);
        } catch {
          return [];
        }
      };
      await untilTrue(() => read().length === 2);
      return { outcome, pids: read() };
    }

    it('stops waiting at the time-out, and stops the command with its children', async () => {
      const { outcome, pids } = await startEndless((argv) => transport.run(argv, { timeoutMs: 1500 }));
      expect(await outcome).toSatisfy((error) => isAppError(error, 'HOST_TIMEOUT'));
      await untilTrue(() => pids.every((pid) => !isRunning(pid)));
    });

    it('kills a command that ignores SIGTERM at the timeout', async () => {
      const path = join(directory, 'stubborn');
      const running = transport.run(sh('trap "" TERM; echo $$ >"$1"; while :; do sleep 0.1; done', path), { timeoutMs: 2_000 });
      await expect(running).rejects.toSatisfy((error) => isAppError(error, 'HOST_TIMEOUT'));
      await untilTrue(() => !isRunning(Number(readFileSync(path, 'utf8'))));
    });

    it('stops at an abort, with its reason', async () => {
      const controller = new AbortController();
      const { outcome, pids } = await startEndless((argv) => transport.run(argv, { signal: controller.signal }));
      controller.abort(new Error('enough'));
      expect(await outcome).toEqual(new Error('enough'));
      await untilTrue(() => pids.every((pid) => !isRunning(pid)));
    });

    it('starts nothing after an abort', async () => {
      await expect(open().run(sh('echo x'), { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before');
    });

    it.each([
      ['stdout', 'yes'],
      ['stderr', 'yes >&2'],
    ])('stops a command that floods %s', async (stream, script) => {
      await expect(transport.run(sh(script), { maxOutputBytes: 100_000 })).rejects.toSatisfy(
        (error) => isAppError(error, 'HOST_OUTPUT_TOO_LARGE') && error.message.includes(stream),
      );
    });

    it('remains usable after each of these failures', async () => {
      await transport.run(['nosuchprogram']).catch(() => undefined);
      await transport.run(sh('sleep 600'), { timeoutMs: 50 }).catch(() => undefined);
      await transport.run(sh('yes'), { maxOutputBytes: 10 }).catch(() => undefined);
      expect(text((await transport.run(['echo', 'still here'])).stdout)).toBe('still here\n');
    });

    it('reports a connection lost during a command, and reconnects', async ({ skip }) => {
      if (world.dropConnections === undefined) return skip('the transport has no connection');
      const mine = open();
      const { outcome, pids } = await startEndless((argv) => mine.run(argv));
      world.dropConnections();
      expect(await outcome).toSatisfy((error) => isAppError(error, 'HOST_CONNECTION_LOST'));
      expect(text((await mine.run(['echo', 'back'])).stdout)).toBe('back\n');
      // The connection that could stop it is gone.
      killAll(pids);
    });

    it('stops running commands when it is closed, may be closed twice, and starts no further command', async () => {
      const mine = open();
      const { outcome, pids } = await startEndless((argv) => mine.run(argv));
      await Promise.all([mine.close(), mine.close()]);
      expect(await outcome).toSatisfy((error) => isAppError(error, 'HOST_CONNECTION_LOST'));
      await expect(mine.run(['echo'])).rejects.toSatisfy((error) => isAppError(error, 'HOST_CONNECTION_LOST'));
      await mine.close();
      killAll(pids);
    });

    it('may be closed unused', async () => {
      await expect(open().close()).resolves.toBeUndefined();
    });
  });
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGKILL');
}

/** Neither exited nor a zombie that its parent has not collected. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
