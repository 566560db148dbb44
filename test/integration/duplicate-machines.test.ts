import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-machines-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const [fleet, config] = [join(directory, 'fleet.yaml'), join(directory, 'ssh_config')];
const HOSTS = '\n  - {name: w1}\n  - {name: w2}\n';

/** Runs a command with a fleet file that names its ssh_config; no host may be connected. */
async function run(
  command: string,
  hosts: string,
  sshConfig: string,
  tail: readonly string[] = [],
): Promise<{ readonly code: number; readonly text: string }> {
  writeFileSync(fleet, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nsshConfig: ssh_config\nhosts:${hosts}`);
  writeFileSync(config, sshConfig, { mode: 0o600 });
  const connectHost = () => Promise.reject(new Error('a host was connected'));
  const argv = [...command.split(' '), '-f', fleet, ...tail];
  const { code, stdout, stderr } = await runCommand(argv, { env: { XDG_STATE_HOME: directory }, services: () => ({ connectHost }) });
  return { code, text: `${stdout}${stderr}`.replaceAll(`${directory}/`, '') };
}

const duplicate = (address: string): string =>
  `fleet.yaml:6:12: hosts "w2" and "w1" (fleet.yaml:5:12) have the same address ${address} in ssh_config. Fix the address, or remove one of the hosts. [FLEET_DUPLICATE_ADDRESS]\n`;

describe('hosts that ssh_config makes one machine', () => {
  it.each([
    ['an alias', HOSTS, 'Host w1\n  HostName 192.0.2.11\nHost w2\n  HostName 192.0.2.11\n', '192.0.2.11'],
    ['an alias of an address', '\n  - {name: w1, address: 192.0.2.11}\n  - {name: w2}\n', 'Host w2\n  HostName 192.0.2.11\n', '192.0.2.11'],
    [
      'a port',
      '\n  - {name: w1, ssh: {port: 2222}}\n  - {name: w2}\n',
      'Host w2\n  Port 2222\nHost *\n  HostName 192.0.2.11\n',
      '192.0.2.11:2222',
    ],
    [
      'a jump host',
      HOSTS,
      'Host w1\n  ProxyJump b1\nHost w2\n  ProxyJump b2\nHost w*\n  HostName 10.0.0.1\nHost b*\n  HostName 192.0.2.1\n',
      '10.0.0.1',
    ],
    [
      'a jump host of the fleet file',
      '\n  - {name: w1, ssh: {bastion: b1}}\n  - {name: w2}\n',
      'Host w2\n  ProxyJump b1\nHost w*\n  HostName 10.0.0.1\n',
      '10.0.0.1',
    ],
    ['another case', HOSTS, 'Host w1\n  HostName N1.example\nHost w2\n  HostName n1.example\n', 'n1.example'],
  ])('are refused before a host is connected: %s', async (_, hosts, sshConfig, address) => {
    for (const command of ['fleet validate', 'plan', 'apply']) {
      const { code, text } = await run(command, hosts, sshConfig);
      expect([code, text], command).toEqual([2, expect.stringContaining(duplicate(address))]);
    }
  });

  it.each([
    ['other ports', 'Host w1\n  Port 2201\nHost w2\n  Port 2202\nHost *\n  HostName 192.0.2.11\n'],
    ['other jump hosts', 'Host w1\n  ProxyJump 192.0.2.1\nHost w2\n  ProxyJump 192.0.2.2\nHost w*\n  HostName 10.0.0.1\n'],
    ['a ProxyCommand', 'Host *\n  HostName 192.0.2.11\n  ProxyCommand tunnel %n\n'],
    ['other users', 'Host w1\n  User a\nHost w2\n  User b\n'],
    ['users of a gateway', 'Host w1\n  User admin:w1\nHost w2\n  User admin:w2\nHost *\n  HostName 192.0.2.11\n'],
    ['a command that selects the port', 'Match host w2 exec "true"\n  Port 2202\nHost *\n  HostName 192.0.2.11\n'],
  ])('does not refuse hosts with %s', async (_, sshConfig) => {
    expect(await run('fleet validate', HOSTS, sshConfig)).toMatchObject({ code: 0 });
  });

  it.each(['fleet reset --yes', 'fleet exec'])('are refused by %s if both are selected', async (command) => {
    const argv = `${command} --limit w1,w2`;
    const sshConfig = 'Host *\n  HostName 192.0.2.11\n';
    const tail = command === 'fleet exec' ? ['--', 'true'] : [];
    const both = await run(argv, HOSTS, sshConfig, tail);
    expect([both.code, both.text]).toEqual([2, expect.stringContaining(duplicate('192.0.2.11'))]);
    expect((await run(argv.replace(',w2', ''), HOSTS, sshConfig, tail)).text).not.toContain('FLEET_DUPLICATE_ADDRESS');
  });

  it('reads the ssh_config of the command line', async () => {
    const other = join(directory, 'other');
    writeFileSync(other, 'Host *\n  HostName 192.0.2.11\n', { mode: 0o600 });
    expect((await run(`plan --ssh-config ${other}`, HOSTS, '')).text).toContain(duplicate('192.0.2.11').slice('fleet.yaml:6:12'.length));
  });
});
