import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AppError, type Problem } from '../../src/base/errors.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { Transport } from '../../src/host/transport.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { loadSshConfig } from '../../src/ssh/adapters/ssh-config.ts';
import { type SshTransportOptions, sshShared, sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import { parseKnownHosts } from '../../src/ssh/known-hosts.ts';
import { resolveSshTarget } from '../../src/ssh/resolve-target.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { freePort, startTcpServer } from '../support/loopback.ts';
import { startRawSshServer } from '../support/raw-ssh-server.ts';
import { requirement } from '../support/requirement.ts';
import { type SshServer, type SshServerOptions, startSshServer } from '../support/ssh-server.ts';
import { sshTargetFor, type TargetInput } from '../support/ssh-target.ts';
import { generateKey, type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';
import { untilTrue } from '../support/until-true.ts';

const cleanups: (() => Promise<unknown>)[] = [];
let directory: string;
let counter = 0;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'kubeletadm-ssh-'));
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A transport that is closed at the end of the test. */
function transportTo(target: SshTarget, options: Partial<SshTransportOptions> = {}): Transport {
  const transport = sshTransport(target, { hostKeys: knownHostsStore(), ...options });
  cleanups.push(() => transport.close());
  return transport;
}

/** The first problem of a transport that fails to connect. Fails on internal errors. */
async function problemOf(transport: Transport): Promise<Problem> {
  const error: unknown = await transport.run(['true']).then(
    () => new Error('it got through'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof AppError)) throw error;
  expect(error.exitCode).toBe(1);
  return error.problems[0] as Problem;
}

async function outputOf(transport: Transport, ...argv: string[]): Promise<string> {
  return Buffer.from((await transport.run(argv)).stdout).toString();
}

function newFile(name: string): string {
  return join(mkdtempSync(join(directory, 'file-')), name);
}

function newKey(type: 'ed25519' | 'ecdsa' | 'rsa' = 'ed25519', passphrase = ''): string {
  const path = newFile(`id_${type}`);
  generateKey(path, type, passphrase);
  return path;
}

const describeSshd = describe.skipIf(requirement('SSH to OpenSSH', sshdMissing));

describeSshd('SSH to OpenSSH', () => {
  let sshd: Sshd;
  let accepted: Readonly<Record<'rsa' | 'ecdsa' | 'encrypted' | 'second', string>>;
  beforeAll(async () => {
    accepted = { rsa: newKey('rsa'), ecdsa: newKey('ecdsa'), encrypted: newKey('ed25519', 'open sesame'), second: newKey() };
    const authorized = newFile('authorized_keys');
    sshd = await startSshd({ hostKeys: ['ed25519', 'ecdsa', 'rsa'], config: [`AuthorizedKeysFile ${authorized}`, 'MaxAuthTries 3'] });
    const keys = [sshd.identityFile, ...Object.values(accepted)].map((path) => readFileSync(`${path}.pub`, 'utf8'));
    writeFileSync(authorized, keys.join(''));
  });
  afterAll(() => sshd?.stop());

  function target(input: Partial<TargetInput> = {}): SshTarget {
    counter++;
    return sshTargetFor({
      name: `node-${counter}`,
      port: sshd.port,
      user: sshd.user,
      directory,
      known: [sshd.hostKey('ed25519')],
      identityFiles: [sshd.identityFile],
      ...input,
    });
  }

  const fingerprint = (type: 'ed25519' | 'ecdsa' | 'rsa'): string => {
    const path = newFile('key.pub');
    writeFileSync(path, `${sshd.hostKey(type)}\n`);
    return execFileSync('ssh-keygen', ['-l', '-f', path], { encoding: 'utf8' }).split(' ')[1] ?? '';
  };
  const knownHostsOf = ({ userKnownHostsFiles: [path = ''] }: SshTarget): string | null =>
    existsSync(path) ? readFileSync(path, 'utf8') : null;

  describe('host keys', () => {
    it.each(['yes', 'ask'] as const)('rejects an unknown key with StrictHostKeyChecking %s', async (strictHostKeyChecking) => {
      const unknown = target({ known: [], strictHostKeyChecking });
      const problem = await problemOf(transportTo(unknown));
      expect(problem).toMatchObject({ code: 'HOST_KEY_UNKNOWN', host: unknown.name });
      expect(problem.message).toContain(`[127.0.0.1]:${sshd.port} shows ED25519 key ${fingerprint('ed25519')}`);
      expect(problem.hint).toContain(`ssh-keyscan -p ${sshd.port} 127.0.0.1 >> ${unknown.userKnownHostsFiles[0]}`);
      expect(problem.hint).toContain('--ssh-accept-new');
      expect(knownHostsOf(unknown)).toBe('');
    });

    it.each([false, true])('accepts and records a new key like ssh, hashed: %s', async (hashKnownHosts) => {
      const unknown = target({ known: [], strictHostKeyChecking: 'accept-new', hashKnownHosts });
      const notices: string[] = [];
      const notice = ({ code }: Problem): number => notices.push(code);
      expect(await outputOf(transportTo(unknown, { notice }), 'echo', 'hi')).toBe('hi\n');
      expect(await outputOf(transportTo({ ...unknown, strictHostKeyChecking: 'yes' }, { notice }), 'echo', 'hi')).toBe('hi\n');
      expect(notices).toEqual(['HOST_KEY_ADDED']);
      const [file = ''] = unknown.userKnownHostsFiles;
      const flags = [
        '-F',
        'none',
        '-p',
        String(sshd.port),
        '-i',
        sshd.identityFile,
        '-o',
        `UserKnownHostsFile=${file}`,
        '-o',
        'GlobalKnownHostsFile=none',
      ];
      expect(
        execFileSync('ssh', [...flags, '-o', 'StrictHostKeyChecking=yes', `${sshd.user}@127.0.0.1`, 'echo ssh'], { encoding: 'utf8' }),
      ).toBe('ssh\n');
    });

    it('continues when it cannot record a new key', async () => {
      const notices: string[] = [];
      const unwritable = target({ known: [], strictHostKeyChecking: 'accept-new', userKnownHostsFiles: ['/dev/null/known_hosts'] });
      expect(await outputOf(transportTo(unwritable, { notice: ({ code }) => notices.push(code) }), 'echo', 'hi')).toBe('hi\n');
      expect(notices).toEqual(['HOST_KEY_NOT_ADDED']);
    });

    it.each(['yes', 'ask', 'accept-new'] as const)(
      'never accepts a changed key, with StrictHostKeyChecking %s',
      async (strictHostKeyChecking) => {
        const other = readFileSync(`${newKey()}.pub`, 'utf8').split(' ').slice(0, 2).join(' ');
        const changed = target({ known: [other], strictHostKeyChecking });
        const before = knownHostsOf(changed);
        const problem = await problemOf(transportTo(changed));
        expect(problem).toMatchObject({ code: 'HOST_KEY_MISMATCH', position: { file: changed.userKnownHostsFiles[0], line: 1 } });
        expect(problem.message).toContain(fingerprint('ed25519'));
        expect(problem.hint).toContain(`ssh-keygen -R '[127.0.0.1]:${sshd.port}'`);
        expect(knownHostsOf(changed)).toBe(before);
      },
    );

    it('never accepts a revoked key', async () => {
      const revoked = target({ strictHostKeyChecking: 'accept-new' });
      writeFileSync(revoked.userKnownHostsFiles[0] ?? '', `${knownHostsOf(revoked)}@revoked * ${sshd.hostKey('ed25519')}\n`);
      expect(await problemOf(transportTo(revoked))).toMatchObject({
        code: 'HOST_KEY_REVOKED',
        position: { line: 2 },
        message: expect.stringContaining('revoked'),
      });
    });

    describe('RevokedHostKeys of ssh_config', () => {
      const otherKey = (): string => readFileSync(`${newKey()}.pub`, 'utf8');
      const krl = (): string => {
        const path = newFile('krl');
        writeFileSync(`${path}.pub`, `${sshd.hostKey('ed25519')}\n`);
        execFileSync('ssh-keygen', ['-q', '-k', '-f', path, `${path}.pub`]);
        return path;
      };
      const list = (text: string): string => {
        const path = newFile('revoked');
        writeFileSync(path, text);
        return path;
      };

      /** The result for a host with a known key; `ssh` runs with the same file. */
      async function outcomes(path: string): Promise<readonly [string, boolean]> {
        const known = target();
        const config = newFile('config');
        writeFileSync(
          config,
          [
            `Host edge\n  HostName 127.0.0.1\n  Port ${sshd.port}\n  User ${sshd.user}\n  IdentityFile ${sshd.identityFile}`,
            `  UserKnownHostsFile ${known.userKnownHostsFiles[0]}\n  GlobalKnownHostsFile none\n  RevokedHostKeys "${path}"\n`,
          ].join('\n'),
        );
        const resolved = resolveSshTarget('edge', await loadSshConfig({ configFile: config, variables: {} }));
        const ours = await outputOf(transportTo(resolved), 'echo', 'hi').catch((error: AppError) => `${error.code} ${error.message}`);
        const { status } = spawnSync('ssh', ['-F', config, '-o', 'BatchMode=yes', 'edge', 'true']);
        return [ours, status === 0];
      }

      it.each<[string, () => string, RegExp | string]>([
        [
          'the key',
          () => list(`# revoked\n\n ${otherKey()}${sshd.hostKey('ed25519')} with a comment\n`),
          /^HOST_KEY_REVOKED .*revoked:4:1: .*is revoked/,
        ],
        ['other keys', () => list(`${otherKey()}${sshd.hostKey('ecdsa')}\n`), 'hi\n'],
        ['nothing', () => list('# none yet\n'), 'hi\n'],
        ['a line that is not a key', () => list(`${otherKey()}what\n`), /^HOST_KEY_UNKNOWN .*revoked:2:1: .*not a public key/],
        ['a key revocation list', krl, /^HOST_KEY_UNKNOWN .*krl.*binary.*--ssh-transport openssh/],
        ['a file that does not exist', () => '/nonexistent/revoked', /^HOST_KEY_UNKNOWN .*\/nonexistent\/revoked.*no such file/],
        ['a directory', () => directory, /^HOST_KEY_UNKNOWN .*the path is a directory/],
        ['none', () => 'none', 'hi\n'],
      ])('%s', async (_, file, expected) => {
        const [ours, theirs] = await outcomes(file());
        expect(ours).toEqual(typeof expected === 'string' ? expected : expect.stringMatching(expected));
        expect(ours === 'hi\n').toBe(theirs);
      });

      it('apply to keys of a fleet file', async () => {
        const pinned = target({
          known: [],
          pinnedHostKeys: parseKnownHosts(`x ${sshd.hostKey('ed25519')}\n`, 'fleet.yaml'),
          revokedHostKeysFiles: [list(`${sshd.hostKey('ed25519')}\n`)],
        });
        expect(await problemOf(transportTo(pinned))).toMatchObject({ code: 'HOST_KEY_REVOKED' });
      });
    });

    it.each(['ecdsa', 'rsa'] as const)('asks a host with several keys for the known one: %s', async (type) => {
      expect(await outputOf(transportTo(target({ known: [sshd.hostKey(type)] })), 'echo', 'hi')).toBe('hi\n');
    });

    it('accepts the same key in later key exchanges', async () => {
      const server = await startSshd({ config: ['RekeyLimit 256K', 'LogLevel DEBUG1'] });
      cleanups.push(server.stop);
      const transport = transportTo(
        target({ port: server.port, known: [server.hostKey('ed25519')], identityFiles: [server.identityFile] }),
      );
      const stdin = 'x'.repeat(2 * 1024 * 1024);
      for (let i = 0; i < 2; i++) expect((await transport.run(['cat'], { stdin })).stdout.byteLength).toBe(stdin.length);
      expect(server.log().match(/SSH2_MSG_NEWKEYS received/g)?.length).toBeGreaterThan(4);
    });

    it('looks up the alias', async () => {
      const aliased = target({ known: [], hostKeyAlias: 'cluster-a' });
      writeFileSync(aliased.userKnownHostsFiles[0] ?? '', `cluster-a ${sshd.hostKey('ed25519')}\n`);
      expect(await outputOf(transportTo(aliased), 'echo', 'hi')).toBe('hi\n');
    });
  });

  describe('keys', () => {
    it.each(['rsa', 'ecdsa', 'second'] as const)('logs in with a key: %s', async (name) => {
      expect(await outputOf(transportTo(target({ identityFiles: [accepted[name]] })), 'echo', 'hi')).toBe('hi\n');
    });

    it('reports that it has no credentials, and the methods that the host accepts', async () => {
      const problem = await problemOf(transportTo(target({ identityFiles: ['/nonexistent/id'] })));
      expect(problem).toMatchObject({ code: 'HOST_AUTH_FAILED' });
      expect(problem.message).toContain(`rejected user ${sshd.user}: no authentication method was available; the host accepts publickey`);
    });

    it('names the keys that were tried', async () => {
      const wrong = newKey();
      const problem = await problemOf(transportTo(target({ identityFiles: [wrong] })));
      expect(problem).toMatchObject({ code: 'HOST_AUTH_FAILED' });
      expect(problem.message).toContain(`tried key ${wrong}; the host accepts publickey`);
    });

    it('continues with the next key', async () => {
      expect(await outputOf(transportTo(target({ identityFiles: [newKey(), sshd.identityFile] })), 'echo', 'hi')).toBe('hi\n');
    });

    it('reports that the host ended the login after too many attempts', async () => {
      const problem = await problemOf(transportTo(target({ identityFiles: [newKey(), newKey(), newKey(), sshd.identityFile] })));
      expect(problem).toMatchObject({ code: 'HOST_AUTH_FAILED', message: expect.stringContaining('Too many authentication failures') });
    });

    it('cannot log in as an unknown user', async () => {
      const problem = await problemOf(transportTo(target({ user: 'nosuchuser' })));
      expect(problem).toMatchObject({ code: 'HOST_AUTH_FAILED', message: expect.stringContaining('user nosuchuser') });
    });

    it('skips an encrypted key without a passphrase', async () => {
      const problem = await problemOf(transportTo(target({ identityFiles: [accepted.encrypted] })));
      expect(problem.message).toContain(
        `skipped ${accepted.encrypted} (encrypted: set KUBELETADM_SSH_PASSPHRASE to the passphrase of the key)`,
      );
      expect(await outputOf(transportTo(target({ identityFiles: [accepted.encrypted, sshd.identityFile] })), 'echo', 'hi')).toBe('hi\n');
    });

    it('skips an encrypted key with a wrong passphrase, and does not print the passphrase', async () => {
      const problem = await problemOf(
        transportTo(target({ identityFiles: [accepted.encrypted] }), { askPassphrase: async () => new Secret('open barley') }),
      );
      expect(problem.message).toContain(`skipped ${accepted.encrypted} (wrong passphrase`);
      expect(JSON.stringify(problem)).not.toContain('barley');
    });

    it('prompts for a passphrase once for all hosts, without a time limit', async () => {
      const asked: string[] = [];
      let answer: (secret: Secret) => void = () => undefined;
      const answered = new Promise<Secret>((resolve) => {
        answer = resolve;
      });
      const options = {
        shared: sshShared(),
        askPassphrase: (file: string) => {
          asked.push(file);
          return answered;
        },
      };
      const input = { identityFiles: [accepted.encrypted], connectTimeoutMs: 1000 };
      const running = [1, 2].map(() => outputOf(transportTo(target(input), options), 'echo', 'hi'));
      await new Promise((resolve) => setTimeout(resolve, 1500));
      answer(new Secret('open sesame'));
      expect(await Promise.all(running)).toEqual(['hi\n', 'hi\n']);
      expect(await outputOf(transportTo(target(input), options), 'echo', 'hi')).toBe('hi\n');
      expect(asked).toEqual([accepted.encrypted]);
    });

    it('skips a private key that others can read', async () => {
      const open = newFile('id');
      copyFileSync(sshd.identityFile, open);
      chmodSync(open, 0o644);
      const problem = await problemOf(transportTo(target({ identityFiles: [open] })));
      expect(problem.message).toContain(`skipped ${open} (mode 0644 permits access by other users: run chmod 600 ${open})`);
    });

    it('skips a file that is not a key', async () => {
      const none = newFile('id');
      writeFileSync(none, 'not a key', { mode: 0o600 });
      expect((await problemOf(transportTo(target({ identityFiles: [none] })))).message).toContain(`skipped ${none} (not a private key)`);
    });

    it('continues after the first of two factors', async () => {
      const authorized = newFile('authorized_keys');
      const strict = await startSshd({ config: [`AuthorizedKeysFile ${authorized}`, 'AuthenticationMethods publickey,publickey'] });
      cleanups.push(strict.stop);
      writeFileSync(authorized, [accepted.ecdsa, strict.identityFile].map((path) => readFileSync(`${path}.pub`, 'utf8')).join(''));
      const input = { port: strict.port, known: [strict.hostKey('ed25519')] };
      expect(await outputOf(transportTo(target({ ...input, identityFiles: [accepted.ecdsa, strict.identityFile] })), 'echo', 'hi')).toBe(
        'hi\n',
      );
      expect((await problemOf(transportTo(target({ ...input, identityFiles: [accepted.ecdsa] })))).code).toBe('HOST_AUTH_FAILED');
    });
  });

  describe('agent', () => {
    let agent: ChildProcess;
    let socket: string;
    const add = (...paths: string[]): Buffer =>
      execFileSync('ssh-add', ['-q', ...paths], { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'pipe' });
    const removeAll = (): Buffer =>
      execFileSync('ssh-add', ['-q', '-D'], { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'pipe' });
    beforeAll(async () => {
      socket = newFile('agent.sock');
      agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
      await untilTrue(() => existsSync(socket));
    });
    afterEach(removeAll);
    afterAll(() => agent?.kill());

    it('logs in with a key of the agent, even when the agent also has a certificate', async () => {
      const signed = newKey();
      execFileSync('ssh-keygen', ['-q', '-s', sshd.identityFile, '-I', 'x', '-n', 'x', `${signed}.pub`]);
      add(signed, sshd.identityFile);
      expect(await outputOf(transportTo(target({ identityFiles: [], identityAgent: socket })), 'echo', 'hi')).toBe('hi\n');
    });

    it.each(['rsa', 'ecdsa'] as const)('lets the agent sign with a key: %s', async (name) => {
      add(accepted[name]);
      expect(await outputOf(transportTo(target({ identityFiles: [], identityAgent: socket })), 'echo', 'hi')).toBe('hi\n');
    });

    it('with IdentitiesOnly uses only the named keys of the agent', async () => {
      add(newKey(), newKey(), newKey(), sshd.identityFile);
      const named = newFile('named.pub');
      copyFileSync(`${sshd.identityFile}.pub`, named);
      const only = target({ identityFiles: [named], identitiesOnly: true, identityAgent: socket });
      expect(await outputOf(transportTo(only), 'echo', 'hi')).toBe('hi\n');
      const others = target({ identityFiles: [newKey()], identitiesOnly: true, identityAgent: socket });
      const { message } = await problemOf(transportTo(others));
      expect(message).toContain(`tried key ${others.identityFiles[0]};`);
      expect(message).not.toContain('agent');
    });

    it('does not prompt for the passphrase of a key in the agent', async () => {
      const plain = newFile('id');
      copyFileSync(accepted.encrypted, plain);
      execFileSync('ssh-keygen', ['-q', '-p', '-P', 'open sesame', '-N', '', '-f', plain]);
      add(plain);
      rmSync(`${accepted.encrypted}.pub`);
      const asking = { askPassphrase: async () => expect.fail('the passphrase must not be requested') };
      expect(
        await outputOf(transportTo(target({ identityFiles: [accepted.encrypted], identityAgent: socket }), asking), 'echo', 'hi'),
      ).toBe('hi\n');
    });

    it('names the tried keys of the agent', async () => {
      const key = newKey();
      add(key);
      const [, print] = execFileSync('ssh-keygen', ['-l', '-f', key], { encoding: 'utf8' }).split(' ');
      const { message } = await problemOf(transportTo(target({ identityFiles: [], identityAgent: socket })));
      expect(message).toContain(`tried agent key ED25519 ${print}; the host accepts publickey`);
    });

    it('works without an agent that does not answer', async () => {
      const gone = target({ identityAgent: '/nonexistent/agent.sock' });
      expect(await outputOf(transportTo(gone), 'echo', 'hi')).toBe('hi\n');
      const { message } = await problemOf(transportTo({ ...gone, identityFiles: [] }));
      expect(message).toContain('skipped agent /nonexistent/agent.sock (no response)');
    });
  });

  describe('jump hosts', () => {
    const logins = (server: Sshd): number => server.log().match(/Accepted publickey/g)?.length ?? 0;
    async function bastion(config: readonly string[] = []): Promise<{ server: Sshd; hop: SshTarget }> {
      const server = await startSshd({ config });
      cleanups.push(server.stop);
      counter++;
      const hop = sshTargetFor({
        name: `bastion-${counter}`,
        port: server.port,
        user: server.user,
        directory,
        known: [server.hostKey('ed25519')],
        identityFiles: [server.identityFile],
      });
      return { server, hop };
    }

    it('reaches a host through one jump host, and through two', async () => {
      const [first, second] = [await bastion(), await bastion()];
      expect(await outputOf(transportTo(target({ proxyJump: [first.hop] })), 'echo', 'one')).toBe('one\n');
      expect(await outputOf(transportTo(target({ proxyJump: [first.hop, second.hop] })), 'echo', 'two')).toBe('two\n');
      expect([logins(first.server), logins(second.server)]).toEqual([2, 1]);
    });

    it('shares one connection to the jump host, and closes it after the last host', async () => {
      const { server, hop } = await bastion();
      const shared = sshShared();
      const transports = [1, 2, 3].map(() => transportTo(target({ proxyJump: [hop] }), { shared }));
      expect(await Promise.all(transports.map((transport) => outputOf(transport, 'echo', 'hi')))).toEqual(['hi\n', 'hi\n', 'hi\n']);
      expect(logins(server)).toBe(1);
      await transports[0]?.close();
      expect(await outputOf(transports[1] as Transport, 'echo', 'hi')).toBe('hi\n');
      expect(server.log()).not.toContain('disconnect');
      for (const transport of transports) await transport.close();
      await untilTrue(() => server.log().includes('disconnect'));
    });

    it('carries 5 MiB in both directions', async () => {
      const { hop } = await bastion();
      const stdin = 'é'.repeat(2_621_440);
      const { stdout } = await transportTo(target({ proxyJump: [hop] })).run(['cat'], { stdin });
      expect(Buffer.from(stdout).equals(Buffer.from(stdin))).toBe(true);
    });

    it('reports a lost jump host, and connects again', async () => {
      const { server, hop } = await bastion();
      const started = newFile('started');
      const transport = transportTo(target({ proxyJump: [hop] }));
      const running = transport
        .run(['/bin/sh', '-c', 'echo $$ >"$1.new"; mv "$1.new" "$1"; exec sleep 600', 'sh', started])
        .catch((error: AppError) => error.code);
      await untilTrue(() => existsSync(started));
      server.dropConnections();
      expect(await running).toBe('HOST_CONNECTION_LOST');
      expect(await outputOf(transport, 'echo', 'back')).toBe('back\n');
      expect(logins(server)).toBe(2);
      process.kill(Number(readFileSync(started, 'utf8')), 'SIGKILL');
    });

    it.each<[string, (hop: SshTarget) => SshTarget, Partial<Problem>]>([
      ['unknown key', (hop) => ({ ...hop, userKnownHostsFiles: ['/nonexistent/kh'] }), { code: 'HOST_KEY_UNKNOWN' }],
      ['wrong user', (hop) => ({ ...hop, user: 'nosuchuser' }), { code: 'HOST_AUTH_FAILED' }],
      ['closed port', (hop) => ({ ...hop, port: 1 }), { code: 'HOST_UNREACHABLE' }],
    ])('names the failed one of two hosts: %s', async (_, change, expected) => {
      const { hop } = await bastion();
      const behind = target({ proxyJump: [change(hop)] });
      const problem = await problemOf(transportTo(behind));
      expect(problem).toMatchObject({ ...expected, host: behind.name });
      expect(problem.message).toContain(`jump host ${hop.name}: `);
    });

    it('reports that the jump host cannot reach the host', async () => {
      const { hop } = await bastion();
      const problem = await problemOf(transportTo(target({ port: await freePort(), proxyJump: [hop] })));
      expect(problem).toMatchObject({
        code: 'HOST_UNREACHABLE',
        message: expect.stringContaining('the jump host cannot connect to the address: Connection refused'),
      });
    });

    it('reports that the jump host forbids TCP forwarding', async () => {
      const { hop } = await bastion(['AllowTcpForwarding no']);
      const problem = await problemOf(transportTo(target({ proxyJump: [hop] })));
      expect(problem).toMatchObject({
        code: 'HOST_UNREACHABLE',
        message: expect.stringContaining('the jump host forbids TCP forwarding'),
        hint: expect.stringContaining('AllowTcpForwarding'),
      });
    });
  });

  it('reports a host at its limit of simultaneous logins', async () => {
    const busy = await startSshd({ config: ['MaxStartups 1:100:1'] });
    cleanups.push(busy.stop);
    const first = connect(busy.port, '127.0.0.1');
    cleanups.push(async () => first.destroy());
    await new Promise((resolve) => first.once('data', resolve));
    const late = target({ port: busy.port, known: [busy.hostKey('ed25519')], connectTimeoutMs: 5000 });
    const problem = await problemOf(transportTo(late));
    expect(problem.code).toBe('HOST_UNREACHABLE');
    expect(`${problem.message} ${problem.hint}`).toContain('MaxStartups');
  });

  it.each([
    ['resets connections before its SSH version', ['reset']],
    ['closes connections before its SSH version', ['end']],
    ['rejected a login and then stops answering', ['Exceeded MaxStartups\r\n', 'silence']],
    ['reset a connection and then stops answering', ['reset', 'silence']],
  ])('names the login limit for a host that %s', async (_, answers) => {
    let count = 0;
    const server = await startTcpServer((socket) => {
      const answer = answers[Math.min(count++, answers.length - 1)] ?? '';
      // The client's data is read: closing a socket with unread data resets it, and its sent data may be
      // lost.
      socket.resume();
      if (answer === 'reset') socket.once('data', () => socket.resetAndDestroy());
      else if (answer !== 'silence') socket.once('data', () => socket.end(answer === 'end' ? '' : answer));
    });
    cleanups.push(server.stop);
    const problem = await problemOf(transportTo(target({ port: server.port, known: [], connectTimeoutMs: 1500 })));
    expect(problem.code, problem.message).toBe('HOST_UNREACHABLE');
    expect(`${problem.message} ${problem.hint}`).toContain('MaxStartups');
    expect(count).toBeGreaterThan(1);
  });
});

describe('SSH by password', () => {
  async function serve(options: SshServerOptions): Promise<{ server: SshServer; target: SshTarget }> {
    const server = await startSshServer(options);
    cleanups.push(server.stop);
    counter++;
    return { server, target: sshTargetFor({ name: `node-${counter}`, port: server.port, directory, known: [server.hostKey] }) };
  }
  const password = new Secret('secret');

  it.each([[['password']], [['keyboard-interactive']], [['keyboard-interactive', 'password']]] as const)(
    'logs in by %j',
    async (methods) => {
      const { target } = await serve({ methods });
      expect(await outputOf(transportTo(target, { password }), 'echo', 'hi')).toBe('hi\n');
    },
  );

  it('names the tried methods, and does not print the password', async () => {
    const { target } = await serve({ methods: ['password', 'keyboard-interactive'] });
    const problem = await problemOf(transportTo(target, { password: new Secret('wr0ng') }));
    expect(problem).toMatchObject({ code: 'HOST_AUTH_FAILED' });
    expect(problem.message).toContain('tried password, password (keyboard-interactive); the host accepts password, keyboard-interactive');
    expect(JSON.stringify(problem)).not.toContain('wr0ng');
  });

  it('reports that no password is available', async () => {
    const { target } = await serve({ methods: ['password'] });
    expect((await problemOf(transportTo(target))).message).toContain('no authentication method was available; the host accepts password');
  });

  it('sends the password only to the hidden prompt', async () => {
    const queries = [
      { prompt: 'Employee number: ', echo: true },
      { prompt: 'Kennwort: ', echo: false },
      { prompt: 'Code: ', echo: false },
    ];
    const { server, target } = await serve({ methods: ['keyboard-interactive'], queries });
    await outputOf(transportTo(target, { password }), 'true');
    expect(server.answers).toEqual(['', 'secret', '']);
  });

  it('does not try the password when the host accepts none', async () => {
    const { target } = await serve({ methods: [] });
    const { message } = await problemOf(transportTo(target, { password }));
    expect(message).not.toContain('secret');
  });

  it('does not wait for a new password', async () => {
    const { target } = await serve({ passwordExpired: true });
    const problem = await problemOf(transportTo(target, { password }));
    expect(problem).toMatchObject({ code: 'HOST_AUTH_FAILED', message: expect.stringContaining('the password has expired') });
  });

  it('reports a login shell that runs no commands', async () => {
    const shell = newFile('nologin');
    writeFileSync(shell, '#!/bin/sh\necho "This account is currently not available."\nexit 1\n', { mode: 0o755 });
    const { target } = await serve({ loginShell: [shell] });
    const problem = await problemOf(transportTo(target, { password }));
    expect(problem).toMatchObject({ code: 'HOST_COMMAND_NOT_FOUND' });
    expect(problem.message).toBe('the login shell of tester did not start /bin/sh: "This account is currently not available."');
  });

  it('reports a host that opens no session', async () => {
    const { target } = await serve({ maxSessions: 0 });
    expect(await problemOf(transportTo(target, { password }))).toMatchObject({
      code: 'HOST_UNREACHABLE',
      message: expect.stringContaining('refused to open a session'),
    });
  });

  it('works with one session at a time', async () => {
    const { target } = await serve({ maxSessions: 1 });
    const transport = transportTo(target, { password });
    expect(await Promise.all([1, 2, 3, 4].map((i) => outputOf(transport, 'echo', String(i))))).toEqual(['1\n', '2\n', '3\n', '4\n']);
  });
});

describe('SSH to a scripted server', () => {
  it('keeps a channel open after the output has ended: the exit code arrives later', async () => {
    const server = await startRawSshServer({ lateExitCode: 7 });
    cleanups.push(server.stop);
    const transport = transportTo(sshTargetFor({ port: server.port, directory, known: [server.hostKey] }), { password: new Secret('any') });
    expect(await transport.run(['true'], { stdin: 'input', timeoutMs: 10_000 })).toMatchObject({ exitCode: 7, signal: null });
  });

  it('fails on a host that ends each connection right after the login', async () => {
    const server = await startRawSshServer({ early: ['userauth-success', 'disconnect'] });
    cleanups.push(server.stop);
    const problem = await problemOf(transportTo(sshTargetFor({ port: server.port, directory, known: [server.hostKey] })));
    expect(problem).toMatchObject({ code: 'HOST_CONNECTION_LOST', message: expect.stringContaining('so long') });
    expect(server.connections()).toBe(2);
  });
});

describe('SSH to a server that does not speak SSH', () => {
  const targetAt = (port: number, more: Partial<SshTarget> = {}): SshTarget =>
    sshTargetFor({ port, directory, known: [], connectTimeoutMs: 1000, ...more });
  async function portOf(serve: Parameters<typeof startTcpServer>[0]): Promise<number> {
    const server = await startTcpServer(serve);
    cleanups.push(server.stop);
    return server.port;
  }

  it('a closed port', async () => {
    const problem = await problemOf(transportTo(targetAt(await freePort())));
    expect(problem).toMatchObject({ code: 'HOST_UNREACHABLE', message: expect.stringContaining('connection refused') });
  });

  it('host name not found', async () => {
    const problem = await problemOf(transportTo(targetAt(22, { hostName: 'nosuchhost.invalid', connectTimeoutMs: 10_000 })));
    expect(problem.code).toBe('HOST_UNREACHABLE');
    expect(problem.message).toMatch(/^cannot reach nosuchhost\.invalid:22: (?:host name not found|the DNS server does not respond)$/);
  });

  it('a server that sends nothing', async () => {
    const problem = await problemOf(transportTo(targetAt(await portOf(() => undefined))));
    expect(problem).toMatchObject({ code: 'HOST_TIMEOUT', message: expect.stringMatching(/no SSH handshake within 1s$/) });
  });

  it('a server that closes immediately', async () => {
    const problem = await problemOf(transportTo(targetAt(await portOf((socket) => socket.end()))));
    expect(problem).toMatchObject({
      code: 'HOST_UNREACHABLE',
      message: expect.stringContaining('closes them immediately'),
      hint: expect.stringContaining('MaxStartups'),
    });
  });

  it('a server that resets immediately', async () => {
    const problem = await problemOf(transportTo(targetAt(await portOf((socket) => socket.resetAndDestroy()))));
    expect(problem).toMatchObject({ code: 'HOST_UNREACHABLE' });
  });

  it.each([
    [
      'HTTP',
      'HTTP/1.1 400 Bad Request\r\n\r\n',
      'the server sent "HTTP/1.1 400 Bad Request", not an SSH identification',
      /^Check the address and the port$/,
    ],
    [
      'a reason for the refusal',
      'Not allowed at this time\r\n',
      'the server sent "Not allowed at this time", not an SSH identification',
      /MaxStartups/,
    ],
    ['a terminal escape', '\u001b[2Jhello\n', 'the server sent "[2Jhello", not an SSH identification', /^Check the address and the port$/],
    ['a version of long ago', 'SSH-1.5-old\r\n', 'key exchange failed', /^(?!.*MaxStartups)/],
  ])('it speaks something else: %s', async (_, text, message, hint) => {
    const problem = await problemOf(transportTo(targetAt(await portOf((socket) => socket.end(text)))));
    expect(problem).toMatchObject({ code: 'HOST_UNREACHABLE', message: expect.stringContaining(message) });
    expect(problem.hint ?? '').toMatch(hint);
  });

  it.each([
    ['line after line', () => 'x\n'.repeat(3000)],
    ['a line without end', () => 'x'.repeat(20_000)],
    ['bytes after the version line', () => `SSH-2.0-x\r\n${'\u00ff'.repeat(5000)}`],
  ])('a server that sends garbage: %s', async (_, rubbish) => {
    const problem = await problemOf(transportTo(targetAt(await portOf((socket) => socket.write(rubbish(), 'latin1')))));
    expect(problem).toMatchObject({ code: 'HOST_UNREACHABLE' });
  });

  it('a server that closes during the handshake', async () => {
    const problem = await problemOf(transportTo(targetAt(await portOf((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')))));
    expect(problem).toMatchObject({ code: 'HOST_UNREACHABLE', message: expect.stringContaining('the key exchange failed') });
  });

  it('an abort ends one wait and not the others', async () => {
    const transport = transportTo(targetAt(await portOf(() => undefined)));
    const controller = new AbortController();
    const aborted = transport.run(['true'], { signal: controller.signal }).catch((error: unknown) => error);
    const other = transport.run(['true']).catch((error: AppError) => error.code);
    controller.abort('enough');
    expect(await aborted).toBe('enough');
    expect(await other).toBe('HOST_TIMEOUT');
  });

  it('a host is not contacted when its known_hosts cannot be read', async () => {
    let calls = 0;
    const port = await portOf(() => calls++);
    const hostKeys = {
      knownHosts: () => Promise.reject(new AppError({ code: 'HOST_KEY_UNKNOWN', message: 'it cannot be read' })),
      save: async () => null,
    };
    expect((await problemOf(transportTo(targetAt(port), { hostKeys }))).message).toBe('it cannot be read');
    expect(calls).toBe(0);
  });

  it.each([[[]], [['hop']]])('closing ends the attempt to connect, jump hosts: %j', async (hops) => {
    let open = 0;
    const port = await portOf((socket) => {
      open++;
      socket.resume().on('close', () => open--);
    });
    const silent = targetAt(port, { connectTimeoutMs: 600_000 });
    const transport = transportTo({ ...silent, proxyJump: hops.map((name) => ({ ...silent, name })) });
    const running = transport.run(['true']).catch((error: AppError) => error.code);
    await untilTrue(() => open === 1);
    await transport.close();
    expect(await running).toBe('HOST_CONNECTION_LOST');
    await untilTrue(() => open === 0);
  });
});
