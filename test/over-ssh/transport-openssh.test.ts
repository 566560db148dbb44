import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AppError, type Problem } from '../../src/base/errors.ts';
import type { Transport } from '../../src/host/transport.ts';
import { type OpensshTransportOptions, opensshShared, opensshTransport } from '../../src/ssh/adapters/transport-openssh.ts';
import { parseKnownHosts } from '../../src/ssh/known-hosts.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { freePort, startTcpServer } from '../support/loopback.ts';
import { requirement } from '../support/requirement.ts';
import { sshTargetFor, type TargetInput } from '../support/ssh-target.ts';
import { generateKey, type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';
import { untilTrue } from '../support/until-true.ts';

describe.skipIf(requirement("the system's ssh as a transport", sshdMissing))("the system's ssh", () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  let directory: string;
  let sshd: Sshd;
  let counter = 0;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kubeletadm-openssh-'));
    sshd = await startSshd({ hostKeys: ['ed25519', 'ecdsa'] });
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  afterAll(async () => {
    await sshd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function targetAt(server: Sshd, input: Partial<TargetInput> = {}): SshTarget {
    counter++;
    return sshTargetFor({
      name: `node-${counter}`,
      port: server.port,
      user: server.user,
      directory,
      known: [server.hostKey('ed25519')],
      identityFiles: [server.identityFile],
      ...input,
    });
  }

  function transportTo(target: SshTarget, options: OpensshTransportOptions = {}): Transport {
    const transport = opensshTransport(target, { configFile: 'none', ...options });
    cleanups.push(() => transport.close());
    return transport;
  }

  const outputOf = async (transport: Transport, ...argv: string[]): Promise<string> =>
    Buffer.from((await transport.run(argv)).stdout).toString();

  async function problemOf(transport: Transport): Promise<Problem> {
    const error: unknown = await transport.run(['true']).then(
      () => new Error('it got through'),
      (reason: unknown) => reason,
    );
    if (!(error instanceof AppError)) throw error;
    return error.problems[0] as Problem;
  }

  const newKey = (name: string): string => {
    const path = join(mkdtempSync(join(directory, 'key-')), name);
    generateKey(path, 'ed25519');
    return path;
  };
  const logins = (server: Sshd): number => server.log().match(/Accepted publickey/g)?.length ?? 0;

  it('logs in once for many commands, in parallel and in sequence', async () => {
    const before = logins(sshd);
    const transport = transportTo(targetAt(sshd));
    const outputs = await Promise.all([1, 2, 3, 4, 5].map((i) => outputOf(transport, 'echo', String(i))));
    expect([...outputs, await outputOf(transport, 'echo', '6')].join('')).toBe('1\n2\n3\n4\n5\n6\n');
    expect(logins(sshd) - before).toBe(1);
  });

  it('supports logins with a certificate, unlike the built-in client', async () => {
    const [ca, own] = [newKey('ca'), newKey('id')];
    const server = await startSshd({ config: [`TrustedUserCAKeys ${ca}.pub`, 'AuthorizedKeysFile none'] });
    cleanups.push(server.stop);
    execFileSync('ssh-keygen', ['-q', '-s', ca, '-I', 'test', '-n', server.user, `${own}.pub`]);
    expect(await outputOf(transportTo(targetAt(server, { identityFiles: [own] })), 'echo', 'certified')).toBe('certified\n');
  });

  it("honours the user's configuration for the alias", async () => {
    const config = join(directory, 'config');
    writeFileSync(config, `Host edge\n  IdentityFile ${sshd.identityFile}\n  SetEnv LC_PLACE=remote\n`);
    const server = await startSshd({ config: ['AcceptEnv LC_PLACE', `AuthorizedKeysFile ${sshd.identityFile}.pub`] });
    cleanups.push(server.stop);
    const transport = transportTo(targetAt(server, { alias: 'edge', identityFiles: [] }), { configFile: config });
    expect(await outputOf(transport, '/bin/sh', '-c', 'echo $LC_PLACE')).toBe('remote\n');
  });

  it('uses jump hosts, with one connection to each', async () => {
    const [first, second] = [await startSshd(), await startSshd()];
    cleanups.push(first.stop, second.stop);
    const shared = opensshShared();
    const proxyJump = [targetAt(first, { name: 'hop-1' }), targetAt(second, { name: 'hop-2' })];
    const transports = [1, 2, 3].map(() => transportTo(targetAt(sshd, { proxyJump }), { shared }));
    expect(await Promise.all(transports.map((each) => outputOf(each, 'echo', 'hi')))).toEqual(['hi\n', 'hi\n', 'hi\n']);
    expect([logins(first), logins(second)]).toEqual([1, 1]);
    for (const transport of transports) await transport.close();
    await untilTrue(() => first.log().includes('disconnect') || first.log().includes('Connection closed'));
  });

  it('fails on a host whose shell prints the messages of a missing control socket', async () => {
    const server = await startSshd({ config: ['ForceCommand echo mux_client_request_session >&2; exit 255'] });
    cleanups.push(server.stop);
    expect(await problemOf(transportTo(targetAt(server)))).toMatchObject({ code: 'HOST_CONNECTION_LOST' });
    expect(logins(server)).toBe(2);
  });

  it.each([
    ['the key', () => `${sshd.hostKey('ed25519')}\n`, 'HOST_KEY_REVOKED', 'the host key is revoked'],
    ['no key', () => 'what\n', 'HOST_KEY_UNKNOWN', 'in revoked keys file'],
  ])('rejects a host when RevokedHostKeys contains %s', async (_, list, code, message) => {
    const [config, revoked] = [join(directory, 'config-revoked'), join(directory, 'revoked')];
    writeFileSync(revoked, list());
    writeFileSync(config, `Host edge\n  RevokedHostKeys ${revoked}\n`);
    const problem = await problemOf(transportTo(targetAt(sshd, { alias: 'edge' }), { configFile: config }));
    expect(problem).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it('accepts only the pinned keys', async () => {
    const pin = (type: 'ed25519' | 'ecdsa'): SshTarget['pinnedHostKeys'] => parseKnownHosts(`x ${sshd.hostKey(type)}\n`, 'fleet.yaml');
    expect(await outputOf(transportTo({ ...targetAt(sshd, { known: [] }), pinnedHostKeys: pin('ecdsa') ?? [] }), 'echo', 'hi')).toBe(
      'hi\n',
    );
    const other = readFileSync(`${newKey('other')}.pub`, 'utf8');
    const wrong = { ...targetAt(sshd), pinnedHostKeys: parseKnownHosts(`x ${other}`, 'fleet.yaml') };
    expect((await problemOf(transportTo(wrong))).code).toMatch(/^HOST_KEY_(MISMATCH|UNKNOWN)$/);
  });

  it.each<[string, (server: Sshd) => Promise<SshTarget> | SshTarget, Partial<Problem>]>([
    ['an unknown key', (server) => targetAt(server, { known: [] }), { code: 'HOST_KEY_UNKNOWN' }],
    [
      'a changed key',
      (server) => targetAt(server, { known: [readFileSync(`${newKey('other')}.pub`, 'utf8').trim()] }),
      { code: 'HOST_KEY_MISMATCH' },
    ],
    ['a user that is not accepted', (server) => targetAt(server, { user: 'nosuchuser' }), { code: 'HOST_AUTH_FAILED' }],
    ['a closed port', async (server) => targetAt(server, { port: await freePort() }), { code: 'HOST_UNREACHABLE' }],
    ['a name that does not resolve', (server) => targetAt(server, { hostName: 'nosuchhost.invalid' }), { code: 'HOST_UNREACHABLE' }],
    [
      'an unreachable jump host',
      async (server) => targetAt(server, { proxyJump: [targetAt(server, { name: 'bastion', port: await freePort() })] }),
      { code: 'HOST_UNREACHABLE', message: expect.stringContaining('jump host bastion: ') },
    ],
  ])('reports %s', async (_, make, expected) => {
    const target = await make(sshd);
    const problem = await problemOf(transportTo(target));
    expect(problem).toMatchObject({ ...expected, host: target.name });
    expect(problem.message).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });

  it('fails on a host that sends nothing', async () => {
    const silent = await startTcpServer(() => undefined);
    cleanups.push(silent.stop);
    const start = Date.now();
    const problem = await problemOf(transportTo(targetAt(sshd, { port: silent.port, connectTimeoutMs: 1000 })));
    expect(problem.code).toBe('HOST_TIMEOUT');
    expect(Date.now() - start).toBeLessThan(5000);
  });

  it('closing ends the attempt to connect', async () => {
    let open = 0;
    const silent = await startTcpServer((socket) => {
      open++;
      socket.resume().on('close', () => open--);
    });
    cleanups.push(silent.stop);
    const transport = transportTo(targetAt(sshd, { port: silent.port, connectTimeoutMs: 600_000 }));
    const running = transport.run(['true']).catch((error: AppError) => error.code);
    await untilTrue(() => open === 1);
    await transport.close();
    expect(await running).toBe('HOST_CONNECTION_LOST');
    await untilTrue(() => open === 0);
  });

  it('writes no output of a host to the terminal', async () => {
    const rude = await startTcpServer((socket) => socket.end('\u001b[2J\u001b]0;owned\u0007hello\r\n'));
    cleanups.push(rude.stop);
    const { message } = await problemOf(transportTo(targetAt(sshd, { port: rude.port })));
    expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });
});
