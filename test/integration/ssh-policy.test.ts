import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

describe.skipIf(requirement('the policy of ssh_config', sshdMissing))('what ssh_config demands', () => {
  let directory: string;
  let sshd: Sshd;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kubeletadm-ssh-policy-'));
    sshd = await startSshd({ hostKeys: ['ed25519', 'rsa'], config: [2, 3].map((i) => `ListenAddress 127.0.0.${i}`) });
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
    writeFileSync(known, `${names} ${sshd.hostKey('ed25519')}\n`);
    const hosts = [1, 2, 3].map((i) => `Host edge-${i}\n  HostName 127.0.0.${i}\n`);
    const common = `Host *\n  Port ${sshd.port}\n  User ${sshd.user}\n  IdentityFile ${sshd.identityFile}\n  UserKnownHostsFile ${known}\n  GlobalKnownHostsFile none\n`;
    writeFileSync(path, `${lines.join('\n')}\n${hosts.join('')}${common}`);
    return path;
  }

  describe('and the built-in client cannot do', () => {
    it('is reported once a run, on standard error', async () => {
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
          /^warning: .*unsupported:2:1: CertificateFile is not supported by the built-in SSH client\. .*--ssh-transport openssh.* \[/,
        ),
        expect.stringMatching(/^warning: .*unsupported:3:1: KnownHostsCommand is not supported/),
        expect.stringMatching(/^warning: .*unsupported:4:1: StrictHostKeyChecking no counts as accept-new/),
        expect.stringMatching(/^warning: .*unsupported:5:1: Match tagged lab is not supported .* never matches/),
      ]);
    });

    it('is reported when host keys are recorded', async () => {
      const config = configFile('unsupported-trust', ['Host edge-1', '  KnownHostsCommand /bin/true', 'Host *']);
      const fleet = join(directory, 'fleet-trust.yaml');
      writeFileSync(fleet, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n  - {name: edge-1}\n');
      const { stderr } = await runCommand(['fleet', 'trust', '-f', fleet, '--ssh-config', config, '--dry-run']);
      expect(stderr.match(/KnownHostsCommand is not supported/g)).toHaveLength(1);
    });
  });
});
