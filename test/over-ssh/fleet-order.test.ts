import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const HOSTS = ['node2', 'node3', 'node4', 'node5'];
const RULES = ['--canary', 'pool=edge', '--order', 'zone'];
const ORDER = ['node4', 'node3', 'node5', 'node2'];

describe('the order of a run by zone, with a canary by label', { timeout: 180_000 }, () => {
  let directory: string;
  let lab: Lab;
  let maxPods = 60;
  const fleet = (): string => {
    const file = join(directory, 'fleet.yaml');
    const host = (name: string, zone: string, more = ''): string =>
      `{name: ${name}, labels: {topology.kubernetes.io/zone: ${zone}${more}}}`;
    const hosts = [host('node2', 'b'), host('node4', 'b', ', pool: edge'), host('node3', 'a'), host('node5', 'a')];
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
baseline: {kubeletConfiguration: {maxPods: ${++maxPods}}}
hosts: [${hosts.join(', ')}]
`,
    );
    return file;
  };
  const run = (...argv: readonly string[]): Promise<CliResult> =>
    runCommand([...argv, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') } });
  /** The changed hosts, in the order of their lines. */
  const changed = ({ code, stderr }: CliResult): readonly string[] => {
    expect(code, stderr).toBe(0);
    return stderr.split('\n').flatMap((line) => /^(node[0-9]) changed: /.exec(line)?.[1] ?? []);
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-order-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 5 });
    await startFirstNode(lab);
    expect((await run('apply', '-y', '-f', fleet(), '--canary', '0')).code).toBe(0);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is the same in the plan, the saved plan, the run and the report of apply', async () => {
    const [plan, report] = [join(directory, 'plan.json'), join(directory, 'report.html')];
    const planned = await run('plan', '-f', fleet(), ...RULES, '--out', plan);
    expect(planned.stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    expect(JSON.parse(readFileSync(plan, 'utf8'))).toMatchObject({
      canary: ['node4'],
      order: 'zone',
      batches: [['node4'], ['node3', 'node5'], ['node2']],
    });
    expect((await runCommand(['plan', 'show', plan])).stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    expect(changed(await run('apply', plan, '--max-unavailable', '1', '--report', report))).toEqual(ORDER);
    const cells = [...readFileSync(report, 'utf8').matchAll(/(node[0-9]): changed, (canary|batch [0-9])/g)];
    expect(new Map(cells.map(([, name, batch]) => [batch, name]))).toEqual(
      new Map([
        ['canary', 'node4'],
        ['batch 2', 'node3'],
        ['batch 3', 'node5'],
        ['batch 4', 'node2'],
      ]),
    );
  });

  it('is that of the command line in apply of a fleet file', async () => {
    expect(changed(await run('apply', '-y', '-f', fleet(), ...RULES, '--max-unavailable', '1'))).toEqual(ORDER);
    const spread = await run('apply', '-y', '-f', fleet(), '--order', 'spread', '--max-unavailable', '1', '--canary', '0');
    expect(changed(spread)).toEqual(['node2', 'node3', 'node4', 'node5']);
  });

  it('is the same in the dry run and the run of upgrade node', async () => {
    const hosts = HOSTS.flatMap((host) => ['--host', host]);
    const upgrade = ['upgrade', 'node', ...hosts, '--fleet', fleet(), '--kubeconfig', lab.kubeconfig, '--set', 'maxPods=77', ...RULES];
    const planned = await run(...upgrade, '--dry-run');
    expect(planned.stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    const { batches } = JSON.parse((await run(...upgrade, '--dry-run', '-o', 'json')).stdout);
    expect(batches).toEqual([['node4'], ['node3', 'node5'], ['node2']]);
    expect(changed(await run(...upgrade, '--max-unavailable', '1'))).toEqual(ORDER);
  });

  it('has existing control planes last, also if their Nodes have other names than their hosts', async () => {
    const file = join(directory, 'names.yaml');
    const first = lab.hosts[0]?.rootDir ?? '';
    mkdirSync(join(first, 'etc/kubernetes/manifests'), { recursive: true });
    writeFileSync(join(first, 'etc/kubernetes/manifests/kube-apiserver.yaml'), 'apiVersion: v1\nkind: Pod\n');
    const cluster = kubeCluster({ kubeconfig: { path: lab.kubeconfig } });
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'node1' }, 'merge', { metadata: { labels } });
    await cluster.close();
    const write = (): void =>
      writeFileSync(
        file,
        `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
baseline: {kubeletConfiguration: {maxPods: ${++maxPods}}}
hosts: [{name: first, address: node1, role: control-plane}, {name: node2}, {name: node3}]
`,
      );
    write();
    expect((await run('plan', '-f', file)).stdout).toContain('\norder: node2 (canary), then node3, then first\n');
    const { code, stderr } = await run('apply', '-y', '-f', file, '--max-unavailable', '1', '-v', '1');
    expect([code, [...stderr.matchAll(/^(\S+) changed: /gm)].map(([, name]) => name)]).toEqual([0, ['node2', 'node3', 'first']]);
    expect(stderr).toContain('node1 the health of the other etcd members is not known');
  });

  it('is refused with a canary that is no host of the run', async () => {
    const { code, stderr } = await run('upgrade', 'node', '--host', 'node2', '--host', 'node3', '--fleet', fleet(), '--canary', 'pool=x');
    expect([code, stderr]).toEqual([2, expect.stringContaining('--canary pool=x: no host of the run has this name, Node, group or label')]);
  });
});
