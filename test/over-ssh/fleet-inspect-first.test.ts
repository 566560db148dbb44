import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { targetName } from '../../src/fleet/host-target.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

/** The host of the group edge would get a change that needs --allow unsafe, which only the host shows. */
describe('apply -y, if a host is refused by its facts', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let connections: string[] = [];
  let maxPods = 70;
  const config = (host: number): string => readFileSync(join(lab.hosts[host - 1]?.rootDir ?? '', 'var/lib/kubelet/config.yaml'), 'utf8');
  const fleet = (edge: string, more = ''): string => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
groups:
  - name: core
    kubeletConfiguration:
      maxPods: ${++maxPods}
  - name: edge
    kubeletConfiguration:
      ${edge}
hosts:
  - {name: node2, groups: [core]}
  - {name: node3, groups: [edge]}
${more}`,
    );
    return file;
  };
  const run = (...args: readonly string[]): Promise<CliResult> => {
    connections = [];
    return runCommand([...args, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: join(directory, 'state') },
      services: ({ connectHost }) => ({
        connectHost: (target, reporter) => {
          connections.push(targetName(target));
          return connectHost(target, reporter);
        },
      }),
    });
  };
  const apply = (file: string, ...args: readonly string[]): Promise<CliResult> => run('apply', '-y', '-f', file, ...args);
  const REFUSED = 'cgroupDriver: cgroupfs';

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-inspect-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
    const joined = await apply(fleet('podPidsLimit: 900'));
    expect(joined.code, joined.stderr).toBe(0);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('changes nothing, and lists the refusals with their lines of the file', async () => {
    const before = config(2);
    const file = fleet(REFUSED);
    const { code, stdout, stderr } = await apply(file);
    expect([code, stdout]).toEqual([3, '2 hosts: 1 refused, 1 not started.\n']);
    expect(stderr).toContain(`node3: the change has the impact unsafe`);
    expect(stderr).toContain(`${file}:10:7`);
    expect(stderr).toMatch(/1 of 2 hosts was refused.*nothing was changed.*--max-fail.*\[FLEET_STOPPED\]$/m);
    expect(config(2)).toBe(before);
    expect(connections.toSorted()).toEqual(['node2', 'node3']);
    // The host that was not started is unfinished.
    const retried = await apply(fleet('podPidsLimit: 900'), '--retry', 'failed');
    expect([retried.code, retried.stdout]).toEqual([0, '2 hosts: 1 changed, 1 unchanged.\n']);
  });

  it.each([
    ['--max-fail', '1'],
    ['--max-fail', '100%'],
    ['--no-inspect-first', ''],
  ])('changes the other hosts with %s %s', async (...args) => {
    const { code, stdout } = await apply(fleet(REFUSED), ...args.filter(Boolean));
    expect([code, stdout]).toEqual([4, '2 hosts: 1 changed, 1 refused.\n']);
    expect(config(2)).toContain(`maxPods: ${maxPods}\n`);
  });

  it('changes the other hosts if one is unreachable', async () => {
    const file = fleet('podPidsLimit: 900', '  - {name: dead, address: 127.0.0.1, ssh: {port: 1}}\n');
    const { code, stdout } = await apply(file);
    expect([code, stdout]).toEqual([4, '3 hosts: 1 changed, 1 unchanged, 1 unreachable.\n']);
    expect(config(2)).toContain(`maxPods: ${maxPods}\n`);
  });

  it('connects to no host more often than without the inspection', async () => {
    expect((await apply(fleet('podPidsLimit: 901'), '--no-inspect-first')).code).toBe(0);
    const once = connections.toSorted();
    expect((await apply(fleet('podPidsLimit: 902'))).code).toBe(0);
    expect(connections.toSorted()).toEqual(once);
  });

  it('reports one end of each host, and each warning once, as events', async () => {
    const file = fleet('podPidsLimit: 903\n      kubeReserved: {cpu: "64"}');
    const { code, stdout, stderr } = await apply(file, '-o', 'json', '--allow-pod-loss');
    expect(code, stderr).toBe(0);
    const events: { readonly code: string; readonly host?: string; readonly level: string; readonly message: string }[] = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const ended = events.filter((event) => event.code === 'HOST_ENDED').map(({ host, message }) => `${host} ${message}`);
    expect(ended.toSorted()).toEqual(['node2 changed', 'node3 changed']);
    const warnings = events.filter(({ level }) => level === 'warning').map((event) => `${event.host} ${event.code} ${event.message}`);
    expect(warnings.length).toBeGreaterThan(0);
    expect(new Set(warnings).size).toBe(warnings.length);
  });

  it('changes no host of upgrade node --host either, unless --max-fail permits the refused host', async () => {
    const credentials = join(lab.hosts[2]?.rootDir ?? '', 'etc/kubernetes/kubelet.conf');
    const upgrade = (...args: readonly string[]): Promise<CliResult> =>
      run('upgrade', 'node', '--host', 'node2', '--host', 'node3', '--set', 'maxPods=33', ...args);
    const before = config(2);
    renameSync(credentials, `${credentials}.away`);
    try {
      const { code, stdout, stderr } = await upgrade();
      expect([code, stdout], stderr).toEqual([3, '2 hosts: 1 refused, 1 not started.\n']);
      expect(stderr).toMatch(/^not started: node2\nrefused: node3$/m);
      expect(stderr).toMatch(/^node3: .*\[NODE_NO_CREDENTIALS\]$/m);
      expect(stderr).toMatch(/1 of 2 hosts was refused, and nothing was changed\..*\[FLEET_STOPPED\]$/m);
      expect(config(2)).toBe(before);
      expect(await upgrade('--max-fail', '1')).toMatchObject({ code: 4, stdout: '2 hosts: 1 changed, 1 refused.\n' });
      expect(config(2)).toContain('maxPods: 33\n');
      // Inspected, planned again and changed over one connection, and confirmed over another.
      expect(connections.toSorted()).toEqual(['node2', 'node2', 'node3']);
    } finally {
      renameSync(`${credentials}.away`, credentials);
    }
  });
});
