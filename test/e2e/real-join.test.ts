import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { adoptCluster } from '../support/first-node.ts';
import { installProgram, type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const binaries = findRealBinaries();
const missing = whyNoKubelet() ?? whyNoLabHosts();

/** A real control plane and real kubelets, on hosts with systemd and containerd. */
describe.skipIf(requirement('cluster adopt and join with real kubelets', missing))('cluster adopt and join with real kubelets', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  let joinWords: readonly string[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-'));

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(3, directory, CONFIG));
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const readiness = async (name: string): Promise<unknown> => {
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name });
    const { conditions = [] } = (node?.status ?? {}) as { conditions?: readonly JsonObject[] };
    return conditions.find(({ type }) => type === 'Ready')?.status;
  };
  const expectReady = (name: string) => expect.poll(() => readiness(name), { timeout: 60_000, interval: 500 }).toBe('True');

  it('cluster adopt prints a command that joins hosts over SSH', async () => {
    joinWords = await adoptCluster(directory);
    for (const name of ['node1', 'node2']) {
      const { code, stderr } = await runCommand([...joinWords, ...ssh(name)]);
      expect(code, stderr).toBe(0);
      await expectReady(name);
    }
  });

  it('the printed command joins the local host', async () => {
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: 'ignore' });
    lab.put('node3', '/usr/local/bin/node', readFileSync(process.execPath));
    installProgram(lab, 'node3', join(ROOT, 'dist'));
    lab.run('node3', `kubeletadm ${joinWords.join(' ')}`);
    await expectReady('node3');
  });

  it('a second run plans nothing and creates no second token', async () => {
    for (const again of [
      await runCommand([
        'cluster',
        'adopt',
        '--config',
        join(directory, 'init.yaml'),
        '--kubeconfig',
        join(directory, 'admin.conf'),
        '--print-join-command',
        '--dry-run',
        '--exit-code',
      ]),
      await runCommand([...joinWords, ...ssh('node2'), '--dry-run', '--exit-code']),
    ]) {
      expect(again.stdout, again.stderr).toMatch(/Nothing to do\.\n$/);
      expect(again.code).toBe(0);
    }
    const { stdout } = await runCommand(['token', 'list', '--kubeconfig', join(directory, 'admin.conf')]);
    expect(stdout.trimEnd().split('\n')).toHaveLength(2);
  });

  it.each<[string, string, readonly string[]]>([
    [
      'immediately after reset: its kubelet no longer renews the Lease',
      'does not renew its Lease',
      ['--kubeconfig', join(directory, 'admin.conf')],
    ],
    ['after reset with the token only, as soon as the Node is NotReady', 'until Node node2 is no longer Ready', []],
  ])('a worker joins again %s', async (_, progress, words) => {
    // A kubelet creates its Lease up to 10 s after it has started.
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'kube-node-lease', name: 'node2' };
    await expect.poll(() => cluster.get(lease), { timeout: 30_000, interval: 500 }).not.toBeNull();
    const reset = await runCommand(['reset', '--force', ...ssh('node2')]);
    expect(reset.code, reset.stderr).toBe(0);
    expect(await readiness('node2')).toBe('True');
    const again = await runCommand([...joinWords, ...ssh('node2'), ...words]);
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toContain(progress);
    expect(lab.run('node2', 'systemctl is-active kubelet').trim()).toBe('active');
    await expectReady('node2');
  });

  it('the hosts contain no token', () => {
    const secret = joinWords[3]?.slice(7) ?? '';
    expect(secret).toHaveLength(16);
    for (const name of lab.names)
      expect(lab.run(name, `grep -rlF ${secret} /etc /var/lib /var/log /tmp /run /root 2>/dev/null || true`), name).toBe('');
  });

  it.skipIf(requirement('kubeadm joins a cluster of kubeletadm', kubeadmOf() === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : null))(
    'kubeadm joins with the same arguments after reset removed the files that its preflight rejects',
    async () => {
      const reset = await runCommand(['reset', '--force', ...ssh('node2')]);
      expect(reset.code, reset.stderr).toBe(0);
      await cluster.delete({ apiVersion: 'v1', kind: 'Node', name: 'node2' });
      lab.put('node2', '/usr/local/bin/kubeadm', readFileSync(kubeadmOf() ?? ''));
      // The local host's kernel has no modules and uses cgroup v1; no preflight error about files is
      // ignored.
      lab.run('node2', `kubeadm ${joinWords.join(' ')} --ignore-preflight-errors=SystemVerification,Hostname,FileExisting-losetup,Swap`);
      await expectReady('node2');
    },
  );
});

function kubeadmOf(): string | null {
  return typeof binaries === 'string' ? null : binaries.kubeadm;
}

const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
