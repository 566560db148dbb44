import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../src/lab/lab.ts';
import { type LabAgents, startLabAgents } from '../../src/lab/lab-agents.ts';
import type { Lab } from '../../src/lab/lab-options.ts';
import { createServices } from '../../src/wiring.ts';
import { joinArguments } from '../support/join-arguments.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

describe('lab --agents', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-lab-agents-'));
  const stop = new AbortController();
  let lab: Lab;
  let agents: LabAgents;
  const run = (...argv: readonly string[]): Promise<CliResult> => {
    const needsHosts = /^(?:init|join|node explain|dynamic (?:enable|disable|inspect))/.test(argv.join(' '));
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
    const endpoint = lab.server.replace(/^https:\/\//, '');
    expect(await run('init', '--control-plane-endpoint', endpoint, '--host', 'node1')).toMatchObject({ code: 0 });
    expect(await runCommand(joinArguments(lab, 'node2'))).toMatchObject({ code: 0 });
    await agents.untilReported();
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
      /^NODE +BACKEND +STATE +SINCE +REPORTED [\s\S]*^node1 +agent +local +\S+ +\d+\w+ [\s\S]*^node2 +agent +local +\S+ +\d+\w+ /m,
    );
  });

  it('accepts a configuration created by config from-node under the default policy', async () => {
    const { stdout } = await run('config', 'from-node', 'node2', '--without-defaults');
    const good = file('good.yaml', `${stdout}eventRecordQPS: 0\n`);
    expect(await run('dynamic', 'assign', 'node2', '--file', good, '--wait', 'good')).toMatchObject({ code: 0 });
    expect((await run('config', 'from-node', 'node2', '--without-defaults')).stdout).toContain('eventRecordQPS: 0\n');
    const refused = file('refused.yaml', `${OVERLAY}cgroupDriver: cgroupfs\n`);
    const { code, stderr } = await run('dynamic', 'assign', 'node2', '--file', refused, '--wait', 'good');
    expect([code, stderr]).toEqual([5, expect.stringContaining('the agent of this node runs with --allow=new-pods-only, which excludes')]);
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
});
