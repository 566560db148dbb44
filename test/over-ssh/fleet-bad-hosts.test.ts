import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort, startTcpServer } from '../support/loopback.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { generateKey, type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

/** Programs in place of the login shell. */
const ODD_SHELLS: readonly (readonly [name: string, forceCommand: string, needs: string])[] = [
  ['motd', 'echo Welcome; echo "of the day" >&2; printf "no newline"; eval "$SSH_ORIGINAL_COMMAND"', '/bin/sh'],
  ['fish', 'exec fish -c "$SSH_ORIGINAL_COMMAND"', '/usr/bin/fish'],
  ['csh', 'exec tcsh -c "$SSH_ORIGINAL_COMMAND"', '/usr/bin/tcsh'],
];

/** Faulty hosts, each with the one line that is expected for it. */
const BAD_SHELLS: readonly (readonly [name: string, forceCommand: string, code: RegExp])[] = [
  ['nologin', 'echo "This account is currently not available."; exit 1', /This account is currently not available.*\[HOST_/],
  ['no-shell', 'exec /nonexistent/sh', /\[HOST_/],
  ['garbage', 'head -c 5000 /dev/urandom', /\[HOST_/],
  ['dies-early', 'eval "$SSH_ORIGINAL_COMMAND" | head -c 60; kill -KILL $PPID', /\[HOST_/],
];

describe.skipIf(requirement('a fleet with bad hosts', sshdMissing))('a fleet with many faulty hosts', () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  const lines: string[] = [];
  const [good, bad]: [string[], Map<string, RegExp>] = [['good-1', 'good-2'], new Map()];
  let directory: string;
  let stranger: string;
  let result: CliResult;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-fleet-bad-'));
    generateKey(join(directory, 'stranger'), 'ed25519');
    stranger = readFileSync(join(directory, 'stranger.pub'), 'utf8').split(' ').slice(0, 2).join(' ');
    const sshd = async (config: readonly string[]): Promise<Sshd> => {
      const server = await startSshd({ config });
      cleanups.push(server.stop);
      return server;
    };
    const well = await sshd(['ListenAddress 127.0.0.2', 'ListenAddress 127.0.0.3']);
    // Each host has an address of its own.
    for (const [i, name] of good.entries()) add(name, well, { address: `127.0.0.${i + 2}` });
    add('changed-key', well, { key: stranger });
    bad.set('changed-key', /\[HOST_KEY_MISMATCH\]$/);
    for (const [name, forceCommand, needs] of ODD_SHELLS) {
      if (!existsSync(needs)) continue;
      add(name, await sshd([`ForceCommand ${forceCommand}`]));
      good.push(name);
    }
    for (const [name, forceCommand, code] of BAD_SHELLS) {
      add(name, await sshd([`ForceCommand ${forceCommand}`]));
      bad.set(name, code);
    }
    const answer = async (name: string, code: RegExp, handler: (socket: Socket) => void): Promise<void> => {
      const server = await startTcpServer(handler);
      cleanups.push(server.stop);
      add(name, { ...well, port: server.port });
      bad.set(name, code);
    };
    await answer('not-ssh', /the server sent "HTTP\/1\.1 400", not an SSH identification.*\[HOST_UNREACHABLE\]$/, (socket) =>
      socket.end('HTTP/1.1 400\r\n\r\n'),
    );
    await answer('hangs', /no SSH handshake within 10s.*\[HOST_TIMEOUT\]$/, () => undefined);
    await answer('hangs-up', /the host accepts connections and closes them immediately.*\[HOST_UNREACHABLE\]$/, (socket) =>
      socket.destroy(),
    );
    // A round trip takes twenty seconds: much too long.
    await answer('slow', /within 10s.*\[HOST_TIMEOUT\]$/, (socket) => {
      const server = connect(well.port, '127.0.0.1');
      const later = (to: Socket) => (chunk: Buffer) => void setTimeout(() => to.write(chunk), 10_000);
      socket
        .on('data', later(server))
        .on('close', () => server.destroy())
        .on('error', () => undefined);
      server
        .on('data', later(socket))
        .on('close', () => socket.destroy())
        .on('error', () => undefined);
    });
    add('refusing', { ...well, port: await freePort() });
    bad.set('refusing', /ECONNREFUSED|refused.*\[HOST_UNREACHABLE\]$/);
    const file = join(directory, 'fleet.yaml');
    writeFileSync(file, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n${lines.join('')}`);
    const options = ['--ssh-config', 'none', '--connect-timeout', '10', '--timeout', '30'];
    result = await runCommand(['fleet', 'exec', '-f', file, ...options, '--', 'printf', '%s', 'all  well']);
  }, 120_000);
  afterAll(async () => {
    await Promise.all(cleanups.map((cleanup) => cleanup()));
    rmSync(directory, { recursive: true, force: true });
  });

  function add(name: string, { port, user, identityFile, hostKey }: Sshd, { key = hostKey('ed25519'), address = '127.0.0.1' } = {}): void {
    const ssh = `{port: ${port}, user: ${user}, become: none, identityFiles: [${identityFile}], hostKeys: [${key}]}`;
    lines.push(`  - {name: ${name}, address: ${address}, ssh: ${ssh}}\n`);
  }

  it('all other hosts are processed, with any login shell', () => {
    const blocks = result.stdout.split('\n').filter((line) => line.trim() === 'all  well');
    expect(blocks, result.stdout + result.stderr).toHaveLength(good.length);
    for (const name of good) expect(result.stdout).toMatch(new RegExp(`^${name}:$`, 'm'));
    expect(result.code).toBe(4);
  });

  it('each faulty host is reported in one printable line', () => {
    const reported = result.stderr.trim().split('\n');
    expect(reported.map((line) => line.split(':')[0]).toSorted()).toEqual([...bad.keys()].toSorted());
    for (const [name, pattern] of bad) expect(reported.find((line) => line.startsWith(`${name}: `))).toMatch(pattern);
    for (const line of reported) expect(line).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  });
});
