import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '../../src/base/errors.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { loadSshConfig } from '../../src/ssh/adapters/ssh-config.ts';
import { sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import { resolveSshTarget } from '../../src/ssh/resolve-target.ts';
import { startRawSshServer } from '../support/raw-ssh-server.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { startSshServer } from '../support/ssh-server.ts';
import { generateKey, type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

describe.skipIf(requirement('the policy of ssh_config', sshdMissing))('requirements of ssh_config', () => {
  let directory: string;
  let sshd: Sshd;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kubeletadm-ssh-policy-'));
    sshd = await startSshd({
      hostKeys: ['ed25519', 'rsa'],
      config: ['LogLevel DEBUG1', ...[2, 3].map((i) => `ListenAddress 127.0.0.${i}`)],
    });
  });
  afterAll(async () => {
    await sshd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  /** An ssh_config in which `edge-1`, `edge-2` and `edge-3` are the server. */
  function configFile(name: string, lines: readonly string[]): string {
    const path = join(directory, name);
    const known = join(directory, `${name}-known`);
    const names = [1, 2, 3].map((i) => `[127.0.0.${i}]:${sshd.port}`).join(',');
    writeFileSync(known, `${names} ${sshd.hostKey('ed25519')}\n${names} ${sshd.hostKey('rsa')}\n`);
    const hosts = [1, 2, 3].map((i) => `Host edge-${i}\n  HostName 127.0.0.${i}\n`);
    const common = `Host *\n  Port ${sshd.port}\n  User ${sshd.user}\n  IdentityFile ${sshd.identityFile}\n  UserKnownHostsFile ${known}\n  GlobalKnownHostsFile none\n`;
    writeFileSync(path, `${lines.join('\n')}\n${hosts.join('')}${common}`);
    return path;
  }

  describe('that the built-in client does not support', () => {
    it('are reported once per run, on standard error', async () => {
      const config = configFile('unsupported', [
        'Host edge-*',
        '  CertificateFile ~/.ssh/certificate',
        '  KnownHostsCommand /bin/true',
        '  StrictHostKeyChecking no',
        'Match tagged lab',
        '  User nobody',
        'Host *',
      ]);
      const fleet = join(directory, 'fleet.yaml');
      const hosts = [1, 2, 3].map(
        (i) => `  - {name: node-${i}, address: edge-${i}, ssh: {become: none${i === 3 ? ', bastion: edge-1' : ''}}}\n`,
      );
      writeFileSync(fleet, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n${hosts.join('')}`);
      const { code, stdout, stderr } = await runCommand(['fleet', 'exec', '-f', fleet, '--ssh-config', config, '--', 'echo', 'ran']);
      expect(code, stderr).toBe(0);
      expect(stdout.match(/ran$/gm)).toHaveLength(3);
      expect(stdout).not.toContain('SSH_CONFIG_UNSUPPORTED');
      const warnings = stderr.split('\n').filter((line) => line.includes('SSH_CONFIG_UNSUPPORTED'));
      expect(warnings.sort()).toEqual([
        expect.stringMatching(
          /^warning: .*unsupported:2:1: CertificateFile is not supported by the built-in SSH client; this line is ignored\. .*--ssh-transport openssh.* \[/,
        ),
        expect.stringMatching(/^warning: .*unsupported:3:1: KnownHostsCommand is not supported/),
        expect.stringMatching(/^warning: .*unsupported:4:1: StrictHostKeyChecking no is treated as accept-new/),
        expect.stringMatching(/^warning: .*unsupported:5:1: Match tagged lab is not supported .* is ignored/),
      ]);
    });

    it('are reported when host keys are recorded', async () => {
      const config = configFile('unsupported-trust', ['Host edge-1', '  KnownHostsCommand /bin/true', 'Host *']);
      const fleet = join(directory, 'fleet-trust.yaml');
      writeFileSync(fleet, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n  - {name: edge-1}\n');
      const { stderr } = await runCommand(['fleet', 'trust', '-f', fleet, '--ssh-config', config, '--dry-run']);
      expect(stderr.match(/KnownHostsCommand is not supported/g)).toHaveLength(1);
    });
  });

  describe('for cryptography and login are met', () => {
    /** The result of a run, together with the result of `ssh` with the same file. */
    async function outcomes(name: string, lines: readonly string[]): Promise<{ ours: string; theirs: boolean; log: string }> {
      const config = configFile(name, ['Host *', ...lines.map((line) => `  ${line}`)]);
      const before = sshd.log().length;
      const ours = await outcome(config, 'edge-1');
      const log = sshd.log().slice(before);
      const { status } = spawnSync('ssh', ['-F', config, '-o', 'BatchMode=yes', 'edge-1', 'true']);
      return { ours, theirs: status === 0, log };
    }

    async function outcome(config: string, host: string, password?: Secret): Promise<string> {
      try {
        const target = resolveSshTarget(host, await loadSshConfig({ configFile: config, variables: {} }));
        const transport = sshTransport(target, { hostKeys: knownHostsStore(), ...(password === undefined ? {} : { password }) });
        const result = await transport.run(['true']).finally(() => transport.close());
        return `exit ${result.exitCode}`;
      } catch (error) {
        return error instanceof AppError ? `${error.code} ${error.message}` : String(error);
      }
    }

    it.each<[string, readonly string[], RegExp]>([
      ['a key exchange', ['KexAlgorithms ecdh-sha2-nistp384'], /kex: algorithm: ecdh-sha2-nistp384/],
      ['a prepended key exchange', ['KexAlgorithms ^diffie-hellman-group16-sha512'], /kex: algorithm: diffie-hellman-group16-sha512/],
      [
        'key exchanges of which the client supports only one',
        ['KexAlgorithms ecdh-sha2-nistp256,sntrup761x25519-sha512@openssh.com'],
        /kex: algorithm: ecdh-sha2-nistp256/,
      ],
      ['a cipher and a MAC', ['Ciphers aes256-ctr', 'MACs hmac-sha2-512'], /client->server cipher: aes256-ctr MAC: hmac-sha2-512 /],
      [
        'ciphers without some',
        ['Ciphers -*gcm@openssh.com,chacha20*', 'MACs hmac-sha2-256'],
        /client->server cipher: aes128-ctr MAC: hmac-sha2-256 /,
      ],
      ['a host key', ['HostKeyAlgorithms rsa-sha2-256'], /kex: host key algorithm: rsa-sha2-256/],
      ['a signature of the user', ['PubkeyAcceptedAlgorithms ssh-ed25519'], /Accepted publickey/],
    ])('%s', async (name, lines, negotiated) => {
      const { ours, theirs, log } = await outcomes(name.replaceAll(' ', '-'), lines);
      expect([ours, theirs]).toEqual(['exit 0', true]);
      expect(log).toMatch(negotiated);
    });

    it.each<[string, readonly string[], RegExp]>([
      [
        'a key exchange',
        ['KexAlgorithms sntrup761x25519-sha512@openssh.com'],
        /^SSH_CONFIG_INVALID .*:2:1: KexAlgorithms allows no algorithm that .*--ssh-transport openssh/,
      ],
      ['MACs', ['MACs umac-128-etm@openssh.com'], /^SSH_CONFIG_INVALID .*MACs allows no algorithm that/],
      [
        'a host key',
        ['HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com'],
        /^SSH_CONFIG_INVALID .*HostKeyAlgorithms allows no algorithm that/,
      ],
      [
        'logins',
        ['PreferredAuthentications gssapi-with-mic'],
        /^SSH_CONFIG_INVALID .*PreferredAuthentications allows no authentication method that/,
      ],
    ])('or rejected, when the built-in client supports no required algorithm: %s', async (name, lines, expected) => {
      expect(
        await outcome(configFile(`refused-${name.replaceAll(' ', '-')}`, ['Host *', ...lines.map((line) => `  ${line}`)]), 'edge-1'),
      ).toMatch(expected);
    });

    it.each<[string, readonly string[], RegExp]>([
      ['PubkeyAuthentication no', ['PubkeyAuthentication no'], /^HOST_AUTH_FAILED .*no authentication method was available/],
      [
        'PubkeyAcceptedAlgorithms',
        ['PubkeyAcceptedAlgorithms ecdsa-sha2-nistp256'],
        /^HOST_AUTH_FAILED .*key type not allowed by PubkeyAcceptedAlgorithms/,
      ],
      [
        'RequiredRSASize',
        ['RequiredRSASize 8192', 'HostKeyAlgorithms rsa-sha2-512'],
        /^HOST_KEY_WEAK .*of 2048 bits, but the minimum is 8192 bits/,
      ],
    ])('like ssh, up to the point of failure: %s', async (name, lines, expected) => {
      const { ours, theirs, log } = await outcomes(`fails-${name.replaceAll(' ', '-')}`, lines);
      expect([ours, theirs]).toEqual([expect.stringMatching(expected), false]);
      expect(log).not.toMatch(/Accepted|Failed publickey|Postponed publickey/);
    });

    it('with all algorithms that the client supports', async () => {
      const lists = ['KexAlgorithms', 'Ciphers', 'MACs', 'HostKeyAlgorithms', 'PubkeyAcceptedAlgorithms'].map((name) => `  ${name} *`);
      expect(await outcome(configFile('everything', ['Host *', ...lists]), 'edge-1')).toBe('exit 0');
    });

    it('except for SHA-1, which must be named explicitly', async () => {
      const old = await startSshd({ config: ['MACs hmac-sha1', 'Ciphers aes128-ctr'] });
      try {
        const known = join(directory, 'old-known');
        writeFileSync(known, `[127.0.0.1]:${old.port} ${old.hostKey('ed25519')}\n`);
        const common = `Host old\n  HostName 127.0.0.1\n  Port ${old.port}\n  User ${old.user}\n  IdentityFile ${old.identityFile}\n  UserKnownHostsFile ${known}\n`;
        const [plain, named] = [join(directory, 'old'), join(directory, 'old-named')];
        writeFileSync(plain, common);
        writeFileSync(named, `${common}  MACs +hmac-sha1\n`);
        expect(await outcome(plain, 'old')).toMatch(/^HOST_UNREACHABLE .*no matching C->S MAC/);
        expect(await outcome(named, 'old')).toBe('exit 0');
      } finally {
        await old.stop();
      }
    });

    it.each<[string, string, string]>([
      ['PasswordAuthentication no', '  PasswordAuthentication no', 'tried password (keyboard-interactive); the host accepts'],
      ['KbdInteractiveAuthentication no', '  ChallengeResponseAuthentication no', 'tried password; the host accepts'],
      [
        'PreferredAuthentications',
        '  PreferredAuthentications keyboard-interactive,password',
        'tried password (keyboard-interactive), password; the host accepts',
      ],
    ])('%s', async (name, line, expected) => {
      const server = await startSshServer({ methods: ['password', 'keyboard-interactive'] });
      try {
        const config = join(directory, `password-${name.replaceAll(' ', '-')}`);
        writeFileSync(`${config}-known`, `[127.0.0.1]:${server.port} ${server.hostKey}\n`);
        writeFileSync(
          config,
          `Host h\n  HostName 127.0.0.1\n  Port ${server.port}\n  IdentityFile none\n  IdentityAgent none\n  UserKnownHostsFile ${config}-known\n${line}\n`,
        );
        expect(await outcome(config, 'h', new Secret('wrong'))).toContain(expected);
      } finally {
        await server.stop();
      }
    });

    it('RSA keys sign with SHA-1 only if PubkeyAcceptedAlgorithms names ssh-rsa', async () => {
      const identity = join(directory, 'id_rsa');
      generateKey(identity, 'rsa');
      for (const [name, line, signed] of [
        ['default', '', 0],
        ['named', '  PubkeyAcceptedAlgorithms +ssh-rsa\n', 1],
      ] as const) {
        const server = await startRawSshServer({ acceptsKeys: true });
        try {
          const config = join(directory, `sha1-${name}`);
          writeFileSync(`${config}-known`, `[127.0.0.1]:${server.port} ${server.hostKey}\n`);
          writeFileSync(
            config,
            `Host h\n  HostName 127.0.0.1\n  Port ${server.port}\n  IdentityFile ${identity}\n  IdentityAgent none\n  UserKnownHostsFile ${config}-known\n${line}`,
          );
          const result = await outcome(config, 'h');
          if (signed === 0) expect(result).toMatch(/^HOST_AUTH_FAILED .*the host accepts RSA signatures with SHA-1 only/);
          expect(server.payloads().filter((payload) => payload[0] === 50 && payload.includes('publickey\u0001')).length).toBe(signed);
        } finally {
          await server.stop();
        }
      }
    });
  });
});
