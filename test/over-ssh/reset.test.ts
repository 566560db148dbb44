import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
import { readTree } from '../support/tree.ts';
import { untilTrue } from '../support/until-true.ts';

describe('reset', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  const shared = (): string[] => ['--ssh-config', lab.sshConfig];
  const join2 = () => runCommand(joinArguments(lab, 'node2'));
  const reset = (...args: string[]) => runCommand(['reset', '--host', 'node2', '--force', ...shared(), ...args]);
  const node = () => admin.get({ apiVersion: 'v1', kind: 'Node', name: 'node2' });
  const tree = () => readTree(lab.hosts[1]?.rootDir ?? '', (path) => path);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-reset-'));
    lab = await startLab({ directory, hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    await startFirstNode(lab);
    expect((await join2()).code).toBe(0);
    await untilTrue(async () => (await node()) !== null);
  });
  afterAll(async () => {
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('checks everything before it stops anything: credentials that may not delete Nodes are rejected', async () => {
    const before = tree();
    const own = join(directory, 'node2.conf');
    const kubeconfig = readFileSync(join(lab.hosts[1]?.rootDir ?? '', 'etc/kubernetes/kubelet.conf'), 'utf8');
    writeFileSync(own, kubeconfig.replaceAll('/var/lib/kubelet', join(lab.hosts[1]?.rootDir ?? '', 'var/lib/kubelet')), { mode: 0o600 });
    const { code, stderr } = await reset('--delete-node', '--kubeconfig', own);
    expect(code, stderr).toBe(3);
    expect(stderr).toContain('node2: preflight: the credentials are not allowed to delete Node node2');
    expect(tree()).toEqual(before);
  });

  describe('while containers run that it cannot remove', () => {
    const cgroups = (): string => join(lab.hosts[1]?.rootDir ?? '', 'sys/fs/cgroup');
    const scope = 'kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice/crio-1.scope';
    beforeAll(() => {
      mkdirSync(join(cgroups(), scope), { recursive: true });
      writeFileSync(join(cgroups(), 'cgroup.controllers'), 'cpu\n');
      writeFileSync(join(cgroups(), scope, 'cgroup.procs'), '11\n12\n');
    });
    afterAll(() => rmSync(cgroups(), { recursive: true, force: true }));

    it('is rejected before any change', async () => {
      const before = tree();
      const { code, stderr } = await reset();
      expect(code, stderr).toBe(3);
      expect(stderr).toMatch(
        /node2: preflight: 2 pod processes are running on the host, but (?:unix:\S+ lists no pods|neither crictl nor ctr)/,
      );
      expect(stderr).toContain('--ignore-preflight-errors=ContainersRunning');
      expect(stderr).toContain('[ContainersRunning]');
      expect(tree()).toEqual(before);
    });

    it("continues with the operator's consent", async () => {
      const { code, stderr, stdout } = await reset('--ignore-preflight-errors', 'ContainersRunning', '--dry-run');
      expect(code, stderr).toBe(0);
      expect(stderr).toContain('2 pod processes are running on the host');
      expect(stdout).toContain('empty directory /var/lib/kubelet');
    });
  });

  it('shows the planned changes', async () => {
    const { code, stdout, stderr } = await reset('--delete-node', '--kubeconfig', lab.kubeconfig, '--dry-run');
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain('controller');
    expect(stdout).toContain('- Node node2: --delete-node was given');
    expect(stdout).toContain('- /etc/kubernetes/kubelet.conf: ');
    expect(await node()).not.toBeNull();
  });

  it('removes the files of join, deletes the Node and reports the remaining steps', async () => {
    const { code, stderr } = await reset('--delete-node', '--kubeconfig', lab.kubeconfig);
    expect(code, stderr).toBe(0);
    expect(await node()).toBeNull();
    expect(Object.keys(tree()).filter((path) => /^(var\/lib\/kubelet|etc\/kubernetes)\//.test(path))).toEqual([]);
    expect(stderr).toContain('[leftovers] left on the host: /etc/systemd/system/kubelet.service.d (10-kubeadm.conf); to remove: rm -r');
    expect(stderr.indexOf('deleted Node node2')).toBeLessThan(stderr.indexOf('emptied /var/lib/kubelet'));
  });

  it('changes nothing a second time', async () => {
    const { code, stdout } = await reset('--delete-node', '--kubeconfig', lab.kubeconfig);
    expect([code, stdout]).toEqual([0, 'Nothing to do.\n']);
  });

  it('allows another join', async () => {
    const { code, stderr } = await join2();
    expect(code, stderr).toBe(0);
    await expect.poll(node, { timeout: 10_000 }).not.toBeNull();
    expect((await reset()).code).toBe(0);
    expect(await node()).not.toBeNull();
  });

  it('rejects --node-name without --delete-node', async () => {
    const { code, stderr } = await reset('--node-name', 'x');
    expect(code).toBe(2);
    expect(stderr).toContain('--node-name requires --delete-node');
  });
});
