import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { startFirstNode } from '../support/first-node.ts';
import { joinArguments } from '../support/join-arguments.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

describe('a host after reset', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  let fleet: string;
  const run = (...argv: readonly string[]) =>
    runCommand([...argv, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') } });
  const reset = async (): Promise<void> => {
    const { code, stderr } = await run('reset', '--host', 'node2', '--force');
    expect(code, stderr).toBe(0);
    // The API server has not noticed yet that the kubelet is gone.
    const node = await admin.get({ apiVersion: 'v1', kind: 'Node', name: 'node2' });
    expect(node?.status).toMatchObject({
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Ready', status: 'True' })]),
    });
  };
  const apply = () => run('apply', '-y', '-f', fleet);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-rejoin-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    fleet = join(directory, 'fleet.yaml');
    writeFileSync(
      fleet,
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\nhosts: [{name: node2, labels: {pool: edge}}]\n`,
    );
    await startFirstNode(lab);
    expect((await apply()).code).toBe(0);
    await untilTrue(async () => (await admin.get({ apiVersion: 'v1', kind: 'Node', name: 'node2' })) !== null);
  });
  afterAll(async () => {
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is applied again at once, because its machine-id is that of the Node, whose Lease is no longer renewed', async () => {
    await reset();
    const { code, stderr, stdout } = await apply();
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('1 host: 1 changed.');
  });

  it('joins again at once', async () => {
    await reset();
    const { code, stderr } = await runCommand([...joinArguments(lab, 'node2'), '--kubeconfig', lab.kubeconfig]);
    expect(code, stderr).toBe(0);
  });

  it('reports no join as kubeadm if nothing was changed', async () => {
    const { code, stdout, stderr } = await runCommand(joinArguments(lab, 'node2'), { env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' } });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('Nothing to do.');
    expect(stdout).toBe('');
  });

  it('is refused if another machine renews the Lease of the Node', async () => {
    await reset();
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'kube-node-lease', name: 'node2' };
    const renewal = setInterval(() => {
      void admin.patch(lease, 'merge', { spec: { renewTime: new Date().toISOString().replace('Z', '000Z') } }).catch(() => {});
    }, 500);
    const { code, stderr } = await apply();
    clearInterval(renewal);
    expect(code).toBe(3);
    expect(stderr).toContain('it has just renewed the Lease kube-node-lease/node2');
    expect((await apply()).code).toBe(0);
  });

  it('is refused if it is another machine of the same name; the hint names what apply has', async () => {
    await reset();
    writeFileSync(join(lab.hosts[1]?.rootDir ?? '', 'etc/machine-id'), `${'ab'.repeat(16)}\n`);
    const { code, stderr } = await apply();
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /Node node2 already exists and is Ready.*belongs to another host: its machine-id is \S+, but the machine-id of this host is abab/,
    );
    expect(stderr).toContain('nodeName');
    expect(stderr).not.toContain('--node-name');
    const joined = await runCommand(joinArguments(lab, 'node2'));
    expect(joined.code).toBe(3);
    expect(joined.stderr).toContain('--node-name');
  });
});
