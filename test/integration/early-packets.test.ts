import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AppError } from '../../src/base/errors.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import type { HostKeyStore } from '../../src/ssh/host-keys.ts';
import type { HostKey } from '../../src/ssh/known-hosts.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { type EarlyPacket, type RawSshServer, startRawSshServer } from '../support/raw-ssh-server.ts';
import { sshTargetFor } from '../support/ssh-target.ts';

const PASSWORD = 'S3CRET-password';
const OTHER_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM2MvYQhaoM+8vGOJc8bVKvG3zGBZTCnkYpC0gR9EBpz';
const MODES: readonly (readonly [string, readonly EarlyPacket[]])[] = [
  ['SERVICE_ACCEPT', ['service-accept']],
  ['USERAUTH_SUCCESS', ['userauth-success']],
  ['USERAUTH_FAILURE', ['userauth-failure']],
  ['SERVICE_ACCEPT, USERAUTH_FAILURE, USERAUTH_SUCCESS', ['service-accept', 'userauth-failure', 'userauth-success']],
  ['SERVICE_ACCEPT, a request for a new password, a channel', ['service-accept', 'password-change', 'channel-open']],
];

describe('packets of the login that arrive before the host key is verified', () => {
  let directory: string;
  let server: RawSshServer | undefined;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'kubeletadm-early-'));
  });
  afterEach(() => server?.stop());
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** The code of the error; `connected` when a command reached a session. */
  async function outcome(target: SshTarget, hostKeys: HostKeyStore = knownHostsStore()): Promise<string> {
    const transport = sshTransport(target, { hostKeys, password: new Secret(PASSWORD) });
    const result = await transport.run(['true'], { timeoutMs: 3000 }).then(
      () => 'connected',
      (error: AppError) => `${error.code} ${error.message}`,
    );
    await transport.close();
    return result;
  }

  describe.each(MODES)('%s in one segment with NEWKEYS', (_, early) => {
    it.each([
      ['unknown', [], 'yes', 'HOST_KEY_UNKNOWN'],
      ['unknown', [], 'ask', 'HOST_KEY_UNKNOWN'],
      ['changed', [OTHER_KEY], 'yes', 'HOST_KEY_MISMATCH'],
      ['changed', [OTHER_KEY], 'accept-new', 'HOST_KEY_MISMATCH'],
    ] as const)('%s key: no login data is sent, and the error names the key', async (_, known, strictHostKeyChecking, code) => {
      server = await startRawSshServer({ early });
      const target = sshTargetFor({ port: server.port, directory, known, strictHostKeyChecking });
      expect(await outcome(target)).toMatch(new RegExp(`^${code} `));
      expect(server.wire().includes(PASSWORD)).toBe(false);
      expect(server.wire().includes(target.user)).toBe(false);
      expect(server.payloads().map(([type]) => type)).toEqual([20, 30, 1].slice(0, server.payloads().length));
    });
  });

  it.each(MODES)('%s before the key exchange ends the attempt', async (_, early) => {
    server = await startRawSshServer({ early, beforeKeyExchange: true });
    const target = sshTargetFor({ port: server.port, directory, known: [server.hostKey] });
    expect(await outcome(target)).toMatch(/^HOST_UNREACHABLE .*the key exchange failed/);
    expect(server.wire().includes(PASSWORD)).toBe(false);
  });

  it('a host that does not own the presented key is neither trusted nor added to known_hosts', async () => {
    server = await startRawSshServer({ early: ['service-accept'], signsWithAnotherKey: true });
    const target = sshTargetFor({ port: server.port, directory, known: [], strictHostKeyChecking: 'accept-new' });
    const saved: string[] = [];
    const save = async (_: SshTarget, { blob }: HostKey): Promise<null> => {
      saved.push(blob);
      return null;
    };
    expect(await outcome(target, { ...knownHostsStore(), save })).toMatch(/^HOST_UNREACHABLE .*signature verification failed/);
    expect(saved).toEqual([]);
    expect(server.wire().includes(PASSWORD)).toBe(false);
  });

  it('a host may not change its key in a later key exchange', async () => {
    server = await startRawSshServer({ changesKey: true });
    const target = sshTargetFor({ port: server.port, directory, known: [server.hostKey] });
    expect(await outcome(target)).toMatch(/^HOST_CONNECTION_LOST .*Host denied/);
    expect(server.payloads().map(([type]) => type)).toEqual(expect.arrayContaining([50, 90, 30]));
  });

  it('a known host that answers a login that was not requested is reported', async () => {
    server = await startRawSshServer({ early: ['userauth-failure'] });
    const target = sshTargetFor({ port: server.port, directory, known: [server.hostKey] });
    expect(await outcome(target)).toMatch(/^HOST_AUTH_FAILED .*the host violates the SSH protocol/);
    expect(server.wire().includes(PASSWORD)).toBe(false);
  });

  it('a known key that signs is trusted: the server can speak to this client', async () => {
    server = await startRawSshServer({ early: ['service-accept'] });
    const target = sshTargetFor({ port: server.port, directory, known: [server.hostKey], connectTimeoutMs: 1500 });
    expect(await outcome(target)).toMatch(/^HOST_TIMEOUT .*authentication did not complete/);
    expect(server.payloads().some((payload) => payload.includes(PASSWORD))).toBe(true);
    expect(server.wire().includes(PASSWORD)).toBe(false);
  });
});
