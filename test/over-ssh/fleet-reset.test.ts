import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliOptions, type CliResult, runCommand } from '../support/run-cli.ts';

describe('fleet reset', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let cluster: Cluster;
  const fleet = (hosts = ''): void =>
    writeFileSync(
      join(directory, 'fleet.yaml'),
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
hosts:
  - {name: node1, role: control-plane}
  - {name: "node[2:4]"}
${hosts}`,
    );
  const run = (args: readonly string[], options: Pick<CliOptions, 'services'> = {}): Promise<CliResult> =>
    runCommand([...args, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') }, ...options });
  const reset = (...args: readonly string[]) => run(['fleet', 'reset', '-f', join(directory, 'fleet.yaml'), ...args]);
  const isNode = (host: number): boolean => existsSync(join(lab.hosts[host - 1]?.rootDir ?? '', 'etc/kubernetes/kubelet.conf'));
  const nodes = async (): Promise<readonly string[]> =>
    (await cluster.list({ apiVersion: 'v1', kind: 'Node' })).items.map(({ metadata }) => metadata.name).toSorted();

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-fleet-reset-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 4 });
    cluster = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    await startFirstNode(lab);
    fleet();
    const applied = await run(['apply', '--yes', '-f', join(directory, 'fleet.yaml'), '--limit', '!node1', '--canary', '0']);
    expect(applied.code, applied.stderr).toBe(0);
  });
  afterAll(async () => {
    await cluster?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('changes nothing without a confirmation', async () => {
    expect(await reset()).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'fleet reset asks before it changes anything, but standard input is not a terminal. Add --yes. To see the plan first, add --dry-run. [USAGE]\n',
    });
    const questions: string[] = [];
    const confirm = async (question: string): Promise<boolean> => {
      questions.push(question);
      return false;
    };
    const declined = await run(['fleet', 'reset', '-f', join(directory, 'fleet.yaml'), '--limit', '!node3'], {
      services: () => ({ confirm }),
    });
    expect(declined).toMatchObject({ code: 1, stderr: 'fleet reset was declined: nothing was changed\n' });
    expect(questions).toEqual([
      'Reset 3 hosts (node1, node2, node4)? All changes made by init or join are reverted. No control plane remains for node3. [y/N] ',
    ]);
    expect([1, 2, 3, 4].map(isNode)).toEqual([true, true, true, true]);
  });

  it('shows the plan of a dry run and changes nothing', async () => {
    const { code, stdout, stderr } = await reset('--dry-run', '--exit-code', '--delete-node');
    expect(code, stderr).toBe(6);
    expect(stdout).toMatch(/^node\[1:4\] \(4 hosts\)$/m);
    expect(stdout).toMatch(/^4 hosts: 4 pending\.$/m);
    const json = JSON.parse((await reset('--dry-run', '-o', 'json')).stdout) as { kind: string; hosts: { name: string }[] };
    expect([json.kind, json.hosts.map(({ name }) => name)]).toEqual(['Plan', ['node1', 'node2', 'node3', 'node4']]);
    expect([1, 2, 3, 4].map(isNode)).toEqual([true, true, true, true]);
    expect(await nodes()).toEqual(['node1', 'node2', 'node3', 'node4']);
  });

  it('deletes the Nodes with --delete-node, and a second run changes nothing', async () => {
    const first = await reset('--limit', 'node4', '--delete-node', '--yes');
    expect(first, first.stderr).toMatchObject({ code: 0, stdout: '1 host: 1 changed.\n' });
    expect(isNode(4)).toBe(false);
    expect(await nodes()).toEqual(['node1', 'node2', 'node3']);
    expect((await reset('--limit', 'node4', '--delete-node', '--yes')).stdout).toBe('1 host: 1 unchanged.\n');
  });

  it('keeps the last control plane while another host cannot be reset, and resets it last with --retry failed', async () => {
    fleet('  - {name: dead, address: 127.0.0.1, ssh: {port: 1}}\n');
    const first = await reset('--limit', '!node3', '--force', '--delete-node', '-o', 'json');
    expect(first.code).toBe(4);
    expect(first.stderr).toContain(
      'node1: not reset: kubeletadm resets this control plane only after all other hosts, and the host "dead" could not be reset. Fix the host "dead" and run kubeletadm fleet reset --retry failed, or exclude that host with --limit \'!dead\'. [RESET_LAST_CONTROL_PLANE]',
    );
    const events = first.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { code: string; host?: string; message: string });
    const ended = events.filter(({ code }) => code === 'HOST_ENDED').map(({ host, message }) => `${host} ${message}`);
    expect(ended.toSorted()).toEqual(['dead unreachable', 'node1 refused', 'node2 changed', 'node4 unchanged']);
    expect(ended.at(-1)).toBe('node1 refused');
    expect([1, 2, 3].map(isNode)).toEqual([true, false, true]);

    fleet();
    const second = await reset('--retry', 'failed', '--yes');
    expect(second, second.stderr).toMatchObject({ code: 0, stdout: '1 host: 1 changed.\n' });
    expect([1, 2, 3].map(isNode)).toEqual([false, false, true]);
    expect((await reset('--retry', 'failed', '--yes')).stdout).toMatch(
      /^Nothing to do on the selected hosts\. Earlier runs left other hosts unfinished: dead \(.*\)\.\n$/,
    );
  });

  it('resets the workers before the control plane', async () => {
    const { code, stdout } = await reset('--yes', '-o', 'json');
    expect(code).toBe(0);
    const lines = stdout.trim().split('\n');
    const hosts = lines.map((line) => JSON.parse(line) as { host?: string }).flatMap(({ host }) => host ?? []);
    expect(hosts.indexOf('node1')).toBeGreaterThan(hosts.lastIndexOf('node3'));
    expect(isNode(3)).toBe(false);
  });
});
