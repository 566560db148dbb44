import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { generateKey, type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

describe.skipIf(requirement("fleets over the system's ssh", sshdMissing))("a fleet with hosts for the system's ssh", () => {
  let directory: string;
  let identity: string;
  /** Accepts only logins with a certificate, which the built-in client does not support. */
  let certified: Sshd;
  let plain: Sshd;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-fleet-openssh-'));
    const ca = join(directory, 'ca');
    identity = join(directory, 'id');
    for (const path of [ca, identity]) generateKey(path, 'ed25519');
    // Every host of a fleet has an address of its own.
    const addresses = [2, 3].map((i) => `ListenAddress 127.0.0.${i}`);
    plain = await startSshd({ config: addresses });
    certified = await startSshd({
      hostKeys: ['ed25519', 'ecdsa'],
      config: [...addresses, `TrustedUserCAKeys ${ca}.pub`, 'AuthorizedKeysFile none'],
    });
    execFileSync('ssh-keygen', ['-q', '-s', ca, '-I', 'test', '-n', certified.user, `${identity}.pub`]);
  });
  afterAll(async () => {
    await Promise.all([certified?.stop(), plain?.stop()]);
    rmSync(directory, { recursive: true, force: true });
  });

  let count = 0;
  const host = (server: Sshd, ssh: string, key = server.hostKey('ed25519')): string =>
    `address: 127.0.0.${(count++ % 3) + 1}, ssh: {port: ${server.port}, user: ${server.user}, become: none, hostKeys: [${key}], ${ssh}}`;
  const exec = (hosts: readonly string[], ...args: readonly string[]): Promise<CliResult> => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(file, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n${hosts.map((each) => `  - {${each}}\n`).join('')}`);
    return runCommand(['fleet', 'exec', '-f', file, '--ssh-config', 'none', ...args, '--', 'printf', '%s', 'a  b']);
  };
  const own = 'identityFiles: [id]';
  const ofPlain = (): string => `identityFiles: [${plain.identityFile}]`;

  it('reaches each host with the settings and keys of the fleet file, one through a bastion', async () => {
    const { code, stdout, stderr } = await exec([
      `name: jump, role: bastion, ${host(plain, ofPlain())}`,
      `name: direct, ${host(certified, `${own}, transport: openssh`)}`,
      `name: other-key, ${host(certified, `${own}, transport: openssh`, certified.hostKey('ecdsa'))}`,
      `name: behind, ${host(certified, `${own}, transport: openssh, bastion: jump`)}`,
      `name: built-in, ${host(plain, ofPlain())}`,
    ]);
    expect(code, stderr).toBe(0);
    expect(stdout.match(/^ {2}a {2}b$/gm)).toHaveLength(4);
  });

  it('a host that requires a certificate rejects the built-in client, and accepts --ssh-transport openssh', async () => {
    const hosts = [`name: certified, ${host(certified, own)}`];
    expect(await exec(hosts)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^certified: .* \[HOST_AUTH_FAILED\]$/m) });
    const { code, stdout, stderr } = await exec(hosts, '--ssh-transport', 'openssh');
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('a  b');
  });

  it('accepts only the keys of the fleet file, and prints one line for the affected host', async () => {
    const stranger = join(directory, 'stranger');
    generateKey(stranger, 'ed25519');
    const key = readFileSync(`${stranger}.pub`, 'utf8').split(' ').slice(0, 2).join(' ');
    const { code, stdout, stderr } = await exec([
      `name: changed, ${host(certified, `${own}, transport: openssh`, key)}`,
      `name: good, ${host(certified, `${own}, transport: openssh`)}`,
    ]);
    expect(code).toBe(4);
    expect(stdout).toContain('a  b');
    expect(stderr.trim().split('\n')).toEqual([expect.stringMatching(/^changed: .* \[HOST_KEY_MISMATCH\]$/)]);
  });
});
