import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { CONFIG_STATUS_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { changedHosts, type FleetLab, startFleetLab } from '../support/fleet-lab.ts';
import { runCommand } from '../support/run-cli.ts';
import { reportTrials } from '../support/stand-in-reports.ts';

const HOSTS = ['node2', 'node3', 'node4', 'node5'];
const RULES = ['--canary', 'pool=edge', '--order', 'zone'];
const ORDER = ['node4', 'node3', 'node5', 'node2'];

function host(name: string, zone: string, more = ''): string {
  return `{name: ${name}, labels: {topology.kubernetes.io/zone: ${zone}${more}}}`;
}

/** One node in each batch. */
function plannedOrder(text: string): readonly string[] {
  const { batches, cluster } = JSON.parse(text) as {
    batches?: readonly (readonly string[])[];
    cluster?: { changes?: readonly AssignedNode[] };
  };
  if (batches !== undefined) return batches.flat();
  const nodes = (cluster?.changes ?? []).filter(({ object }) => object.kind === 'Node');
  return nodes.toSorted((a, b) => (a.reason < b.reason ? -1 : 1)).map(({ object }) => object.metadata.name);
}

interface AssignedNode {
  /** `batch 1, canary: …`. */
  readonly reason: string;
  readonly object: { readonly kind: string; readonly metadata: { readonly name: string } };
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

  describe.each(['apply', 'upgrade node', 'dynamic assign'] as const)('of %s', (command) => {
    const stop = new AbortController();
    let reporting: Promise<void> = Promise.resolve();
    let admin: Cluster;
    beforeAll(async () => {
      admin = kubeCluster({ kubeconfig: { path: world.lab.kubeconfig } });
      if (command !== 'dynamic assign') return;
      for (const name of HOSTS)
        await admin.patch({ apiVersion: 'v1', kind: 'Node', name }, 'merge', {
          metadata: { annotations: { [CONFIG_STATUS_ANNOTATION]: '{}' } },
        });
      reporting = reportTrials(admin, stop.signal);
    });
    afterAll(async () => {
      stop.abort();
      await reporting;
      await admin?.close();
    });

    it('is the same in the plan, the run and the report', async () => {
      const [file, report] = [join(world.directory, 'kubelet.yaml'), join(world.directory, 'report.html')];
      writeFileSync(file, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\nmaxPods: 99\n');
      const access = ['--kubeconfig', world.lab.kubeconfig];
      const targets = HOSTS.flatMap((name) => ['--host', name]);
      const argv = {
        apply: ['apply', '-y', '-f', fleet()],
        'upgrade node': ['upgrade', 'node', ...targets, '--fleet', fleet(), '--set', 'maxPods=88', ...access],
        'dynamic assign': ['dynamic', 'assign', ...HOSTS, '--file', file, '--min-ready', '0s', ...access],
      }[command];
      const rules = [...RULES, '--max-unavailable', '1'];
      const perform = command === 'dynamic assign' ? (...words: readonly string[]) => runCommand(words) : run;
      const { stdout } = await (command === 'apply'
        ? perform('plan', '-f', fleet(), ...rules, '-o', 'json')
        : perform(...argv, ...rules, '--dry-run', '-o', 'json'));
      expect(plannedOrder(stdout)).toEqual(ORDER);
      if (command === 'upgrade node')
        expect((await perform(...argv, ...rules, '--dry-run')).stdout).toContain(
          '\norder: node4 (canary), then node3, then node5, then node2\n',
        );
      const { code, stderr } = await perform(...argv, ...rules, '--report', report);
      expect([code, [...stderr.matchAll(/^(node[0-9]) changed/gm)].map(([, name]) => name)]).toEqual([0, ORDER]);
      const cells = [...readFileSync(report, 'utf8').matchAll(/"(node[0-9]): changed, (canary|batch [0-9])/g)];
      expect(cells.map(([, name, batch]) => `${batch}: ${name}`).sort()).toEqual([
        'batch 2: node3',
        'batch 3: node5',
        'batch 4: node2',
        'canary: node4',
      ]);
    });
  });

  it('is that of the saved plan', async () => {
    const plan = join(world.directory, 'plan.json');
    const planned = await run('plan', '-f', fleet(), ...RULES, '--out', plan);
    expect(planned.stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    expect(JSON.parse(readFileSync(plan, 'utf8'))).toMatchObject({
      canary: ['node4'],
      order: 'zone',
      batches: [['node4'], ['node3', 'node5'], ['node2']],
    });
    expect((await runCommand(['plan', 'show', plan])).stdout).toContain('\norder: node4 (canary), then node3, node5, then node2\n');
    expect(changedHosts(await run('apply', plan, '--max-unavailable', '1'))).toEqual(ORDER);
  });

  it('is that of the command line in apply of a fleet file', async () => {
    expect(changedHosts(await run('apply', '-y', '-f', fleet(), ...RULES, '--max-unavailable', '1'))).toEqual(ORDER);
    const spread = await run('apply', '-y', '-f', fleet(), '--order', 'spread', '--max-unavailable', '1', '--canary', '0');
    expect(changedHosts(spread)).toEqual(['node2', 'node3', 'node4', 'node5']);
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
