import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('the proxy of a fleet file', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const env = (): Readonly<Record<string, string>> => ({ XDG_STATE_HOME: join(directory, 'state'), PROXY_LOGIN: "me:geheim'@" });
  const run = (command: string, ...args: readonly string[]): Promise<CliResult> =>
    runCommand([command, ...args, '--ssh-config', lab.sshConfig], { env: env() });
  const fleet = (proxy: string): readonly string[] => {
    const file = join(directory, 'fleet.yaml');
    const text = `cluster: {kubeconfig: ${lab.kubeconfig}}\nbaseline: {proxy: ${proxy}}\nhosts: [{name: node1}]\n`;
    writeFileSync(file, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n${text}`);
    return ['-f', file];
  };
  const onHost = (path: string): string => join(lab.hosts[0]?.rootDir ?? '', path);
  const PROXY = '{https: "http://proxy.example.com:3128", noProxy: [.example.com], credentials: {env: PROXY_LOGIN}}';

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-proxy-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 1 });
    await startFirstNode(lab);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is planned without its credentials, applied with a restart of the kubelet, unchanged in a second run, and removed', async () => {
    const file = fleet(PROXY);
    const saved = join(directory, 'plan.json');
    const plan = await run('plan', ...file, '--out', saved, '--diff');
    expect(plan.stdout).toMatch(/^ {2}\+ \[proxy\] write-file \/etc\/kubeletadm\/proxy\.env \(0600 root:root\)/m);
    expect(plan.stdout).toMatch(/^ +\+ *HTTPS_PROXY=http:\/\/\[secret\]@proxy\.example\.com:3128$/m);
    expect(plan.stdout).toContain('NO_PROXY=localhost,127.0.0.1,::1,10.96.0.0/12,.svc,.cluster.local,');
    expect(plan.stdout).toMatch(/\[proxy\] restart-unit kubelet: its proxy changes$/m);
    const applied = await run('apply', saved, '-v', '5');
    expect(applied.code, applied.stderr).toBe(0);
    for (const text of [plan.stdout, plan.stderr, applied.stdout, applied.stderr, readFileSync(saved, 'utf8')])
      expect(text).not.toContain('geheim');
    expect(readFileSync(onHost('etc/kubeletadm/proxy.env'), 'utf8')).toContain(
      'HTTPS_PROXY=http://me:geheim%27%40@proxy.example.com:3128\n',
    );
    expect(statSync(onHost('etc/kubeletadm/proxy.env')).mode & 0o777).toBe(0o600);
    expect(await run('apply', ...file, '--yes')).toMatchObject({ code: 0, stdout: expect.stringContaining('1 unchanged') });
    const removed = await run('apply', ...fleet('{https: none}'), '--yes');
    expect(removed.code, removed.stderr).toBe(0);
    expect(existsSync(onHost('etc/kubeletadm/proxy.env'))).toBe(false);
    expect(existsSync(onHost('etc/systemd/system/kubelet.service.d/http-proxy.conf'))).toBe(false);
  });

  it('refuses hosts whose credentials are not set', async () => {
    const { code, stderr } = await run('plan', ...fleet(PROXY.replace('PROXY_LOGIN', 'NO_LOGIN')));
    expect({ code, stderr }).toMatchObject({
      code: expect.any(Number),
      stderr: expect.stringContaining('the environment variable NO_LOGIN is not set or empty'),
    });
    expect(code).not.toBe(0);
  });

  it('is removed by a reset, and not reported as left on the host', async () => {
    expect(await run('apply', ...fleet(PROXY), '--yes')).toMatchObject({ code: 0 });
    const plan = await run('reset', '--force', '--host', 'node1', '--dry-run');
    expect(plan.stdout).toMatch(/^ {2}- \/etc\/kubeletadm\/proxy\.env/m);
    expect(plan.stdout).not.toMatch(/not removed: .*http-proxy/);
    const { code, stdout, stderr } = await run('reset', '--force', '--host', 'node1', '-v', '5');
    expect(code, stderr).toBe(0);
    expect(stderr).not.toMatch(/left on the host: .*http-proxy/);
    expect(plan.stdout + stdout + stderr).not.toContain('geheim');
    expect(existsSync(onHost('etc/kubeletadm/proxy.env'))).toBe(false);
    expect(existsSync(onHost('etc/systemd/system/kubelet.service.d/http-proxy.conf'))).toBe(false);
  });
});
