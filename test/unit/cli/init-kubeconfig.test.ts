import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { PlanDocument } from '../../../src/host/plan/document.ts';
import type { ClusterTarget } from '../../../src/kubeadm/control-plane/cluster-target.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { runCommand } from '../../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-init-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const kubeconfig = join(directory, 'admin.conf');
writeFileSync(
  kubeconfig,
  JSON.stringify({
    kind: 'Config',
    'current-context': 'admin@shop',
    contexts: [{ name: 'admin@shop', context: { cluster: 'k', user: 'u' } }],
    clusters: [{ name: 'k', cluster: { server: 'https://shop.test:6443' } }],
    users: [{ name: 'u', user: { token: 't' } }],
  }),
);
const PHASE = ['init', 'phase', 'upload-config', 'kubeadm', '--rootfs', join(directory, 'root'), '--node-name', 'cp-1'];
const OTHERS = ['--apiserver-advertise-address', '192.0.2.10', '--dry-run'];
const NAME = 'context "admin@shop", https://shop.test:6443';

async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const targets: ClusterTarget[] = [];
  const cluster = Object.assign(fakeCluster(), { server: 'https://shop.test:6443', context: 'admin@shop' });
  const connectCluster = async (target: ClusterTarget) => {
    targets.push(target);
    return cluster;
  };
  const connectHost = async () => fakeHost({ name: 'node3' });
  return {
    ...(await runCommand(args, { env, services: () => ({ connectCluster, ...(args.includes('--rootfs') ? {} : { connectHost }) }) })),
    targets,
  };
}

describe('init with KUBECONFIG', () => {
  it('bootstraps a control plane and reports that the variable is ignored', async () => {
    const args = ['init', '--rootfs', join(directory, 'root'), '--node-name', 'cp-1', ...OTHERS, '-o', 'json'];
    const { code, stdout, stderr, targets } = await run(args, { KUBECONFIG: kubeconfig });
    expect(code, stderr).toBe(0);
    const phases = (JSON.parse(stdout) as PlanDocument).hosts[0]?.changes.map(({ phase }) => phase);
    expect(phases).toContain('certs/ca');
    expect(targets).toEqual([]);
    const notice = `init ignores the environment variable KUBECONFIG (${kubeconfig}) and bootstraps a new cluster. To use the existing cluster, pass --kubeconfig\n`;
    expect(stderr.split(notice)).toHaveLength(2);
  });

  it('reports nothing about an empty variable, or one that --kubeconfig replaces', async () => {
    expect((await run([...PHASE, ...OTHERS], { KUBECONFIG: '' })).stderr).not.toContain('KUBECONFIG');
    expect((await run([...PHASE, ...OTHERS, '--kubeconfig', kubeconfig], { KUBECONFIG: '/nowhere' })).stderr).not.toContain('KUBECONFIG');
  });

  it('connects to no cluster in a phase alone', async () => {
    const args = ['init', 'phase', 'upload-config', 'kubeadm', '--node-name', 'cp-1', ...OTHERS];
    expect((await run(args, { KUBECONFIG: kubeconfig })).targets).toEqual([]);
  });

  it('refuses --context without --kubeconfig', async () => {
    const { code, stderr } = await run([...PHASE, ...OTHERS, '--context', 'admin@shop'], { KUBECONFIG: kubeconfig });
    expect([code, stderr]).toEqual([2, expect.stringContaining('--context requires --kubeconfig')]);
  });
});

describe('the name of the cluster', () => {
  it('is in the first line on stderr and in the plan of init --kubeconfig', async () => {
    const given = [...PHASE, ...OTHERS, '--kubeconfig', kubeconfig];
    const text = await run(given);
    expect(text.code, text.stderr).toBe(0);
    expect(text.stderr.split('\n')[0]).toBe(`cluster: ${NAME} (${kubeconfig})`);
    expect(text.stdout).toContain(`\ncluster ${NAME}\n`);
    const { stdout } = await run([...given, '-o', 'json']);
    expect((JSON.parse(stdout) as PlanDocument).cluster).toMatchObject({ context: 'admin@shop', server: 'https://shop.test:6443' });
  });

  it.each([
    ['token create', ['token', 'create', 'abcdef.0123456789abcdef', '--dry-run']],
    ['token delete', ['token', 'delete', 'abcdef', '--dry-run']],
    ['dynamic gc', ['dynamic', 'gc', '--dry-run']],
    ['dynamic reset', ['dynamic', 'reset', 'node1', '--dry-run']],
    ['csr approve', ['csr', 'approve', '--all', '--dry-run']],
  ])('is in the first line of %s, with the kubeconfig of KUBECONFIG', async (_, args) => {
    const { stderr } = await run(args, { KUBECONFIG: kubeconfig });
    expect(stderr.split('\n')[0]).toBe(`cluster: ${NAME} (${kubeconfig})`);
  });

  it.each([
    ['token list', ['token', 'list']],
    ['csr list', ['csr', 'list']],
    ['dynamic status', ['dynamic', 'status']],
  ])('is not in the output of %s, which only reads', async (_, args) => {
    const { code, stderr } = await run(args, { KUBECONFIG: kubeconfig });
    expect([code, stderr]).toEqual([0, '']);
  });
});
