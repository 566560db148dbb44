import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const DIR = '/etc/kubernetes/kubelet.conf.d';
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

describe('a fleet with drop-in files of --config-dir', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-drop-ins-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 2 });
    await startFirstNode(lab);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const fleet = (group: string, configDir: boolean): string => {
    const file = join(directory, 'fleet.yaml');
    const text = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
baseline: {kubeletConfigDir: ${configDir}, kubeletConfiguration: {maxPods: 70, podPidsLimit: 900}}
groups: [{name: edge, kubeletConfiguration: {${group}}}]
hosts: [{name: node2, groups: [edge]}]
`;
    writeFileSync(file, text);
    return file;
  };
  const run = (command: string, file: string, ...args: readonly string[]): Promise<CliResult> =>
    runCommand([...command.split(' '), '-f', file, '--ssh-config', lab.sshConfig, ...args], {
      env: { XDG_STATE_HOME: join(directory, 'state') },
    });
  const onHost = (path: string): string => join(lab.hosts[1]?.rootDir ?? '', path);
  const configDropIns = (): readonly string[] =>
    existsSync(onHost(DIR)) ? readdirSync(onHost(DIR)).filter((name) => name.endsWith('.conf')) : [];
  const maxPods = async (): Promise<string> => {
    const { stdout } = await runCommand(['node', 'explain', 'node2', 'maxPods', '--ssh-config', lab.sshConfig]);
    return stdout;
  };

  it('proves them by the configz of the running kubelet, and then plans nothing', async () => {
    const file = fleet('registryBurst: 20', false);
    expect(await run('apply', file, '--yes')).toMatchObject({ code: 0 });
    const moved = await run('apply', fleet('maxPods: 60', true), '--yes', '--allow', 'new-pods-only', '-v', '1');
    expect(moved, moved.stderr).toMatchObject({ code: 0 });
    expect(configDropIns()).toEqual(['10-kubeletadm-baseline.conf', '20-kubeletadm-group-edge.conf']);
    expect(readFileSync(onHost('/var/lib/kubelet/config.yaml'), 'utf8')).not.toMatch(/^(?:maxPods|podPidsLimit):/m);
    expect(await maxPods()).toContain(`${DIR}/20-kubeletadm-group-edge.conf:3`);
    expect(await run('plan', file)).toMatchObject({ code: 0 });
    expect(await run('fleet drift', file)).toMatchObject({ code: 0 });
    expect((await run('fleet status', file)).stdout).toContain('file + 2 drop-ins');
  });

  it('shows a change of the unit that the running kubelet has not read in status and drift', async () => {
    const file = fleet('maxPods: 60', true);
    const dropIn = onHost('/etc/systemd/system/kubelet.service.d/20-local.conf');
    writeFileSync(dropIn, '[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--v=5"\n');
    expect((await run('fleet status', file)).stdout).toContain('pending restart');
    const drift = await run('fleet drift', file, '--exit-code');
    expect(drift).toMatchObject({ code: 6 });
    expect(drift.stdout).toContain('20-local.conf was edited after the kubelet started');
    rmSync(dropIn);
    expect((await run('fleet drift', file)).stdout).toBe('No drift.\n');
  });

  it('names the field of a changed drop-in file, and keeps a drop-in file of the administrator', async () => {
    writeFileSync(onHost(`${DIR}/90-local.conf`), `${HEADER}podPidsLimit: 800\n`);
    const planned = JSON.parse((await run('plan', fleet('maxPods: 50', true), '-o', 'json')).stdout);
    expect(JSON.stringify(planned)).toContain('"fields":[{"field":"maxPods","before":60,"after":50,"impact":"new-pods-only"}]');
    expect(await run('apply', fleet('maxPods: 50', true), '--yes')).toMatchObject({ code: 0 });
    expect(configDropIns()).toContain('90-local.conf');
    expect(await maxPods()).toContain('50');
  });

  it('merges them into config.yaml again', async () => {
    const merged = await run('apply', fleet('maxPods: 50', false), '--yes');
    expect(merged, merged.stderr).toMatchObject({ code: 0 });
    expect(configDropIns()).toEqual(['90-local.conf']);
    expect(readFileSync(onHost('/var/lib/kubelet/config.yaml'), 'utf8')).toContain('maxPods: 50\n');
    expect(readFileSync(onHost('/var/lib/kubelet/kubeadm-flags.env'), 'utf8')).not.toContain('config-dir');
    expect(await run('plan', fleet('maxPods: 50', false))).toMatchObject({ code: 0 });
  });
});
