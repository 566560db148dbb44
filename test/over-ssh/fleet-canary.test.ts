import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('the canary of apply', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let maxPods = 60;
  const fleet = (): string => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
baseline: {kubeletConfiguration: {maxPods: ${++maxPods}}}
hosts: [{name: node3}, {name: node2, groups: [edge], labels: {pool: edge}}, {name: node4}]
groups: [{name: edge}]
`,
    );
    return file;
  };
  const run = (...argv: readonly string[]): Promise<CliResult> =>
    runCommand([...argv, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') } });
  /** The changed hosts, in the order of their lines. */
  const orderOf = ({ code, stderr }: CliResult): readonly string[] => {
    expect(code, stderr).toBe(0);
    return stderr.split('\n').flatMap((line) => /^(node[0-9]) changed: /.exec(line)?.[1] ?? []);
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-canary-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 4 });
    await startFirstNode(lab);
    expect((await run('apply', '-y', '-f', fleet(), '--canary', '0')).code).toBe(0);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is the first host of the file', async () => {
    expect(orderOf(await run('apply', '-y', '-f', fleet()))[0]).toBe('node3');
  });

  it.each(['node4', 'edge', 'pool=edge'])('is the host of --canary %s', async (canary) => {
    const expected = canary === 'node4' ? 'node4' : 'node2';
    expect(orderOf(await run('apply', '-y', '-f', fleet(), '--canary', canary))[0]).toBe(expected);
  });

  it('is part of the plan and of the saved plan', async () => {
    const plan = join(directory, 'plan.json');
    const planned = await run('plan', '-f', fleet(), '--canary', 'node4', '--serial', '1', '--out', plan);
    expect(planned.stdout).toMatch(
      /^canary: node4; the other hosts follow only if the canary succeeds\norder: node4 \(canary\), then node3, then node2\n3 hosts: 3 pending/m,
    );
    expect(JSON.parse(readFileSync(plan, 'utf8'))).toMatchObject({ canary: ['node4'], maxUnavailable: '1' });
    expect((await runCommand(['plan', 'show', plan])).stdout).toMatch(/^canary: node4;/m);
    expect(orderOf(await run('apply', plan))[0]).toBe('node4');
  });

  it('is none in a plan with --canary 0, and a number of apply replaces those of a plan', async () => {
    const plan = join(directory, 'none.json');
    expect((await run('plan', '-f', fleet(), '--canary', '0', '--out', plan)).stdout).not.toContain('canary:');
    expect(JSON.parse(readFileSync(plan, 'utf8'))).toMatchObject({ canary: [] });
    expect(orderOf(await run('apply', plan))).toHaveLength(3);
    expect((await run('plan', '-f', fleet(), '--canary', 'node4', '--out', plan)).code).toBe(0);
    expect(orderOf(await run('apply', plan, '--canary', '1'))[0]).toBe('node3');
  });

  it('may be a host that has succeeded in an earlier run', async () => {
    const file = fleet();
    expect((await run('apply', '-y', '-f', file)).code).toBe(0);
    const again = await run('apply', '-y', '-f', file, '--canary', 'node4', '--retry', 'failed');
    expect(again.code, again.stderr).toBe(0);
  });

  it('is the first host of the file in a plan without --canary', async () => {
    expect((await run('plan', '-f', fleet())).stdout).toMatch(/^canary: node3;/m);
  });

  it('must be a host of the run', async () => {
    const { code, stderr } = await run('apply', '-y', '-f', fleet(), '--canary', 'node9');
    expect(code).toBe(2);
    expect(stderr).toContain('--canary node9: no host of the run has this name, Node, group or label');
  });
});
