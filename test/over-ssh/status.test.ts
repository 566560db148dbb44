import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('status', { timeout: 120_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ka-status-'));
  const file = join(directory, 'fleet.yaml');
  const env = { XDG_STATE_HOME: join(directory, 'state'), HOME: directory };
  let lab: Lab;
  const status = (...argv: readonly string[]): Promise<CliResult> => runCommand(['status', ...argv], { env });
  const fleet = (...argv: readonly string[]): Promise<CliResult> => status('-f', file, ...argv);
  const rows = (stdout: string): readonly (readonly string[])[] =>
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
  const writeFleet = (maxPods: number, more = ''): void =>
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
sshConfig: lab/ssh_config
cluster: {kubeconfig: lab/admin.conf}
baseline: {kubeletConfiguration: {maxPods: ${maxPods}}}
hosts:
  - {name: first, address: node1}
  - {name: second, address: node2, nodeName: node-two}
${more}`,
    );

  beforeAll(async () => {
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
    writeFleet(60);
    expect(await runCommand(['apply', '--yes', '-f', file], { env })).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    await lab.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('joins hosts and Nodes', async () => {
    const { code, stdout, stderr } = await fleet();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [header, first, second] = rows(stdout);
    expect(header).toEqual(['HOST', 'NODE NAME', 'STATUS', 'KUBELET', 'CONFIG', 'DRIFT', 'CHANGE', 'CERTIFICATES']);
    expect(first?.slice(0, 7)).toEqual(['first', 'node1', 'Ready', 'v1.36.2', 'file', 'none', 'none']);
    expect(second?.slice(0, 7)).toEqual(['second', 'node-two', 'Ready', 'v1.36.2', 'file', 'none', 'none']);
    expect(second?.[7]).toMatch(/^\w+ in \d+[dhy]/);
  });

  it('accepts the name of the host or of the Node', async () => {
    for (const name of ['second', 'node-two', 'node/node-two', 'host/second'])
      expect([
        name,
        rows((await fleet(name)).stdout)
          .slice(1)
          .map(([host]) => host),
      ]).toEqual([name, ['second']]);
    // The fleet file does not name this Node.
    expect((await fleet('node1', '-o', 'name')).stdout).toBe('host/first\n');
    expect(await fleet('third')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no host of the fleet file and no Node has the name third'),
    });
  });

  it('tells who moved: the host or the fleet file', async () => {
    const config = join(lab.hosts[1]?.rootDir ?? '', 'var/lib/kubelet/config.yaml');
    const before = readFileSync(config, 'utf8');
    writeFileSync(config, before.replace('maxPods: 60', 'maxPods: 61'));
    const host = await fleet('second');
    writeFileSync(config, before);
    expect(host.stdout).toContain('host changed');
    expect(host.stdout).toContain('\nsecond: ');
    expect(host.stdout).toContain('maxPods: wanted 60, on disk 61');
    writeFleet(70);
    const moved = await fleet('second');
    writeFleet(60);
    expect(moved.stdout).toContain('fleet file changed');
    expect(moved.stdout).toContain('maxPods: wanted 70, on disk 60');
  });

  it('says that a host was not read', async () => {
    writeFleet(60, '  - {name: dead, address: 127.0.0.1, ssh: {port: 1}}\n');
    const { code, stdout, stderr } = await fleet();
    writeFleet(60);
    expect(code).not.toBe(0);
    expect(rows(stdout).find(([host]) => host === 'dead')).toEqual(['dead', ...Array<string>(7).fill('unknown')]);
    expect(stderr).toContain('[HOST_UNREACHABLE]');
  });

  it('says that the program of a running kubelet was removed', async () => {
    const [program, away] = ['bin/kubelet', 'kubelet.away'].map((name) => join(lab.directory, name)) as [string, string];
    renameSync(program, away);
    const all = await fleet('second');
    const hosts = await runCommand(['fleet', 'status', '-f', file, '--limit', 'second'], { env });
    renameSync(away, program);
    const why = 'second: not read: version of the kubelet: no program kubelet on the PATH of the host or in unit kubelet\n';
    expect(all.stdout).toContain(why);
    expect(all.stdout).toContain('second: unit kubelet: a restart would fail: the kubelet is missing, or kubelet --version failed\n');
    expect(hosts.stdout).toMatch(/^second .* ok +Ready .*a restart would fail$/m);
    expect(hosts.stdout).toContain(why);
  });

  it('shows the Nodes alone without a fleet file', async () => {
    const { code, stdout } = await status('--kubeconfig', lab.kubeconfig);
    expect(code).toBe(0);
    const [, ...found] = rows(stdout);
    expect(found.slice(0, 2).map((row) => row.slice(0, 3))).toEqual([
      ['node-two', 'Ready', 'v1.36.2'],
      ['node1', 'Ready', 'v1.36.2'],
    ]);
    expect(stdout).toContain(
      'Not read: hosts: no fleet file fleet.yaml and no --host, so drift, certificates and unconfirmed changes are unknown.\n',
    );
    expect((await status('node/node1', '--kubeconfig', lab.kubeconfig, '-o', 'name')).stdout).toBe('node/node1\n');
  });

  it('shows what SSH shows if the API server does not answer', async () => {
    const dead = join(directory, 'dead.conf');
    writeFileSync(dead, readFileSync(lab.kubeconfig, 'utf8').replace(/server: .*/, 'server: https://127.0.0.1:1'));
    const known = ['node1', 'unknown', 'v1.36.2', 'file', 'unknown', 'none', expect.stringMatching(/^\w+ in \d+/)];
    const unread =
      /^the Nodes were not read: cannot reach the API server https:\/\/127\.0\.0\.1:1: connection refused\. .*\[CLUSTER_UNREACHABLE\]\n$/;
    const all = await fleet('--kubeconfig', dead);
    expect(all).toMatchObject({ code: 1, stderr: expect.stringMatching(unread) });
    expect(rows(all.stdout).slice(1)).toEqual([
      ['first', ...known],
      ['second', 'node-two', ...known.slice(1)],
    ]);
    expect(await fleet('second', '-o', 'name', '--kubeconfig', dead)).toMatchObject({ code: 1, stdout: 'host/second\n' });
    const old = await runCommand(['fleet', 'status', '-f', file, '--limit', 'first', '--kubeconfig', dead], { env });
    expect(old).toMatchObject({ code: 1, stderr: expect.stringMatching(unread) });
    expect(rows(old.stdout)[1]).toEqual([
      'first',
      'node1',
      'yes',
      'v1.36.2',
      expect.stringMatching(/^[0-9a-f]{12}$/),
      'file',
      'ok',
      '-',
      '-',
    ]);
    expect(await status('--kubeconfig', dead)).toMatchObject({ code: 1, stdout: '' });
  });

  it('shows hosts without a fleet file, with their Nodes if the cluster is known', async () => {
    const hosts = ['--ssh-config', lab.sshConfig, '--host', 'node1', '--host', 'node3'];
    const { code, stdout, stderr } = await status(...hosts, '--kubeconfig', lab.kubeconfig);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(rows(stdout).slice(1)).toEqual([
      ['node1', 'node1', 'Ready', 'v1.36.2', 'file', 'unknown', 'none', expect.stringMatching(/^\w+ in \d+/)],
      ['node3', 'unknown', 'no Node', 'v1.36.2', 'unknown', 'unknown', 'none', 'unknown'],
      ['Not read: drift: the hosts were compared with no fleet file.'],
    ]);
    const alone = await status(...hosts);
    expect(alone).toMatchObject({ code: 0, stdout: expect.stringContaining('Not read: Nodes: no kubeconfig was found.\n') });
    expect(rows(alone.stdout)[1]?.slice(0, 3)).toEqual(['node1', 'node1', 'unknown']);
    // The problem has the name of the row, which needs no other reason.
    const down = await status('--host', 'root@127.0.0.1:1', '--ssh-config', lab.sshConfig);
    expect(down.stderr).toMatch(/^root@127\.0\.0\.1:1: cannot reach 127\.0\.0\.1:1: /);
    expect(down.stdout).not.toContain('was not inspected');
    // With a fleet file it is another form of the name.
    expect((await fleet('--host', 'second', '-o', 'name')).stdout).toBe('host/second\n');
    const mixed = await status(...hosts, '--group', 'edge');
    expect(mixed).toMatchObject({ code: 2, stderr: expect.stringContaining('--host inspects hosts without a fleet file') });
  });

  it('prints a document', async () => {
    const document = JSON.parse((await fleet('first', '-o', 'json')).stdout);
    expect(document).toMatchObject({
      kind: 'Status',
      items: [{ host: 'first', node: 'node1', ready: 'Ready', drift: [], change: 'none' }],
    });
  });
});
