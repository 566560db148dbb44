import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import { type LabAgents, startLabAgents } from '../../lab/lab-agents.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { createServices } from '../../src/wiring.ts';
import { startFirstNode } from '../support/first-node.ts';
import { requirement } from '../support/requirement.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const missing = spawnSync('ansible-playbook', ['--version']).status === 0 ? null : 'ansible-playbook is not installed';

interface Play {
  readonly code: number;
  readonly output: string;
}

describe.skipIf(requirement('ansible-playbook', missing))('the modules for Ansible', { timeout: 240_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-ansible-'));
  const at = (name: string): string => join(directory, name);
  let lab: Lab;
  let agents: LabAgents;

  beforeAll(async () => {
    lab = await startLab({ directory: at('lab'), hosts: 1 });
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const env = { PATH: process.env.PATH ?? '' };
    const signal = new AbortController().signal;
    const services = createServices({ env, stdin: Readable.from([]), stdout: nowhere, stderr: nowhere, signal });
    agents = await startLabAgents(services, { lab, names: ['node1'], trialMs: 500, failed: () => undefined });
    await startFirstNode(lab);
    await agents.waitForReports();
    const loader = join(ROOT, 'node_modules/tsx/dist/esm/index.mjs');
    writeFileSync(at('kubeletadm'), `#!/bin/sh\nexec '${process.execPath}' --import '${loader}' '${ROOT}src/bin.ts' "$@"\n`, {
      mode: 0o755,
    });
    writeFileSync(
      at('fleet.yaml'),
      'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nsshConfig: lab/ssh_config\ncluster: {kubeconfig: lab/admin.conf}\n' +
        'hosts:\n  - {name: node1, kubeletConfiguration: {maxPods: 77}}\n',
    );
    writeFileSync(at('overlay.yaml'), 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\neventRecordQPS: 7\n');
  }, 120_000);
  afterAll(async () => {
    await agents?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const play = (task: string, ...options: readonly string[]): Promise<Play> => {
    writeFileSync(at('play.yaml'), `- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n    - ${task}\n`);
    const env = {
      ...{ PATH: process.env.PATH ?? '', HOME: directory, LC_ALL: 'C.UTF-8', PYTHONDONTWRITEBYTECODE: '1' },
      ANSIBLE_LIBRARY: join(ROOT, 'contrib/ansible/library'),
      ANSIBLE_MODULE_UTILS: join(ROOT, 'contrib/ansible/module_utils'),
    };
    return new Promise((resolve) =>
      execFile('ansible-playbook', ['-i', 'localhost,', 'play.yaml', ...options], { cwd: directory, env }, (error, stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
      ),
    );
  };
  const config = (): string => readFileSync(join(lab.hosts[0]?.rootDir ?? '', 'var/lib/kubelet/config.yaml'), 'utf8');

  it('plan and apply a fleet file: with a diff and without a change in check mode, then once', async () => {
    const before = config();
    const planned = await play(`kubeletadm_plan: {file: fleet.yaml, executable: ${at('kubeletadm')}}`, '--diff');
    expect(planned.output).toMatch(/\+maxPods: 77\n[\s\S]*changed=1/);
    const apply = `kubeletadm_apply: {file: fleet.yaml, executable: ${at('kubeletadm')}, reason: a test, apply_arguments: [--max-unavailable, '1']}`;
    expect((await play(apply, '--check')).output).toMatch(/changed=1 /);
    expect(config()).toBe(before);
    expect((await play(apply, '--diff')).output).toMatch(/\+maxPods: 77\n[\s\S]*changed=1 .*failed=0/);
    expect(config()).toMatch(/^maxPods: 77$/m);
    expect((await play(apply)).output).toMatch(/ok=1 +changed=0 .*failed=0/);
  });

  it('assign a configuration once, and report the error of kubeletadm', async () => {
    const options = `nodes: [node1], kubeconfig: lab/admin.conf, executable: ${at('kubeletadm')}`;
    const assign = `kubeletadm_dynamic_assign: {file: overlay.yaml, ${options}}`;
    expect((await play(assign, '--check', '--diff')).output).toMatch(
      /cluster: create ConfigMap [\s\S]*cluster: patch Node node1\n[\s\S]*changed=1/,
    );
    expect((await play(assign)).output).toMatch(/changed=1 .*failed=0/);
    expect((await play(assign)).output).toMatch(/ok=1 +changed=0 .*failed=0/);
    const failed = await play(`kubeletadm_dynamic_assign: {file: none.yaml, ${options}}`);
    expect([failed.code, failed.output]).toEqual([2, expect.stringMatching(/kubeletadm dynamic failed: .*none\.yaml.*INPUT_UNREADABLE/)]);
  });
});
