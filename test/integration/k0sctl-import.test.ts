import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-k0sctl-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let files = 0;
const write = (hosts: string, rest = ''): string => {
  const file = join(directory, `k0sctl-${files++}.yaml`);
  const header = 'apiVersion: k0sctl.k0sproject.io/v1beta1\nkind: Cluster\nmetadata: {name: prod}\n';
  writeFileSync(file, `${header}spec:\n  hosts:\n${hosts}${rest}`);
  return file;
};

async function imported(file: string) {
  const fleet = `${file}.fleet.yaml`;
  const { code, stdout, stderr } = await runCommand(['fleet', 'init', '-f', fleet, '--from-k0sctl', file]);
  const written = ` written. Show the hosts: kubeletadm fleet inventory -f ${fleet}\n`;
  expect([code, stdout]).toEqual([0, expect.stringContaining(written)]);
  expect((await runCommand(['fleet', 'validate', '-f', fleet])).code).toBe(0);
  const table = (await runCommand(['fleet', 'inventory', '-f', fleet])).stdout;
  return {
    stderr,
    text: readFileSync(fleet, 'utf8'),
    rows: table
      .split('\n')
      .slice(1, -1)
      .map((row) => row.split(/ {2,}/).slice(0, 4)),
  };
}

describe('fleet init --from-k0sctl', () => {
  it('imports role, name, address, user, port, key and bastion', async () => {
    const bastion = '      bastion: {address: 192.0.2.1, user: jump, port: 2222, keyPath: ~/.ssh/jump}\n';
    const file = write(
      `  - role: controller\n    ssh:\n      address: 10.0.0.1\n      user: ubuntu\n      keyPath: keys/id\n${bastion}` +
        `  - role: controller+worker\n    hostname: cp2\n    ssh:\n      address: cp2.example.com\n      port: 22\n${bastion}` +
        '  - role: worker\n    ssh: {address: "10.0.0.3", port: 2200, hostKey: x}\n    hooks: {apply: {}}\n    files: []\n',
      '  k0s: {version: v1.30.1+k0s.0}\n',
    );
    const { stderr, rows, text } = await imported(file);
    expect(rows).toEqual([
      ['10.0.0.1', 'ubuntu@10.0.0.1', 'bastion-1', 'control-plane'],
      ['cp2', 'root@cp2.example.com', 'bastion-1', 'control-plane'],
      ['10.0.0.3', 'root@10.0.0.3:2200', '-', 'worker'],
      ['bastion-1', 'jump@192.0.2.1:2222', '-', 'bastion'],
    ]);
    expect(text).toContain('        - keys/id\n');
    expect(text).toContain('        - ~/.ssh/jump\n');
    expect(stderr).toBe(`not imported from ${file}: spec.hosts[].hooks, spec.hosts[].files, spec.hosts[].ssh.hostKey, spec.k0s\n`);
  });

  it('names hosts behind one address by their ports', async () => {
    const file = write(
      '  - {role: single, ssh: {address: 127.0.0.1, port: 2222}}\n  - {role: worker, ssh: {address: 127.0.0.1, port: 2200}}\n  - {role: worker, localhost: {enabled: true}}\n  - {role: worker, winRM: {address: 192.0.2.2}}\n',
    );
    const { stderr, rows } = await imported(file);
    expect(rows.map(([name, , , role]) => [name, role])).toEqual([
      ['127.0.0.1-2222', 'control-plane'],
      ['127.0.0.1-2200', 'worker'],
    ]);
    expect(stderr).toBe(`not imported from ${file}: spec.hosts[2] (no SSH), spec.hosts[3] (WinRM)\n`);
  });

  it.each([
    [
      'variables of the environment',
      '  - {role: worker, ssh: {address: "${NODE}"}}\n',
      /:6:35: spec\.hosts\[0\]: address has a variable of the environment\. Run envsubst/,
    ],
    ['an unknown role', '  - {role: master, ssh: {address: a}}\n', /:6:12: spec\.hosts\[0\]\.role: "master" is not a role of k0sctl/],
    ['a missing address', '  - {role: worker, ssh: {user: a}}\n', /:6:25: spec\.hosts\[0\] has no address/],
  ])('refuses %s', async (_, hosts, message) => {
    const { code, stderr } = await runCommand(['fleet', 'init', '-f', join(directory, 'no.yaml'), '--from-k0sctl', write(hosts)]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });

  it('is named where a file of k0sctl is given', async () => {
    const file = write('  - {role: worker, ssh: {address: a}}\n');
    const ansible = await runCommand(['fleet', 'init', '-f', join(directory, 'no.yaml'), '--from-ansible', file]);
    expect(ansible).toMatchObject({ code: 2, stderr: expect.stringContaining(`Run kubeletadm fleet init --from-k0sctl ${file}`) });
    const validate = await runCommand(['fleet', 'validate', '-f', file]);
    expect(validate).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`import its hosts with kubeletadm fleet init --from-k0sctl ${file}`),
    });
  });

  it('needs a file of k0sctl', async () => {
    const other = join(directory, 'other.yaml');
    writeFileSync(other, 'kind: Cluster\n');
    expect(await runCommand(['fleet', 'init', '-f', '-', '--from-k0sctl', other])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('other.yaml:1:1: no hosts of k0sctl found'),
    });
  });
});
