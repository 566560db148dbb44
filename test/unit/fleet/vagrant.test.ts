import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadFleet } from '../../../src/fleet/file/load.ts';
import { resolveFleet } from '../../../src/fleet/file/resolve.ts';
import { starterFile } from '../../../src/fleet/imports/starter.ts';
import { readVagrantMachines } from '../../../src/fleet/imports/vagrant.ts';

const recorded = (name: string): string => readFileSync(new URL(`./fixtures/vagrant/${name}.txt`, import.meta.url), 'utf8');

describe('a fleet file from vagrant ssh-config', () => {
  it.each(['libvirt-2.3.4', 'virtualbox-2.4.1'])('%s', async (name) => {
    const machines = readVagrantMachines(recorded(name), name);
    const text = starterFile('1.36', { machines, nodeIP: '192.168.56.0/24' });
    await expect(text).toMatchFileSnapshot(`./golden/vagrant-${name}.yaml`);
    const { fleet, problems } = resolveFleet(loadFleet(text, 'fleet.yaml'));
    expect(problems).toEqual([]);
    expect(
      fleet.hosts.map(({ name: host, role, ssh }) => ({
        name: host,
        role,
        address: ssh.address,
        user: ssh.user ?? null,
        port: ssh.port ?? null,
        identityFiles: ssh.identityFiles,
      })),
    ).toEqual(machines);
    expect(fleet.hosts.map(({ nodeRegistration }) => nodeRegistration.kubeletExtraArgs)).toEqual(
      machines.map(() => [{ name: 'node-ip', value: '192.168.56.0/24' }]),
    );
  });

  it('sets users per host if they differ', () => {
    const text = 'Host a\n  HostName 10.0.0.1\n  User ada\nHost b\n  HostName 10.0.0.2\n  User bob\n  Port 2222\n';
    const { fleet } = resolveFleet(loadFleet(starterFile('1.36', { machines: readVagrantMachines(text, '-') }), 'fleet.yaml'));
    expect(fleet.hosts.map(({ ssh: { user, port } }) => [user, port])).toEqual([
      ['ada', undefined],
      ['bob', 2222],
    ]);
  });

  it.each([
    ['cp', 'control-plane'],
    ['cp-1', 'control-plane'],
    ['controlplane2', 'control-plane'],
    ['master', 'control-plane'],
    ['cpu1', 'worker'],
    ['default', 'worker'],
  ])('%s is a %s', (name, role) => {
    expect(readVagrantMachines(`Host ${name}\n HostName h\n`, '-')[0]?.role).toBe(role);
  });

  it.each([
    ['', 'standard input:1:1: no host found. Run vagrant up, then rerun this command. [FLEET_IMPORT_INVALID]'],
    [
      '# what\n\nUser vagrant\n',
      'standard input:3:1: not the output of vagrant ssh-config. The first line must begin with Host. [FLEET_IMPORT_INVALID]',
    ],
    ['Host a\n', 'standard input:1:1: host "a" has no HostName. Run vagrant up, then rerun this command. [FLEET_IMPORT_INVALID]'],
    [
      'Host a\n HostName h\nHost a\n HostName i\n',
      'standard input:3:1: host "a" is listed twice. Save the output of a single run of vagrant ssh-config. [FLEET_IMPORT_INVALID]',
    ],
    [
      'Host a\n HostName h\n ProxyCommand ssh -W %h:%p "far away"\n',
      'standard input:3:1: host "a" uses ProxyCommand, which --from-vagrant does not support. Save the output of vagrant ssh-config to a file, then run kubeletadm fleet init --from-ssh-config FILE. [FLEET_IMPORT_INVALID]',
    ],
    [
      'Host a\n HostName h\n IdentityFile "/open\n',
      'standard input:3:1: unclosed quote. Write a keyword followed by its arguments, with balanced quotes. [SSH_CONFIG_INVALID]',
    ],
  ])('refuses %j', (text, message) => {
    expect(() => readVagrantMachines(text, '-')).toThrow(message);
  });
});
