import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CORDON_ANNOTATION, isCordoned } from '../../src/maintenance/node-hold.ts';
import { drainBudget, drainPod } from '../support/drain-objects.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('apply of a change that needs a drained node', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let cluster: Cluster;

  const run = (fields: string, ...words: readonly string[]): Promise<CliResult> => {
    const file = join(directory, 'fleet.yaml');
    const baseline = `baseline: {kubeletConfiguration: {${fields}}}\n`;
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n${baseline}hosts: [{name: node2}, {name: node3}]\n`,
    );
    const [command = '', ...rest] = words;
    return runCommand([command, '-f', file, '--ssh-config', lab.sshConfig, ...rest], { env: { XDG_STATE_HOME: join(directory, 'state') } });
  };
  const apply = (fields: string, ...words: readonly string[]) =>
    run(fields, 'apply', '--yes', '--canary', '0', '--max-unavailable', '1', ...words);
  const pods = async (): Promise<readonly string[]> =>
    (await cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'default' })).items.map(({ metadata }) => metadata.name);
  const expectServing = async (): Promise<void> => {
    for (const name of ['node2', 'node3']) {
      const node = (await cluster.get({ apiVersion: 'v1', kind: 'Node', name })) as KubeObject;
      expect([isCordoned(node), node.metadata.annotations?.[CORDON_ANNOTATION]]).toEqual([false, undefined]);
      expect(JSON.stringify(node.status)).not.toMatch(/Drained|Maintenance/);
    }
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-fleet-drain-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
    cluster = kubeCluster({ kubeconfig: { path: lab.kubeconfig } });
    const joined = await apply('maxPods: 50');
    expect([joined.code, joined.stderr]).toEqual([0, expect.anything()]);
    await cluster.create(drainPod('web-0', 'node2'));
  });
  afterAll(async () => {
    await cluster?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is not refused for pods that the drain evicts, but for those that stay', async () => {
    const plan = async (...options: readonly string[]): Promise<CliResult> =>
      run('maxPods: 1, topologyManagerScope: pod', 'plan', '--allow', 'drain', '--limit', 'node2', ...options);
    await cluster.create(drainPod('web-1', 'node2'));
    expect((await plan()).stderr).not.toContain('PODS_AT_RISK');
    const refused = expect.stringMatching(
      /maxPods 1 is less than the 2 pods of the node: default\/\S+ would be terminated .*\[PODS_AT_RISK\]/,
    );
    expect((await plan('--no-drain')).stderr).toEqual(refused);
    const proxies = ['proxy-1', 'proxy-2'];
    for (const name of proxies) await cluster.create(drainPod(name, 'node2', { of: 'DaemonSet/proxy', app: 'proxy' }));
    expect((await plan()).stderr).toEqual(refused);
    for (const name of ['web-1', ...proxies]) await cluster.delete({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name });
  });

  it('is refused with --no-drain while pods are on the node, and foretold by the plan if a budget never allows it', async () => {
    const refused = await apply('maxPods: 50, topologyManagerScope: pod', '--allow', 'drain', '--no-drain', '--limit', 'node2');
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('[NODE_NOT_DRAINED]')]);
    await cluster.create(drainBudget('pdb', 'web', { minAvailable: 1 }));
    const planned = await run('maxPods: 50, topologyManagerScope: pod', 'plan', '--allow', 'drain', '--limit', 'node2');
    expect([planned.code, `${planned.stdout}${planned.stderr}`]).toEqual([
      0,
      expect.stringContaining('PodDisruptionBudget default/pdb never allows an eviction'),
    ]);
    const blocked = await apply('maxPods: 50, topologyManagerScope: pod', '--allow', 'drain', '--limit', 'node2');
    expect([blocked.code, blocked.stderr]).toEqual([3, expect.stringContaining('[DRAIN_BLOCKED]')]);
    expect(await pods()).toEqual(['web-0']);
    await cluster.delete({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace: 'default', name: 'pdb' });
    await expectServing();
  });

  it('is forecast in the documents of plans as by drain --dry-run, and first in the report', async () => {
    await cluster.create(drainBudget('pdb', 'web', { minAvailable: 1 }));
    const own = ['--kubeconfig', lab.kubeconfig, '--dry-run', '-o', 'json'];
    const drain = await runCommand(['drain', 'node2', '--ignore-daemonsets', ...own]);
    const expected = JSON.parse(drain.stdout);
    expect(expected).toMatchObject({ kind: 'DrainForecast', nodes: [{ node: 'node2', state: 'blocked', held: null }], atOnce: 1 });
    const report = join(directory, 'plan.html');
    const words = ['--allow', 'drain', '--limit', 'node2', '-o', 'json', '--report', report];
    const planned = await run('maxPods: 50, topologyManagerScope: pod', 'plan', ...words);
    expect(JSON.parse(planned.stdout).drainForecast).toEqual(expected);
    const [, problem = ''] = /id="problems".*?<tr data-row>(.*?)<\/tr>/s.exec(readFileSync(report, 'utf8')) ?? [];
    for (const text of ['node2', 'cannot drain: PodDisruptionBudget default/pdb never allows an eviction', 'Scale up'])
      expect(problem).toContain(text);
    const target = ['--host', 'node2', '--ssh-config', lab.sshConfig, '--set', 'topologyManagerScope=pod', '--allow', 'drain'];
    const upgraded = await runCommand(['upgrade', 'node', ...target, ...own]);
    expect(JSON.parse(upgraded.stdout).drainForecast).toEqual(expected);
    const unchanged = await run('maxPods: 50', 'plan', ...words);
    expect(JSON.parse(unchanged.stdout)).not.toHaveProperty('drainForecast');
    await cluster.delete({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace: 'default', name: 'pdb' });
  });

  it('drains the nodes one after the other, and returns them to service', async () => {
    const cordons: string[] = [];
    const planned = new Set<string>();
    const watching = new AbortController();
    const watched = (async () => {
      for await (const { object } of cluster.watch({ apiVersion: 'v1', kind: 'Node' }, { signal: watching.signal }))
        if (isCordoned(object) && cordons.at(-1) !== object.metadata.name) cordons.push(object.metadata.name);
        else if (JSON.stringify(object.status).includes('MaintenancePlanned')) planned.add(object.metadata.name);
    })();
    const { code, stderr } = await apply('maxPods: 50, topologyManagerScope: pod', '--allow', 'drain');
    watching.abort();
    await watched;
    expect([code, stderr]).toEqual([0, expect.anything()]);
    expect(cordons).toEqual(['node2', 'node3']);
    expect(planned).toEqual(new Set(cordons));
    expect(await pods()).toEqual([]);
    await expectServing();
  });

  it('marks all nodes as planned when the operator has approved the plan', async () => {
    let plannedAtFirst: readonly string[] | null = null;
    const planned = new Set<string>();
    const watching = new AbortController();
    const watched = (async () => {
      for await (const { object } of cluster.watch({ apiVersion: 'v1', kind: 'Node' }, { signal: watching.signal })) {
        if (isCordoned(object)) plannedAtFirst ??= [...planned].sort();
        else if (JSON.stringify(object.status).includes('MaintenancePlanned')) planned.add(object.metadata.name);
      }
    })();
    const file = join(directory, 'fleet.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('topologyManagerScope: pod', 'topologyManagerScope: container'));
    const words = ['-f', file, '--ssh-config', lab.sshConfig, '--canary', '0', '--max-unavailable', '1', '--allow', 'drain'];
    const { code, stderr } = await runCommand(['apply', ...words, '--parallel', '1'], {
      env: { XDG_STATE_HOME: join(directory, 'state') },
      services: () => ({ canAsk: true, confirm: async () => true }),
    });
    watching.abort();
    await watched;
    expect([code, stderr]).toEqual([0, expect.anything()]);
    expect(plannedAtFirst).toEqual(['node2', 'node3']);
    await expectServing();
    expect((await apply('maxPods: 50, topologyManagerScope: pod', '--allow', 'drain')).code).toBe(0);
  });

  it('warns of a node that a killed run left cordoned, also if the node needs no change', async () => {
    const owner = {
      run: 'killed',
      operator: 'ann',
      since: '2026-01-01T00:00:00Z',
      renewed: '2026-01-01T00:00:00Z',
      process: 1,
      machine: 'm',
    };
    const node = { apiVersion: 'v1', kind: 'Node', name: 'node3' };
    const hold = { metadata: { annotations: { [CORDON_ANNOTATION]: JSON.stringify(owner) } }, spec: { unschedulable: true } };
    await cluster.patch(node, 'merge', hold);
    const { code, stderr } = await apply('maxPods: 50, topologyManagerScope: pod', '--allow', 'drain');
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^node3 warning: .*earlier run.*kubeletadm uncordon node3.*\[NODE_LEFT_CORDONED\]$/m),
    ]);
    expect(stderr).not.toMatch(/node2.*NODE_LEFT_CORDONED/);
    await cluster.patch(node, 'merge', { metadata: { annotations: { [CORDON_ANNOTATION]: null } }, spec: { unschedulable: null } });
    await expectServing();
  });

  it('skips a node in the maintenance of others, and changes the others', async () => {
    const condition = { type: 'MaintenanceInProgress', status: 'True', reason: 'AdminRequested', message: 'firmware' };
    const node = { apiVersion: 'v1', kind: 'Node', name: 'node2' };
    await cluster.patch(node, 'strategic', { status: { conditions: [condition] } }, { subresource: 'status' });
    const { code, stdout, stderr } = await apply('maxPods: 50, topologyManagerScope: container', '--allow', 'drain');
    expect([code, stderr]).toEqual([0, expect.stringContaining('MaintenanceInProgress is True (AdminRequested: firmware)')]);
    expect(`${stdout}${stderr}`).toContain('1 skipped');
    await cluster.patch(
      node,
      'strategic',
      { status: { conditions: [{ type: condition.type, $patch: 'delete' }] } },
      { subresource: 'status' },
    );
    await expectServing();
  });
});
