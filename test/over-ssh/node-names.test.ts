import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('hosts whose Nodes have other names', { timeout: 120_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ka-names-'));
  const file = join(directory, 'fleet.yaml');
  const env = { XDG_STATE_HOME: join(directory, 'state') };
  let lab: Lab;
  const run = (...argv: readonly string[]): Promise<CliResult> => runCommand([...argv, '-f', file], { env });
  const dynamic = (...argv: readonly string[]): Promise<CliResult> => run('dynamic', ...argv, '--kubeconfig', lab.kubeconfig);
  const firstColumn = ({ stdout }: CliResult): readonly string[] =>
    stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ +/)[0] ?? '');

  beforeAll(async () => {
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nsshConfig: lab/ssh_config\ncluster: {kubeconfig: lab/admin.conf}\nhosts:\n  - {name: first, address: node1}\n  - {name: second, address: node2, nodeName: node-two}\n`,
    );
    expect(await run('apply', '--yes')).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    await lab.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('shows the Node of each host', async () => {
    const [header, ...rows] = (await run('fleet', 'status')).stdout.trim().split('\n');
    expect(header).toMatch(/^HOST +NODE +REACHABLE .* STATUS +DRIFT/);
    expect(rows.map((row) => row.split(/ +/).slice(0, 2))).toEqual([
      ['first', 'node1'],
      ['second', 'node-two'],
    ]);
  });

  it('has the column NODE in every table of hosts', async () => {
    const header = async (...argv: readonly string[]): Promise<readonly string[]> => {
      const { stdout, stderr } = await runCommand(argv, { env });
      const line = stdout.split('\n').find((text) => /^(?:TIME +)?(?:HOSTS?|NAME) /.test(text));
      return (line ?? `none: ${stdout}${stderr}`).split(/ {2,}/).filter((column) => ['HOST', 'HOSTS', 'NAME', 'NODE'].includes(column));
    };
    const hosts = ['--host', 'first', '--host', 'node-two'];
    expect(await header('certs', 'check', ...hosts, '--fleet', file)).toEqual(['HOST', 'NODE']);
    expect(await header('certs', 'check', '--host', 'node1', '--ssh-config', lab.sshConfig)).toEqual(['HOST']);
    expect(await header('fleet', 'history', '-f', file)).toEqual(['HOST', 'NODE']);
    expect(await header('fleet', 'trust', '-f', file, '--dry-run')).toEqual(['HOST', 'NODE']);
    expect(await header('fleet', 'inventory', '-f', file)).toEqual(['NAME', 'NODE']);
    const config = join(lab.hosts[0]?.rootDir ?? '', 'var/lib/kubelet/config.yaml');
    const before = readFileSync(config, 'utf8');
    writeFileSync(config, `${before}maxPods: 33\n`);
    expect(await header('fleet', 'drift', '-f', file)).toEqual(['HOSTS', 'NODE']);
    writeFileSync(config, before);
    const other = join(directory, 'other.yaml');
    writeFileSync(
      other,
      readFileSync(file, 'utf8').replace('hosts:', 'hosts:\n  - {name: gone, address: node8.invalid, nodeName: node-gone}'),
    );
    const { stderr } = await runCommand(['apply', '--yes', '-f', other], { env });
    expect(stderr).toMatch(/^unreachable: gone \(Node node-gone\)$/m);
  });

  it('selects hosts by their Nodes', async () => {
    expect(firstColumn(await run('fleet', 'status', '--limit', 'node1'))).toEqual(['first']);
    expect(firstColumn(await run('fleet', 'status', '--limit', '!node/node1'))).toEqual(['second']);
    expect((await run('plan', '--limit', 'node-two')).stdout).toContain('1 host: 1 unchanged');
    expect((await run('fleet', 'history', 'node1', '-o', 'json')).stdout).toContain('"first"');
    expect(await run('fleet', 'status', '--limit', 'node9')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has no host node9, and no host has registered a Node of this name'),
    });
    expect(firstColumn(await run('fleet', 'status', '--limit', 'node/node-two,host/first'))).toEqual(['first', 'second']);
    // A host without nodeName is that of the Node of the same name; a host with nodeName is not.
    expect((await run('plan', '--limit', 'node/first')).stdout).toContain('1 host: 1 unchanged');
    expect(await run('plan', '--limit', 'node/second')).toMatchObject({ code: 2 });
  });

  it('changes no host that only claims to be a Node', async () => {
    for (const command of ['apply --yes', 'plan', 'fleet reset --yes', 'fleet exec']) {
      const rest = command.endsWith('exec') ? ['--', 'true'] : [];
      const refused = await runCommand([...command.split(' '), '-f', file, '--limit', 'node1', ...rest], { env });
      expect(refused, command).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('--limit node1: no host, group or nodeName matches'),
      });
    }
    expect(await run('fleet', 'revert', 'node1')).toMatchObject({ code: 2, stderr: expect.stringContaining('no host or nodeName node1') });
    const reverted = await run('fleet', 'revert', 'first', '-o', 'json');
    expect(JSON.parse(reverted.stdout)).toMatchObject({ kind: 'FinishedChanges', hosts: [{ host: 'first', result: 'none' }] });
    expect(firstColumn(await dynamic('status', '--limit', 'first'))).toEqual(['node1']);
    for (const command of ['assign', 'reset'])
      expect(await dynamic(command, 'first', ...(command === 'assign' ? ['--file', file] : []), '--dry-run')).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/sets no nodeName for first, and no Node has the name of the host.*Set nodeName/),
      });
  });

  it('asks no host about a typo, and names the hosts that it cannot ask', async () => {
    const other = join(directory, 'other.yaml');
    writeFileSync(other, readFileSync(file, 'utf8').replace('hosts:', 'hosts:\n  - {name: gone, address: node8.invalid}'));
    const status = (limit: string): Promise<CliResult> => runCommand(['fleet', 'status', '-f', other, '--limit', limit], { env });
    expect(await status('frist')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Did you mean first? To ask the hosts: node/frist'),
    });
    expect(await status('node/frist')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no host frist.*; not asked: gone \(HOST_[A-Z_]+\)/),
    });
  });

  it('selects no host of a Node that two hosts claim', async () => {
    for (const path of ['etc/kubernetes', 'var/lib/kubelet/pki'])
      cpSync(join(lab.hosts[0]?.rootDir ?? '', path), join(lab.hosts[2]?.rootDir ?? '', path), { recursive: true, verbatimSymlinks: true });
    const other = join(directory, 'other.yaml');
    const withCopy = (): string => readFileSync(file, 'utf8').replace('hosts:', `hosts:\n  - {name: copy, address: node3}`);
    const status = (limit: string): Promise<CliResult> => runCommand(['fleet', 'status', '-f', other, '--limit', limit], { env });
    writeFileSync(other, withCopy());
    expect(await status('node1')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/the hosts copy and first have certificates of the same Node node1/),
    });
    // The declared name wins.
    writeFileSync(other, withCopy().replace('address: node1', 'address: node1, nodeName: node1'));
    expect(firstColumn(await status('node1'))).toEqual(['first']);
  });

  it('finds Nodes by their hosts', async () => {
    expect(firstColumn(await dynamic('status', 'first', 'second', 'node1'))).toEqual(['node1', 'node-two']);
    expect(firstColumn(await dynamic('status', '--limit', 'first'))).toEqual(['node1']);
    const payload = join(directory, 'payload.yaml');
    writeFileSync(payload, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\nmaxPods: 77\n');
    const assigned = await dynamic('assign', 'second', '--file', payload, '--dry-run', '--force');
    expect(assigned.stdout + assigned.stderr).toContain('node-two');
    expect(assigned.stdout + assigned.stderr).not.toContain('no Node');
    expect(await dynamic('status', 'third')).toMatchObject({ stderr: expect.stringContaining('third') });
  });

  it('shows which side of a drift changed', async () => {
    const fleetWith = (maxPods: number): string =>
      `${readFileSync(file, 'utf8').replace(/^baseline.*\n/m, '')}baseline: {kubeletConfiguration: {maxPods: ${maxPods}}}\n`;
    writeFileSync(file, fleetWith(60));
    expect(await run('apply', '--yes')).toMatchObject({ code: 0 });
    const config = join(lab.hosts[0]?.rootDir ?? '', 'var/lib/kubelet/config.yaml');
    writeFileSync(config, readFileSync(config, 'utf8').replace('maxPods: 60', 'maxPods: 61'));
    const drift = async (): Promise<readonly string[]> =>
      (await run('fleet', 'drift')).stdout.split('\n').filter((line) => line.includes('maxPods'));
    expect(await drift()).toEqual([expect.stringMatching(/^first .* maxPods: wanted 60, on disk 61, running \d+; the host changed$/)]);
    writeFileSync(file, fleetWith(70));
    expect(await drift()).toEqual([
      expect.stringMatching(/^first .* maxPods: wanted 70, on disk 61, running \d+; the fleet file and host changed$/),
      expect.stringMatching(/^second .* maxPods: wanted 70, on disk 60; the fleet file changed$/),
    ]);
    const { hosts } = JSON.parse((await run('fleet', 'drift', '-o', 'json')).stdout) as { hosts: { drift: { field?: object }[] }[] };
    expect(hosts[1]?.drift.flatMap(({ field }) => field ?? [])).toEqual([
      { field: 'maxPods', wanted: 70, onDisk: 60, changed: 'fleet file' },
    ]);
  });

  it('names the layer of the fleet file that sets a field', async () => {
    const line =
      readFileSync(file, 'utf8')
        .split('\n')
        .findIndex((text) => text.startsWith('baseline')) + 1;
    const maxPods = async (host: string): Promise<string> => (await run('node', 'explain', host, 'maxPods')).stdout;
    expect(await maxPods('second')).toMatch(new RegExp(`config\\.yaml:\\d+; baseline, .*fleet\\.yaml:${line} declares 70`));
    expect(await run('apply', '--yes')).toMatchObject({ code: 0 });
    expect(await maxPods('node1')).toMatch(new RegExp(`^maxPods +70 .*config\\.yaml:\\d+; baseline, .*fleet\\.yaml:${line}$`, 'm'));
    expect(await run('node', 'explain', 'third')).toMatchObject({ code: 2, stderr: expect.stringContaining('has no host third') });
  });

  it('compares the configuration on a host with the fleet file', async () => {
    const diff = (...argv: readonly string[]): Promise<CliResult> => runCommand(['config', 'diff', ...argv, '--fleet', file], { env });
    expect(await diff('host/first', 'fleet/first', '--exit-code')).toMatchObject({ code: 0 });
    const applied = readFileSync(file, 'utf8');
    writeFileSync(file, applied.replace('maxPods: 70', 'maxPods: 72, syncFrequency: 120s'));
    const fields = async (...argv: readonly string[]): Promise<unknown> => {
      const { stdout, stderr } = await diff(...argv, '-o', 'json');
      expect(stderr).toBe('');
      const { differences } = JSON.parse(stdout) as { differences: { path: string; before: object; after: object }[] };
      return differences.map(({ path, before, after }) => [path, before, after]);
    };
    const [on, wanted] = [expect.objectContaining({ value: 70 }), expect.objectContaining({ value: 72 })];
    const [short, long] = [expect.objectContaining({ value: '1m0s' }), expect.objectContaining({ value: '2m0s' })];
    expect(await fields('host/first', 'fleet/node1')).toEqual([
      ['maxPods', on, wanted],
      ['syncFrequency', short, long],
    ]);
    expect(await fields('fleet/second', 'host/node-two')).toEqual([
      ['maxPods', wanted, on],
      ['syncFrequency', long, short],
    ]);
    // Detected on the hosts, not declared.
    expect(await fields('fleet/first', 'fleet/second')).toEqual([['resolvConf', expect.anything(), expect.anything()]]);
    const other = join(directory, 'payload.yaml');
    writeFileSync(other, 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 73\n');
    expect(await fields('fleet/first', other)).toContainEqual(['maxPods', wanted, expect.objectContaining({ value: 73 })]);
    expect(await diff('fleet/third', other)).toMatchObject({ code: 2, stderr: expect.stringContaining('has no host third') });
    expect(await runCommand(['config', 'diff', 'fleet/first', other], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('fleet/first: fleet.yaml does not exist, or has no host first'),
    });
    writeFileSync(file, applied);
  });

  it('shows no HTTP headers and no password of a URL', async () => {
    const fleetWith = (secret: string): string =>
      readFileSync(file, 'utf8').replace(
        /^baseline.*$/m,
        `baseline: {kubeletConfiguration: {staticPodURL: 'https://user:${secret}@127.0.0.1:9/', staticPodURLHeader: {Authorization: [${secret}]}}}`,
      );
    writeFileSync(file, fleetWith('hunter2'));
    const texts = [await run('apply', '--yes', '--allow', 'unsafe')];
    expect(texts[0]?.code, texts[0]?.stderr).toBe(0);
    writeFileSync(file, fleetWith('hunter3'));
    // A plan as JSON is a saved plan, which contains all settings of the hosts.
    const commands = ['fleet drift', 'fleet drift -o json', 'plan', 'node explain first', 'node explain second -o json', 'fleet history'];
    for (const command of commands) texts.push(await run(...command.split(' ')));
    for (const format of ['text', 'json'])
      texts.push(await runCommand(['config', 'diff', 'host/first', 'fleet/first', '--fleet', file, '-o', format], { env }));
    for (const { stdout, stderr } of texts) {
      expect(stdout + stderr).toMatch(/staticPodURL|HOST|first/);
      expect(stdout + stderr).not.toContain('hunter');
    }
  });
});
