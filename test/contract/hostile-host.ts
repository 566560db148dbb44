import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AppError, formatProblem } from '../../src/base/errors.ts';
import type { Host } from '../../src/host/access/host.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { Transport } from '../../src/host/transport.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { startTcpServer } from '../support/loopback.ts';
import { requirement } from '../support/requirement.ts';
import { sshTargetFor } from '../support/ssh-target.ts';
import { type Sshd, sessionProcesses, sshdMissing, startSshd } from '../support/sshd.ts';
import { untilTrue } from '../support/until-true.ts';

const MEBIBYTE = 1024 * 1024;
/**
 * Maximum growth of memory per host. An answer has at most 64 MiB; a quick host sends several times that amount as
 * garbage before the collector runs. Output without a limit exceeds this within seconds.
 */
const MAX_GROWTH = 1024 * MEBIBYTE;

/** What a host that answers with garbage, too much or not at all can do to a client: nothing but fail. */
export function hostileHostContract(client: string, transportTo: (target: SshTarget) => Transport): void {
  describe.skipIf(requirement('hostile hosts', sshdMissing))(`a hostile host, by the ${client}`, () => {
    const cleanups: (() => Promise<unknown>)[] = [];
    let directory: string;
    let count = 0;
    beforeAll(() => {
      directory = mkdtempSync(join(tmpdir(), 'kubeletadm-hostile-'));
    });
    afterEach(async () => {
      for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    });
    afterAll(() => rmSync(directory, { recursive: true, force: true }));

    async function serve(forceCommand: string | null): Promise<{ host: Host; sshd: Sshd; transport: Transport }> {
      const sshd = await startSshd({ config: forceCommand === null ? [] : [`ForceCommand ${forceCommand}`] });
      cleanups.push(sshd.stop);
      const target = sshTargetFor({
        name: `host-${++count}`,
        port: sshd.port,
        user: sshd.user,
        directory,
        known: [sshd.hostKey('ed25519')],
        identityFiles: [sshd.identityFile],
      });
      const transport = transportTo(target);
      cleanups.push(() => transport.close());
      return { transport, sshd, host: hostOverTransport(transport, { nonce: () => 'c0ffee'.repeat(4) }) };
    }

    const query = (host: Host, timeoutMs = 60_000): Promise<unknown> =>
      host.query({ it: { kind: 'file', path: '/etc/hostname' } }, { timeoutMs }).then(
        () => 'it answered',
        (error: unknown) => error,
      );

    /** Formats the error and checks that it is one short printable line. */
    function problemOf(error: unknown): string {
      if (!(error instanceof AppError)) throw error;
      const text = error.problems.map(formatProblem).join('');
      expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      expect(text.length).toBeLessThan(700);
      return text;
    }

    it.each([
      ['before the command', 'yes'],
      ['on stderr', 'yes >&2'],
      ['after the answer', 'eval "$SSH_ORIGINAL_COMMAND"; yes'],
      ['without a line end', 'tr "\\\\0" x </dev/zero'],
    ])('that sends endless output %s is stopped, and costs little memory', async (_name, command) => {
      const { host } = await serve(command);
      const before = process.memoryUsage().rss;
      // The command itself may have finished long before: then its answer is used.
      const outcome = await query(host);
      if (outcome !== 'it answered') expect(problemOf(outcome)).toMatch(/HOST_OUTPUT_TOO_LARGE|HOST_PROGRAM_BROKEN/);
      expect(process.memoryUsage().rss - before).toBeLessThan(MAX_GROWTH);
    });

    it.each([
      ['with random bytes', 'head -c 100000 /dev/urandom', 'HOST_COMMAND_NOT_FOUND'],
      ['with nothing', 'true', 'HOST_COMMAND_NOT_FOUND'],
      [
        'with terminal escapes',
        'printf "\\\\033[2J\\\\033]0;owned\\\\007\\\\r worker-2: all is well\\\\n" >&2; exit 1',
        'HOST_COMMAND_NOT_FOUND',
      ],
      ['with a truncated program', 'eval "$SSH_ORIGINAL_COMMAND" | head -c 120', 'HOST_'],
    ])('that answers %s is reported in one line', async (_name, command, code) => {
      const { host } = await serve(command);
      expect(problemOf(await query(host))).toContain(code);
    });

    it('that prints terminal escapes in an error cannot write to the terminal', async () => {
      const { host } = await serve(null);
      const argv = ['/bin/sh', '-c', 'printf "\\033[2Jworker-2: ok\\n\\033[31mall is well\\n" >&2; exit 1'];
      const error: unknown = await host.perform([{ kind: 'run', argv, what: 'it' }]).catch((reason: unknown) => reason);
      expect(problemOf(error)).toContain('all is well');
    });

    it('that never finishes is abandoned after the timeout, and delays no other host', async () => {
      const [hanging, well] = [await serve('sleep 600'), await serve(null)];
      // Connected, so that the time of its answer does not depend on the load of the local host.
      await query(well.host);
      const start = Date.now();
      const outcomes = Promise.all([query(hanging.host, 3000), query(well.host).then((answer) => [answer, Date.now() - start])]);
      const [first, [answer, tookMs]] = (await outcomes) as [unknown, [string, number]];
      expect(problemOf(first)).toContain('HOST_TIMEOUT');
      expect(answer).toBe('it answered');
      expect(tookMs).toBeLessThan(3000);
    });

    it('that never finishes leaves no process when its server has stopped', async () => {
      const { host, sshd, transport } = await serve('sleep 600');
      problemOf(await query(host, 500));
      // Its session ends, and the command continues without a parent. Some shells remain next to their last
      // command.
      await transport.close();
      await untilTrue(() => /Disconnected from|Connection (closed|reset) by/.test(sshd.log()));
      expect(sessionProcesses(sshd.port).length).toBeGreaterThan(0);
      await sshd.stop();
      expect(sessionProcesses(sshd.port)).toEqual([]);
    });

    it('that disconnects during a write is reported', async () => {
      const { host, sshd } = await serve(null);
      const root = mkdtempSync(join(directory, 'root-'));
      const write = { kind: 'write-file', path: join(root, 'f'), content: 'x\n', mode: 0o644, owner: 'root:root' } as const;
      const sleep = { kind: 'run', argv: ['sleep', '600'] } as const;
      const running = host.perform([write, sleep], { onDone: () => sshd.dropConnections() }).catch((reason: unknown) => reason);
      expect(problemOf(await running)).toContain('HOST_CONNECTION_LOST');
    });

    it('that sends endless lines before its SSH version is abandoned', async () => {
      const server = await startTcpServer((socket) => {
        const talk = (): void => {
          while (!socket.destroyed && socket.write('all is well\r\n'.repeat(1000)));
        };
        socket.on('drain', talk);
        talk();
      });
      cleanups.push(server.stop);
      const before = process.memoryUsage().rss;
      const transport = transportTo(sshTargetFor({ name: 'talker', port: server.port, directory, known: [], connectTimeoutMs: 3000 }));
      cleanups.push(() => transport.close());
      const error: unknown = await transport.run(['true']).catch((reason: unknown) => reason);
      expect(problemOf(error)).toMatch(/HOST_(UNREACHABLE|TIMEOUT)/);
      expect(process.memoryUsage().rss - before).toBeLessThan(MAX_GROWTH);
    });
  });
}
