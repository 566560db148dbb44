import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import { type LabAgents, startLabAgents } from '../../lab/lab-agents.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { createServices } from '../../src/wiring.ts';
import { startFirstNode } from '../support/first-node.ts';
import { joinArguments } from '../support/join-arguments.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

describe('lab --agents', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-lab-agents-'));
  const stop = new AbortController();
  let lab: Lab;
  let agents: LabAgents;
  const run = (...argv: readonly string[]): Promise<CliResult> => {
    const needsHosts = /^(?:join|node explain|dynamic (?:enable|disable|inspect))/.test(argv.join(' '));
    const ssh = needsHosts ? ['--ssh-config', lab.sshConfig] : [];
    return runCommand([...argv, ...ssh, '--kubeconfig', lab.kubeconfig]);
  };
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };

  beforeAll(async () => {
    lab = await startLab({ directory: relative(process.cwd(), join(directory, 'lab')), hosts: 2 });
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const env = { PATH: process.env.PATH ?? '' };
    const services = createServices({ env, stdin: Readable.from([]), stdout: nowhere, stderr: nowhere, signal: stop.signal });
    const names = lab.hosts.map(({ name }) => name);
    agents = await startLabAgents(services, { lab, names, trialMs: 500, failed: () => undefined });
    await startFirstNode(lab);
    expect(await runCommand(joinArguments(lab, 'node2'))).toMatchObject({ code: 0 });
    await agents.waitForReports();
  }, 60_000);
  afterAll(async () => {
    await agents?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('has a healthy agent on every host, and raises no false alarm', async () => {
    for (const node of ['node1', 'node2']) {
      const { code, stdout, stderr } = await run('dynamic', 'inspect', node);
      expect([code, stdout], stderr).toEqual([0, expect.stringContaining('agent: active (running)')]);
      expect((await run('node', 'explain', node)).stdout).not.toMatch(/^!/m);
    }
    expect((await run('dynamic', 'status')).stdout).toMatch(
      /^NODE +BACKEND +STATE +CHANGED +REPORTED [\s\S]*^node1 +agent +local +\S+ +\d+\w+ [\s\S]*^node2 +agent +local +\S+ +\d+\w+ /m,
    );
  });

  it('accepts a configuration created by config from-node under the default policy', async () => {
    const { stdout } = await run('config', 'from-node', 'node2', '--without-defaults');
    const good = file('good.yaml', `${stdout}eventRecordQPS: 0\n`);
    expect(await run('dynamic', 'assign', 'node2', '--file', good, '--wait', 'good')).toMatchObject({ code: 0 });
    expect((await run('config', 'from-node', 'node2', '--without-defaults')).stdout).toContain('eventRecordQPS: 0\n');
    const refused = file('refused.yaml', `${OVERLAY}cgroupDriver: cgroupfs\n`);
    const { code, stderr } = await run('dynamic', 'assign', 'node2', '--file', refused, '--wait', 'good');
    expect([code, stderr]).toEqual([5, expect.stringContaining('but the agent of this node runs with --allow new-pods-only')]);
    expect(await run('dynamic', 'reset', 'node2', '--min-ready', '0s')).toMatchObject({ code: 0 });
  }, 60_000);

  it('rolls back a configuration that the kubelet exits with', async () => {
    const bad = file('bad.yaml', `${OVERLAY}systemReserved:\n  memory: 64Gi\n`);
    const { code, stderr } = await run('dynamic', 'assign', 'node2', '--file', bad, '--wait', 'good', '--allow-pod-loss');
    expect([code, stderr]).toEqual([
      5,
      expect.stringContaining('the kubelet exited: kubeReserved and systemReserved reserve more memory than the host has'),
    ]);
    expect(await run('dynamic', 'reset', 'node2', '--min-ready', '0s')).toMatchObject({ code: 0 });
  }, 60_000);

  it('refuses a change that the assigned ConfigMap overrides before any write, and names it in status, drift and explain', async () => {
    const small = file('small.yaml', `${OVERLAY}maxPods: 33\n`);
    expect(await run('dynamic', 'assign', 'node2', '--file', small, '--wait', 'good')).toMatchObject({ code: 0 });
    const fleet = file(
      'fleet.yaml',
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${resolve(lab.kubeconfig)}}\nhosts:\n  - {name: node2, kubeletConfiguration: {maxPods: 20}}\n`,
    );
    const fleetRun = (...argv: readonly string[]): Promise<CliResult> =>
      runCommand([...argv, '-f', fleet, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') } });
    const files = (): readonly (string | null)[] =>
      ['config.yaml', 'kubeadm-flags.env', 'kubeletadm-node.yaml'].map((name) => {
        const path = join(lab.hosts[1]?.rootDir ?? '', 'var/lib/kubelet', name);
        return existsSync(path) ? readFileSync(path, 'utf8') : null;
      });
    const [before, starts] = [files(), lab.hosts[1]?.kubeletStarts()];
    expect(before[0]).toContain('kind: KubeletConfiguration');
    for (const refused of [await fleetRun('apply', '--yes'), await fleetRun('plan')]) {
      expect(refused.code, refused.stderr).toBe(3);
      expect(refused.stderr).toMatch(
        /node2: preflight: the change of config\.yaml would have no effect: Node node2 uses ConfigMap kubeletadm-system\/node-config-\S+ \(assigned at \S+Z\), which overrides maxPods \(desired 20, running 33\)\. .*kubeletadm dynamic reset node2.* \[ConfigOverridden\]/,
      );
    }
    const upgrade = await runCommand(['upgrade', 'node', '--set', 'maxPods=20', '--host', 'node2', '--ssh-config', lab.sshConfig]);
    expect([upgrade.code, upgrade.stderr]).toEqual([3, expect.stringContaining('[ConfigOverridden]')]);
    expect(files()).toEqual(before);
    expect(lab.hosts[1]?.kubeletStarts()).toBe(starts);

    const status = await fleetRun('fleet', 'status');
    expect(status.stdout, status.stderr).toMatch(
      /^node2 .* kubeletadm-system\/node-config-\S+ +ok +Ready +2 changes, 1 field overridden$/m,
    );
    const json = JSON.parse((await fleetRun('fleet', 'status', '-o', 'json')).stdout) as { hosts: { source: object }[] };
    expect(json.hosts[0]?.source).toMatchObject({
      kind: 'config-map',
      source: { namespace: 'kubeletadm-system', kubeletConfigKey: 'kubelet' },
    });
    const drift = await fleetRun('fleet', 'drift', '--exit-code');
    expect([drift.code, drift.stdout]).toEqual([
      6,
      expect.stringMatching(/^node2 +maxPods +ConfigMap kubeletadm-system\/node-config-\S+ overrides maxPods \(desired 20, running 33\)/m),
    ]);
    const explained = await run('node', 'explain', 'node2', 'maxPods');
    expect(explained.stdout).toMatch(/^configuration: ConfigMap kubeletadm-system\/node-config-\S+ \(key kubelet\), assigned at \S+Z$/m);
    expect(explained.stdout).toMatch(/^maxPods +33 +dynamic config: ConfigMap kubeletadm-system\/node-config-/m);
    expect(explained.stdout).not.toMatch(/[0-9a-f]{64}/);

    // Ignored: written, and drift remains although the file has the value.
    const written = await fleetRun('apply', '--yes', '--ignore-preflight-errors', 'ConfigOverridden');
    expect([written.code, written.stderr]).toEqual([0, expect.stringContaining('[ConfigOverridden]')]);
    expect(files()[0]).toContain('maxPods: 20\n');
    expect((await fleetRun('fleet', 'status')).stdout).toMatch(/ 1 field overridden$/m);
    expect((await fleetRun('fleet', 'drift', '--exit-code')).code).toBe(6);
    expect(await run('dynamic', 'reset', 'node2', '--min-ready', '0s')).toMatchObject({ code: 0 });
    await untilTrue(async () => / file +ok +Ready +none$/m.test((await fleetRun('fleet', 'status')).stdout), 20_000);
    expect(await fleetRun('fleet', 'drift', '--exit-code')).toMatchObject({ code: 0, stdout: 'No drift.\n' });
  }, 120_000);

  it('installs the agent again after reset and join', async () => {
    expect(await run('reset', '--force', '--host', 'node2', '--ssh-config', lab.sshConfig, '--delete-node')).toMatchObject({ code: 0 });
    expect(await runCommand(joinArguments(lab, 'node2'))).toMatchObject({ code: 0 });
    await agents.waitForReports();
    await untilTrue(async () => /^node2 +agent +local /m.test((await run('dynamic', 'status')).stdout), 30_000);
    expect((await run('dynamic', 'inspect', 'node2')).stdout).toContain('agent: active (running)');
  }, 120_000);

  it('supports dynamic enable and dynamic disable', async () => {
    const program = file('program.mjs', "#!/usr/bin/env node\nconsole.log('1.2.3');\n");
    const enable = (...more: readonly string[]) => run('dynamic', 'enable', 'node1', '--program', program, ...more);
    const { code, stderr } = await enable('--allow', 'unsafe');
    expect(code, stderr).toBe(0);
    const again = await enable('--allow', 'unsafe', '--dry-run', '--exit-code');
    expect(again.code, again.stdout).toBe(0);
    expect(lab.hosts[0]?.agent()?.command).toContain('--allow=unsafe');
    const disabled = await run('dynamic', 'disable', 'node1');
    expect(disabled.code, disabled.stderr).toBe(0);
    expect(lab.hosts[0]?.agent()).toBeNull();
    expect(await run('dynamic', 'inspect', 'node1')).toMatchObject({ code: 3 });
  }, 60_000);

  it('enables two hosts at once on a cluster without the namespace', async () => {
    const program = file('program.mjs', "#!/usr/bin/env node\nconsole.log('1.2.3');\n");
    const hosts = ['node1', 'node2'];
    expect(await run('dynamic', 'disable', ...hosts)).toMatchObject({ code: 0 });
    const namespace = { apiVersion: 'v1', kind: 'Namespace', name: 'kubeletadm-system' };
    const admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    try {
      await admin.delete(namespace);
      await untilTrue(async () => (await admin.get(namespace)) === null);
      const { code, stdout, stderr } = await run('dynamic', 'enable', ...hosts, '--program', program);
      expect(code, stdout + stderr).toBe(0);
      expect(stderr).not.toMatch(/was planned again|difference between|already exists/);
      expect(await admin.get(namespace)).not.toBeNull();
    } finally {
      await admin.close();
    }
  }, 60_000);
});
