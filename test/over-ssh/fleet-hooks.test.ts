import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('hooks of a fleet file', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let maxPods = 50;
  const log = (): string => join(directory, 'hooks.log');
  const logged = (): readonly string[] => (existsSync(log()) ? readFileSync(log(), 'utf8').trim().split('\n') : []);
  const fleet = (hooks: string): void =>
    writeFileSync(
      join(directory, 'fleet.yaml'),
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
baseline: {kubeletConfiguration: {maxPods: ${maxPods}}, hooks: ${hooks}}
hosts:
  - {name: "node[1:2]"}
`,
    );
  const run = (command: string, ...args: readonly string[]): Promise<CliResult> =>
    runCommand([command, ...args, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: join(directory, 'state'), API_TOKEN: "geheim 'x' $y" },
    });
  const ofFile = (): readonly string[] => ['-f', join(directory, 'fleet.yaml')];
  const record = (): string => `echo "$KUBELETADM_HOOK $KUBELETADM_HOST $KUBELETADM_NODE $KUBELETADM_REASON" >> ${log()}`;
  const maxPodsOf = (host: number): string | undefined =>
    /^maxPods: (\d+)$/m.exec(readFileSync(join(lab.hosts[host - 1]?.rootDir ?? '', 'var/lib/kubelet/config.yaml'), 'utf8'))?.[1];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-hooks-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 2 });
    await startFirstNode(lab);
    fleet('{}');
    const applied = await run('apply', '--yes', ...ofFile());
    expect(applied.code, applied.stderr).toBe(0);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });
  afterEach(() => rmSync(log(), { force: true }));

  it('are shown in the plan, run around the change, and not without one', async () => {
    maxPods++;
    fleet(`{beforeChange: {command: '${record()}'}, afterChange: {command: [sh, -c, '${record()}'], timeout: 1m}}`);
    const plan = await run('plan', ...ofFile());
    expect(plan.stdout).toMatch(/^ {2}~ run hook echo .*: beforeChange of baseline, time limit 120s$/m);
    expect(plan.stdout).toMatch(/^ {2}~ run hook echo .*: afterChange of baseline, time limit 60s$/m);
    expect(logged()).toEqual([]);
    const applied = await run('apply', '--yes', ...ofFile());
    expect(applied, applied.stderr).toMatchObject({ code: 0, stdout: '2 hosts: 2 changed.\n' });
    expect(logged().toSorted()).toEqual(
      ['node1', 'node2']
        .flatMap((host) => [`afterChange ${host} ${host} kubelet-start`, `beforeChange ${host} ${host} kubelet-start`])
        .toSorted(),
    );
    for (const host of ['node1', 'node2'])
      expect(logged().findIndex((line) => line.includes(host))).toBe(logged().findIndex((line) => line.startsWith(`beforeChange ${host}`)));
    expect((await run('apply', '--yes', ...ofFile())).stdout).toBe('2 hosts: 2 unchanged.\n');
    expect(logged()).toHaveLength(4);
    expect((await run('fleet', 'drift', ...ofFile())).stdout).toBe('No drift.\n');
  });

  it('are part of a saved plan', async () => {
    maxPods++;
    fleet(`{beforeChange: {command: '${record()}'}}`);
    const file = join(directory, 'plan.json');
    expect((await run('plan', ...ofFile(), '--limit', 'node2', '--out', file)).code).toBe(0);
    fleet('{}');
    const applied = await run('apply', file);
    expect(applied, applied.stderr).toMatchObject({ code: 0, stdout: '1 host: 1 changed.\n' });
    expect(logged()).toEqual(['beforeChange node2 node2 kubelet-start']);
    expect((await run('apply', '--yes', ...ofFile())).code).toBe(0);
  });

  it('receive secrets in their environment, and in no argument, output, plan or record', async () => {
    maxPods++;
    writeFileSync(join(directory, 'key'), 'verborgen-1\nverborgen-2\n');
    const dump = `printf "%s|%s" "$LB_TOKEN" "$LB_KEY" > ${log()}; for p in /proc/[0-9]*/cmdline; do cat $p; done 2>/dev/null | tr "\\0" " " > ${log()}.argv`;
    const show = 'echo "$LB_TOKEN"; echo "$LB_KEY"; exit 3';
    const env = '{LB_TOKEN: {env: API_TOKEN}, LB_KEY: {file: key}}';
    fleet(`{beforeChange: {command: '${dump}', env: ${env}}, afterChange: {command: '${show}', env: ${env}}}`);
    const file = join(directory, 'secret.json');
    const plan = await run('plan', ...ofFile(), '--limit', 'node1', '--out', file);
    expect(plan.stdout).toContain('beforeChange of baseline, time limit 120s, with the secrets LB_TOKEN, LB_KEY');
    const applied = await run('apply', file, '-v', '5');
    expect(applied.code, applied.stderr).toBe(1);
    expect(applied.stderr).toMatch(/output of the hook afterChange:\n +\[secret\]\n +\[secret\]/);
    expect(readFileSync(log(), 'utf8')).toBe("geheim 'x' $y|verborgen-1\nverborgen-2");
    const record = readFileSync(join(lab.hosts[0]?.rootDir ?? '', 'var/log/kubeletadm/history.jsonl'), 'utf8');
    const outputs = [plan.stdout, plan.stderr, applied.stdout, applied.stderr, readFileSync(file, 'utf8'), record];
    for (const text of [...outputs, readFileSync(`${log()}.argv`, 'utf8')]) expect(text).not.toMatch(/geheim|verborgen/);
    maxPods++;
    fleet('{beforeChange: {command: [env], env: {X: {env: NOT_SET}}}}');
    const missing = await run('apply', '--yes', ...ofFile(), '--limit', 'node1');
    expect(missing.stderr).toContain('hooks: the environment variable NOT_SET is not set or empty');
    expect(maxPodsOf(1)).toBe(String(maxPods - 1));
    fleet('{beforeChange: {command: [env], env: {X: geheim}}}');
    const inline = await run('plan', ...ofFile());
    expect(inline.stderr).toContain('[FLEET_INLINE_SECRET]');
    expect(inline.stderr).not.toContain('geheim');
  });

  it('refuse the host before any change if the first hook fails, and show its output without terminal codes', async () => {
    maxPods++;
    const before = maxPodsOf(1);
    fleet(
      `{beforeChange: {command: "echo first; printf 'pods\\\\033[31mremain\\\\n' >&2; exit 3"}, afterChange: {command: '${record()}'}}`,
    );
    const { code, stdout, stderr } = await run('apply', '--yes', ...ofFile(), '--limit', 'node1');
    expect([code, stdout]).toEqual([3, '1 host: 1 refused.\n']);
    expect(stderr).toMatch(/the hook beforeChange \(.*\) exited with code 3: pods.*remain\. Nothing was changed\..* \[HOOK_FAILED\]/);
    expect(stderr).toMatch(/output of the hook beforeChange:\n.*first/);
    expect(stderr).not.toContain('\u001b');
    expect(maxPodsOf(1)).toBe(before);
    expect(logged()).toEqual([]);
    const history = await run('fleet', 'history', 'node1', '-f', join(directory, 'fleet.yaml'));
    expect(history.stdout.trimEnd().split('\n').at(-1)).toMatch(/ apply +refused HOOK_FAILED +- +- +none$/);
    const json = await run('fleet', 'history', 'node1', '-f', join(directory, 'fleet.yaml'), '-o', 'json');
    const entries = JSON.parse(json.stdout).hosts[0].entries as readonly object[];
    expect(entries.at(-1)).toMatchObject({ result: 'refused', fields: [], changes: [expect.stringMatching(/^before-change run-hook /)] });
  });

  it('fail the host if the second hook fails or takes too long; the change stays', async () => {
    maxPods++;
    fleet('{afterChange: {command: [tail, -f, /dev/null], timeout: 1s}}');
    const { code, stdout, stderr } = await run('apply', '--yes', ...ofFile(), '--limit', 'node1');
    expect([code, stdout]).toEqual([1, '1 host: 1 failed.\n']);
    expect(stderr).toContain(
      'the hook afterChange (tail -f /dev/null) did not finish within 1s. The change of the host succeeded and is kept.',
    );
    expect(maxPodsOf(1)).toBe(String(maxPods));
    expect((await run('apply', '--yes', ...ofFile(), '--limit', 'node1')).stdout).toBe('1 host: 1 unchanged.\n');
  });
});
