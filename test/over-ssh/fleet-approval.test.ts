import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const CONFIG = 'var/lib/kubelet/config.yaml';

/** A port that no program uses. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('the approval of apply', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const questions: string[] = [];
  const configOf = (host: number): string => join(lab.hosts[host - 1]?.rootDir ?? '', CONFIG);
  const config = (host: number): string => (existsSync(configOf(host)) ? readFileSync(configOf(host), 'utf8') : '');
  const fleet = (maxPods: number, more = ''): string => {
    const file = join(directory, 'fleet.yaml');
    const hosts = 'hosts: [{name: node2}, {name: node3}]\n';
    const baseline = `baseline: {kubeletConfiguration: {maxPods: ${maxPods}}}\n`;
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n${baseline}${more === '' ? hosts : more}`,
    );
    return file;
  };
  const env = (): Readonly<Record<string, string>> => ({ XDG_STATE_HOME: join(directory, 'state') });
  const apply = (file: string, ...args: readonly string[]): Promise<CliResult> =>
    runCommand(['apply', '-f', file, '--ssh-config', lab.sshConfig, '--canary', '0', ...args], { env: env() });
  /** On a terminal; `answer` is called with each question. */
  const asking = (file: string, answer: () => boolean, ...args: readonly string[]): Promise<CliResult> => {
    questions.length = 0;
    const confirm = async (question: string): Promise<boolean> => {
      questions.push(question);
      return answer();
    };
    return runCommand(['apply', '-f', file, '--ssh-config', lab.sshConfig, '--canary', '0', ...args], {
      env: env(),
      services: () => ({ canAsk: true, confirm }),
    });
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-approval-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it.each([
    ['without a terminal', [], 'standard input is not a terminal'],
    ['with -o json', ['-o', 'json'], '-o json prints only events'],
  ])('cannot be given %s: the error names both ways, and no host is contacted', async (_, options, why) => {
    const argv = ['apply', '-f', fleet(60), ...options];
    const { code, stderr } = await runCommand(argv, {
      env: env(),
      services: () => ({
        connectHost: async () => {
          throw new Error('a host was contacted');
        },
      }),
    });
    expect(code).toBe(2);
    expect(stderr).toContain(`apply asks before it changes anything, but ${why}. `);
    expect(stderr).toMatch(/--yes.*plan --out FILE.*apply FILE.*\[USAGE\]/);
  });

  it('can be declined: the plan is shown and nothing is changed', async () => {
    const { code, stdout, stderr } = await asking(fleet(60), () => false);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^cluster .*\nnode2, node3 \(2 hosts\)\n/m);
    expect(stdout).toContain('  + /var/lib/kubelet/config.yaml\n');
    expect(stdout).toContain('2 hosts: 2 pending (2 nodes join).\n');
    expect(stderr).toMatch(/(?:^|\n)apply was declined: nothing was changed\n$/);
    expect(questions).toEqual(['Apply these changes? [y/N] ']);
    expect([config(2), config(3)]).toEqual(['', '']);
  });

  it('applies the approved changes, and asks nothing without changes', async () => {
    const first = await asking(fleet(60), () => true);
    expect(first.code, first.stderr).toBe(0);
    expect(first.stdout).toMatch(/2 hosts: 2 changed\.\n$/);
    expect(config(2)).toContain('maxPods: 60\n');
    const again = await asking(fleet(60), () => false);
    expect(again).toMatchObject({ code: 0, stdout: '2 hosts: 2 unchanged.\n' });
    expect(questions).toEqual([]);
  });

  it('counts hosts and fields, and shows the highest impact', async () => {
    const more = 'hosts: [{name: node2}, {name: node3, kubeletConfiguration: {maxPods: 61, podPidsLimit: 900}}]\n';
    const { stdout } = await asking(fleet(60, more), () => false);
    expect(stdout).toMatch(/^2 hosts: 1 pending \(2 fields on 1 host\), 1 unchanged; highest impact: [a-z-]+\.$/m);
  });

  it('counts a host that was unreachable when the plan was made for --max-unavailable', async () => {
    const more = 'hosts: [{name: node2}, {name: node3}, {name: dead, address: 127.0.0.1, ssh: {port: 1}}]\n';
    const { code, stderr } = await asking(fleet(65, more), () => true, '--max-unavailable', '1');
    expect(questions).toHaveLength(1);
    expect(stderr).toContain('2 hosts: dead is unreachable or not Ready, and --max-unavailable permits no further host');
    expect(code).toBe(3);
    expect(config(2)).toContain('maxPods: 60\n');
  });

  it('does not cover a host that changed after the question', async () => {
    const edit = (): boolean => {
      writeFileSync(configOf(3), `${config(3).replace('maxPods: 60', 'maxPods: 61')}# by hand\n`);
      return true;
    };
    const { code, stdout, stderr } = await asking(fleet(70), edit);
    expect(code).toBe(4);
    expect(stdout).toMatch(/2 hosts: 1 changed, 1 refused\.\n$/);
    expect(stderr).toContain('node3 difference between the approved plan and the current plan:\n');
    expect(stderr).toMatch(
      /node3: the host or the cluster changed since the plan was approved: maxPods 60→70 planned, now 61→70\. .*rerun kubeletadm apply.*\[PLAN_STALE\]/,
    );
    expect(stderr).not.toMatch(/saved|--replan/);
    expect(config(2)).toContain('maxPods: 70\n');
    expect(config(3)).toContain('maxPods: 61\n');
    // The next run shows the edit, and --retry failed knows the host.
    const retried = await asking(fleet(70), () => true, '--retry', 'failed', '--diff');
    expect(retried.code, retried.stderr).toBe(0);
    expect(retried.stdout).toContain('# by hand');
    expect(retried.stdout).toMatch(/1 host: 1 changed\.\n$/);
  });

  it('names unreachable hosts in the plan, and reports them as failures of the run', async () => {
    const more = 'hosts: [{name: node2}, {name: dead, address: 127.0.0.1, ssh: {port: 1}}]\n';
    const { code, stdout, stderr } = await asking(fleet(80, more), () => true);
    expect(code).toBe(4);
    expect(stdout).toMatch(/^not changed: dead: .*\[HOST_UNREACHABLE\]$/m);
    expect(stdout).toMatch(/^2 hosts: 1 pending \(1 field on 1 host\), 1 unreachable; highest impact: [a-z-]+\.$/m);
    expect(stdout).toMatch(/2 hosts: 1 changed, 1 unreachable\.\n$/);
    expect(stderr).toMatch(/^dead: .*\[HOST_UNREACHABLE\]$/m);
    const retried = await asking(fleet(80, more), () => true, '--retry', 'failed');
    expect(retried.stdout).toMatch(/1 host: 1 unreachable\.\n$/);
    expect(questions).toEqual([]);
  });

  it('leaves the report complete: hosts that ended while they were planned are in it', async () => {
    const more =
      'hosts: [{name: node2, kubeletConfiguration: {maxPods: 81}}, {name: node3}, {name: dead, address: 127.0.0.1, ssh: {port: 1}}]\n';
    const unchanged = 'hosts: [{name: node3}]\n';
    expect((await apply(fleet(80, unchanged), '--yes')).code).toBe(0);
    const page = join(directory, 'report.html');
    const { code, stdout } = await asking(fleet(80, more), () => true, '--report', page);
    expect(code).toBe(4);
    expect(stdout).toMatch(/3 hosts: 1 changed, 1 unchanged, 1 unreachable\.\n/);
    const html = readFileSync(page, 'utf8');
    for (const word of ['changed', 'unchanged', 'unreachable']) expect(html).toContain(`<b>1</b> ${word}`);
    expect(html).toContain('[HOST_UNREACHABLE]');
  });

  it('shows the plan on the live page, and the page ends with the run', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/${'0123456789abcdef'.repeat(2)}/`;
    const shown: string[] = [];
    const confirm = async (): Promise<boolean> => {
      shown.push(await (await fetch(url)).text());
      return true;
    };
    const argv = ['apply', '-f', fleet(85), '--ssh-config', lab.sshConfig, '--canary', '0', `--serve=:${port}`];
    const services = () => ({ canAsk: true, confirm, newId: async () => '0123456789abcdef' });
    const { code, stderr } = await runCommand(argv, { env: env(), services });
    expect(code, stderr).toBe(0);
    expect(stderr.split(`live page: ${url}\n`)).toHaveLength(2);
    expect(shown[0]).toContain('Planned. Waiting for the answer on the terminal: 2 hosts would be changed.');
    expect(shown[0]).toContain('→ 85');
    await expect(fetch(url)).rejects.toThrow();
  });

  it('is not needed with --yes', async () => {
    const { code, stdout, stderr } = await apply(fleet(90), '--yes');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('2 hosts: 2 changed.\n');
  });
});
