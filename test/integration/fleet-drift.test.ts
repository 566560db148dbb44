import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../src/lab/lab.ts';
import type { Lab } from '../../src/ports/services.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const DEAD = [1, 2].map((number) => `  - {name: dead${number}, address: 127.0.0.${number}, ssh: {port: 1}}\n`);

describe('fleet drift, status and plan of hosts that do not answer', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const write = (hosts: string): string => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\nhosts:\n  - {name: "node[2:3]"}\n${hosts}`,
    );
    return file;
  };
  const run = (...args: readonly string[]): Promise<CliResult> =>
    runCommand(args.includes('--ssh-config') ? args : [...args, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: join(directory, 'state') },
    });

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-drift-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    const init = ['init', '--kubeconfig', lab.kubeconfig, '--token', lab.token.reveal(), '--host', 'node1'];
    expect((await run(...init)).code).toBe(0);
    const applied = await run('apply', '-f', write(''), '--canary', '0');
    expect(applied.code, applied.stderr).toBe(0);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('names the hosts that answered and the ones that were not checked', async () => {
    const { code, stdout } = await run('fleet', 'drift', '-f', write(DEAD[0] ?? ''), '--exit-code');
    expect(stdout).toBe('No drift on the 2 hosts that answered; dead1 was not checked: connection refused\n');
    expect(code).toBe(4);
  });

  it('claims nothing when no host answered', async () => {
    const file = write(DEAD.join(''));
    const { code, stdout, stderr } = await run('fleet', 'drift', '-f', file, '--limit', 'dead*', '--exit-code');
    expect(stdout).toBe('dead1, dead2 were not checked: connection refused\n');
    expect(stderr.match(/\[HOST_UNREACHABLE\]/g)).toHaveLength(2);
    expect(code).toBe(4);
    const status = await run('fleet', 'status', '-f', file, '--limit', 'dead*');
    expect(status.code).toBe(4);
    expect(status.stdout).not.toMatch(/none|ok/);
    const json = JSON.parse((await run('fleet', 'drift', '-f', file, '--limit', 'dead1', '-o', 'json')).stdout) as { hosts: object[] };
    expect(json.hosts).toEqual([
      { name: 'dead1', status: 'unreachable', drift: null, reason: expect.stringContaining('connection refused') },
    ]);
  });

  it('claims nothing when the ssh_config cannot be read', async () => {
    const { code, stdout } = await run('fleet', 'drift', '-f', write(''), '--ssh-config', '/nope');
    expect(stdout).not.toContain('No drift');
    expect(stdout).toMatch(/^node2, node3 were not checked: /);
    expect(code).toBe(4);
  });

  it('lists drift and the hosts that were not checked', async () => {
    const file = write(`${DEAD[0]}baseline: {kubeletConfiguration: {maxPods: 77}}\n`);
    const { code, stdout } = await run('fleet', 'drift', '-f', file, '--exit-code');
    expect(stdout).toMatch(/^node2, node3 +\/var\/lib\/kubelet\/config\.yaml /m);
    expect(stdout).toMatch(/\ndead1 was not checked: connection refused\n$/);
    expect(code).toBe(4);
  });

  it('says of a saved plan which hosts it does not cover', async () => {
    const plan = join(directory, 'plan.json');
    expect((await run('plan', '-f', write(DEAD[0] ?? ''), '--out', plan)).code).toBe(4);
    const { code, stdout, stderr } = await run('apply', plan);
    expect(stdout).toBe('Nothing to do on the 2 hosts that were planned.\n');
    expect(stderr).toMatch(/dead1: nothing is applied, because the host could not be planned: .*connection refused.*\[HOST_NOT_PLANNED\]/);
    expect(code).toBe(4);
  });

  it('does not claim of a retry that nothing is left when the hosts left are not selected', async () => {
    const file = write(DEAD[0] ?? '');
    expect((await run('apply', '-f', file, '--canary', '0')).code).toBe(4);
    const { code, stdout } = await run('apply', '-f', file, '--retry', 'failed', '--limit', 'node2');
    expect(stdout).toMatch(/^Nothing to do on the selected hosts: the last run, of \S+Z, left dead1 unfinished\.\n$/);
    expect(code).toBe(0);
  });
});
