import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { startFirstNode } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';

describe('the lab', () => {
  const top = mkdtempSync(join(tmpdir(), 'kubeletadm-lab-'));
  const labs: Lab[] = [];
  afterEach(async () => {
    for (const lab of labs.splice(0)) await lab.close();
    rmSync(top, { recursive: true, force: true });
  });

  const start = async (name: string): Promise<Lab> => {
    const lab = await startLab({ directory: join(top, name), hosts: 1 });
    labs.push(lab);
    return lab;
  };

  it('generates a new bootstrap token at every start, which only its API server has', async () => {
    const [a, b] = await Promise.all([start('a'), start('b')]);
    const tokens = [a, b].map(({ token }) => token.reveal());
    for (const token of tokens) expect(token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
    expect(tokens[0]).not.toBe(tokens[1]);
    expect(tokens).not.toContain('abcdef.0123456789abcdef');
    const cluster = kubeCluster({ kubeconfig: { text: readFileSync(a.kubeconfig, 'utf8'), file: a.kubeconfig } });
    try {
      const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system' });
      const ids = items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('bootstrap-token-'));
      expect(ids).toEqual([`bootstrap-token-${tokens[0]?.slice(0, 6)}`]);
    } finally {
      await cluster.close();
    }
  });

  it('refuses a join before cluster adopt, with the missing command', async () => {
    const lab = await start('early');
    const words = [lab.server.replace('https://', ''), '--token', lab.token.reveal(), '--ca-cert', lab.caFile];
    const { code, stderr } = await runCommand(['join', ...words, '--ssh-config', lab.sshConfig, '--host', 'node1']);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /kubelet-config.* is forbidden.*If neither kubeadm nor kubeletadm has initialized this cluster, run kubeletadm cluster adopt --kubeconfig admin\.conf first\..* \[CLUSTER_FORBIDDEN\]\n$/,
    );
  });

  it('a kubelet patches only its own conditions, and keeps the transition time of an unchanged one', async () => {
    const lab = await start('conditions');
    await startFirstNode(lab);
    const cluster = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    const node = { apiVersion: 'v1', kind: 'Node', name: 'node1' };
    type Condition = { readonly type: string; readonly lastHeartbeatTime: string; readonly lastTransitionTime: string };
    const read = async (type: string): Promise<Condition> => {
      const found = (await cluster.get(node)) as unknown as { status: { conditions: readonly Condition[] } };
      return found.status.conditions.find((one) => one.type === type) as Condition;
    };
    try {
      const [since, long] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'];
      const foreign = { type: 'Foreign', status: 'True', lastHeartbeatTime: since, lastTransitionTime: since };
      const conditions = [foreign, { ...(await read('Ready')), lastTransitionTime: long }];
      await cluster.patch(node, 'strategic', { status: { conditions } }, { subresource: 'status' });
      const before = (await read('Ready')).lastHeartbeatTime;
      const heartbeatOfRestarted = async (): Promise<string> => {
        await promisify(execFile)('ssh', ['-F', lab.sshConfig, 'node1', 'systemctl restart kubelet']);
        return (await read('Ready')).lastHeartbeatTime;
      };
      await expect.poll(heartbeatOfRestarted, { timeout: 20_000 }).not.toBe(before);
      expect((await read('Ready')).lastTransitionTime).toBe(long);
      expect(await read('Foreign')).toEqual(foreign);
    } finally {
      await cluster.close();
    }
  });

  it('does not mix the answers of stand-ins that run at the same time', async () => {
    const lab = await start('parallel');
    const script = `for i in $(seq 40); do kubelet --version >"$HOME/k" & uname -m >"$HOME/u"; wait; cat "$HOME/k" "$HOME/u"; done`;
    const { stdout } = await promisify(execFile)('ssh', ['-F', lab.sshConfig, 'node1', script]);
    const machine = stdout.split('\n')[1];
    expect(machine).toMatch(/^\w+$/);
    expect(stdout).toBe(`Kubernetes v1.36.2\n${machine}\n`.repeat(40));
  });

  it('rejects a directory that other users may write to', async () => {
    const directory = join(top, 'shared');
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o1777);
    await expect(start('shared')).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining(`lab directory ${directory}: writable by other users`),
    });
    expect(readdirSync(directory)).toEqual([]);
  });
});
