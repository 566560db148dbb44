import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const CONFIG = 'var/lib/kubelet/config.yaml';

describe('gates between the batches of apply', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const maxPodsOf = (host: number): string | null => {
    const file = join(lab.hosts[host - 1]?.rootDir ?? '', CONFIG);
    return existsSync(file) ? (/maxPods: (\d+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? '') : null;
  };
  const fleet = (maxPods: number, rollout: string): string => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
rollout: ${rollout}
baseline: {kubeletConfiguration: {maxPods: ${maxPods}}}
hosts: [{name: node2}, {name: node3}]
`,
    );
    return file;
  };
  const command = (...argv: readonly string[]): Promise<CliResult> =>
    runCommand([...argv, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') } });

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-gates-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('stop the run after the canary if they fail; journal and report have the result', async () => {
    const report = join(directory, 'report.html');
    const rollout = '{gates: [{name: smoke-test, command: "echo $KUBELETADM_HOSTS has no route; exit 3"}]}';
    const { code, stdout, stderr } = await command('apply', '-f', fleet(60, rollout), '--yes', '--report', report);
    expect(code).toBe(4);
    expect(stderr).toContain('between batches: gate smoke-test (command) after each batch\n');
    expect(stderr).toContain('gate smoke-test failed after batch 1: exit code 3: node2 has no route.');
    expect(stdout).toContain('2 hosts: 1 changed, 1 not started.\nGates: 1 failed (smoke-test after batch 1).\n');
    expect([maxPodsOf(2), maxPodsOf(3)]).toEqual(['60', null]);
    const page = readFileSync(report, 'utf8');
    expect(page).toContain('smoke-test');
    expect(page).toContain('node2 has no route');
    const journals = join(directory, 'state', 'kubeletadm', 'runs');
    const [journal = ''] = readdirSync(journals);
    expect(readFileSync(join(journals, journal), 'utf8')).toMatch(
      /"event":"gate-ended".*"gate":"smoke-test".*"batch":1.*"isPassed":false,"answer":"exit code 3","output":"node2 has no route"/,
    );
  });

  it('run again before a retry, which leaves out the hosts that are changed', async () => {
    const rollout = '{gates: [{name: smoke-test, command: "exit 3"}]}';
    for (const _ of ['first', 'second']) {
      const { code, stderr } = await command('apply', '-f', fleet(60, rollout), '--yes', '--retry', 'failed');
      expect(stderr).toContain('gate smoke-test failed before batch 1: exit code 3');
      expect([code, maxPodsOf(3)]).toEqual([3, null]);
    }
  });

  it('are part of a saved plan, and pass before its first batch, because an earlier run changed a host', async () => {
    const plan = join(directory, 'plan.json');
    const rollout = '{gates: [{name: smoke-test, command: [cat, answer]}]}';
    const planned = await command('plan', '-f', fleet(60, rollout), '--out', plan);
    expect(planned.stderr).toContain('between batches: gate smoke-test (command) after each batch\n');
    rmSync(join(directory, 'fleet.yaml'));
    expect((await command('apply', plan)).code).toBe(3);
    expect(maxPodsOf(3)).toBeNull();
    writeFileSync(join(directory, 'answer'), 'ok\n');
    const { code, stdout } = await command('apply', plan);
    expect(stdout).toContain('Gates: 2 passed.\n');
    expect([code, maxPodsOf(3)]).toEqual([0, '60']);
  });

  it('run in a run without changes: an earlier run may have ended before its last gate passed', async () => {
    const file = fleet(60, '{gates: [{name: smoke-test, after: end, command: "exit 3"}]}');
    const plan = join(directory, 'unchanged.json');
    expect((await command('plan', '-f', file, '--out', plan)).code).toBe(0);
    const asking = { services: () => ({ canAsk: true }) };
    const runs = [
      await command('apply', '-f', file, '--yes'),
      await command('apply', '-f', file, '--yes', '--retry', 'failed'),
      await command('apply', plan),
      await runCommand(['apply', '-f', file, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: directory }, ...asking }),
    ];
    for (const { code, stdout, stderr } of runs) {
      expect(stderr).toContain('gate smoke-test failed in a run without changes: exit code 3. ');
      expect(stdout).toMatch(/Gates: 1 failed \(smoke-test before any batch\)\.\n$/);
      expect(stdout).not.toContain('0 hosts');
      expect(code).toBe(3);
    }
    fleet(60, '{gates: [{name: smoke-test, after: end, command: "exit 0"}]}');
    const { code, stdout } = await command('apply', '-f', file, '--yes', '--retry', 'failed');
    expect([code, stdout]).toEqual([0, expect.stringContaining('Gates: 1 passed.\n')]);
  });

  it('refuse a revert, which apply does not support, before a host is contacted', async () => {
    const { code, stderr } = await command(
      'apply',
      '-f',
      fleet(61, '{gates: [{name: smoke-test, command: ["true"], onFailure: revert}]}'),
      '--yes',
    );
    expect(code).toBe(2);
    expect(stderr).toContain('gate smoke-test: onFailure: revert is supported only by dynamic assign, dynamic reset and dynamic undo');
    expect(maxPodsOf(2)).toBe('60');
  });

  it('a closed maintenance window changes no host; --ignore-window is recorded', async () => {
    const day = new Date(Date.now() + 3 * 86_400_000).toUTCString().slice(0, 3);
    const file = fleet(62, `{windows: [{days: [${day}], startTime: "01:00", duration: 2h, timeZone: Etc/UTC}]}`);
    const closed = await command('apply', '-f', file, '--yes');
    expect(closed.code).toBe(3);
    expect(closed.stderr).toMatch(
      /no maintenance window is open; the next window opens on \w+ [-\d]+ 01:00 Etc\/UTC\. .*\[WINDOW_CLOSED\]/,
    );
    expect(maxPodsOf(2)).toBe('60');
    const ignored = await command('apply', '-f', file, '--yes', '--ignore-window');
    expect([ignored.code, maxPodsOf(2), maxPodsOf(3)]).toEqual([0, '62', '62']);
  });
});
