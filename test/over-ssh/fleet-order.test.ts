import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { changedHosts, type FleetLab, startFleetLab } from '../support/fleet-lab.ts';
import { runCommand } from '../support/run-cli.ts';

const HOSTS = ['node2', 'node3', 'node4', 'node5'];
const RULES = ['--canary', 'pool=edge', '--order', 'zone'];
const ORDER = ['node4', 'node3', 'node5', 'node2'];

function host(name: string, zone: string, more = ''): string {
  return `{name: ${name}, labels: {topology.kubernetes.io/zone: ${zone}${more}}}`;
}

describe('the order of a run by zone, with a canary by label', { timeout: 180_000 }, () => {
  let world: FleetLab;
  const fleet: FleetLab['fleet'] = (...members) => world.fleet(...members);
  const run: FleetLab['run'] = (...argv) => world.run(...argv);
  beforeAll(async () => {
    const hosts = [host('node2', 'b'), host('node4', 'b', ', pool: edge'), host('node3', 'a'), host('node5', 'a')];
    world = await startFleetLab(5, `hosts: [${hosts.join(', ')}]`);
  });
  afterAll(() => world?.close());

  it('is the same in the plan, the saved plan, the run and the report of apply', async () => {
    const [plan, report] = [join(world.directory, 'plan.json'), join(world.directory, 'report.html')];
    const planned = await run('plan', '-f', fleet(), ...RULES, '--out', plan);
    expect(planned.stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    expect(JSON.parse(readFileSync(plan, 'utf8'))).toMatchObject({
      canary: ['node4'],
      order: 'zone',
      batches: [['node4'], ['node3', 'node5'], ['node2']],
    });
    expect((await runCommand(['plan', 'show', plan])).stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    expect(changedHosts(await run('apply', plan, '--max-unavailable', '1', '--report', report))).toEqual(ORDER);
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
    expect(changedHosts(await run('apply', '-y', '-f', fleet(), ...RULES, '--max-unavailable', '1'))).toEqual(ORDER);
    const spread = await run('apply', '-y', '-f', fleet(), '--order', 'spread', '--max-unavailable', '1', '--canary', '0');
    expect(changedHosts(spread)).toEqual(['node2', 'node3', 'node4', 'node5']);
  });

  it('is the same in the dry run and the run of upgrade node', async () => {
    const hosts = HOSTS.flatMap((host) => ['--host', host]);
    const upgrade = [
      'upgrade',
      'node',
      ...hosts,
      '--fleet',
      fleet(),
      '--kubeconfig',
      world.lab.kubeconfig,
      '--set',
      'maxPods=77',
      ...RULES,
    ];
    const planned = await run(...upgrade, '--dry-run');
    expect(planned.stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    const { batches } = JSON.parse((await run(...upgrade, '--dry-run', '-o', 'json')).stdout);
    expect(batches).toEqual([['node4'], ['node3', 'node5'], ['node2']]);
    expect(changedHosts(await run(...upgrade, '--max-unavailable', '1'))).toEqual(ORDER);
  });

  it('has existing control planes last, also if their Nodes have other names than their hosts', async () => {
    const first = world.lab.hosts[0]?.rootDir ?? '';
    mkdirSync(join(first, 'etc/kubernetes/manifests'), { recursive: true });
    writeFileSync(join(first, 'etc/kubernetes/manifests/kube-apiserver.yaml'), 'apiVersion: v1\nkind: Pod\n');
    const cluster = kubeCluster({ kubeconfig: { path: world.lab.kubeconfig } });
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'node1' }, 'merge', { metadata: { labels } });
    await cluster.close();
    const file = fleet('hosts: [{name: first, address: node1, role: control-plane}, {name: node2}, {name: node3}]');
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
