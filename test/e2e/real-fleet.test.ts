import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ETCD_PROBES, HAS_SCHEDULER, importControlPlaneImages } from '../support/control-plane-images.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const binaries = findRealBinaries();
const kubelet = typeof binaries === 'string' ? null : binaries.kubelet;
const missing = whyNoKubelet() ?? (HAS_SCHEDULER ? null : 'kube-scheduler not found (KUBEBUILDER_ASSETS)') ?? whyNoLabHosts();

describe.skipIf(requirement('a cluster bootstrapped from a fleet file', missing))('a cluster bootstrapped from a fleet file', () => {
  let lab: LabHosts;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-fleet-'));

  beforeAll(async () => {
    if (typeof binaries === 'string' || kubelet === null) return;
    lab = startLabHosts(3, kubelet, 'control-plane');
    for (const name of lab.names) lab.reset(name);
    writeFileSync(join(directory, 'fleet.yaml'), fleet(lab.address('node1')));
    writeFileSync(join(directory, 'cluster.yaml'), CLUSTER);
    mkdirSync(join(directory, 'patches'));
    writeFileSync(join(directory, 'patches/etcd.yaml'), ETCD_PROBES);
    writeFileSync(join(directory, 'patches/kubeletconfiguration+merge.yaml'), 'imageGCHighThresholdPercent: 91\n');
    importControlPlaneImages(lab, binaries);
  }, 900_000);
  afterAll(() => {
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const run = (...args: readonly string[]): Promise<CliResult> =>
    runCommand(
      [
        ...args,
        '-f',
        join(directory, 'fleet.yaml'),
        '--ssh-config',
        lab.sshConfig,
        '--ignore-preflight-errors',
        // The Node of a reset host stays Ready for a while.
        'SystemVerification,Swap,FileExisting-losetup,ImagePull,NodeExists',
      ],
      { env: { XDG_STATE_HOME: directory } },
    );

  it('is planned: the first control plane in full, the other hosts later', async () => {
    const { code, stdout, stderr } = await run('plan');
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/> \[join\] later: waits for node1 to bootstrap the cluster/);
    expect(existsSync(join(directory, 'admin.conf'))).toBe(false);
  });

  it('starts: one control plane bootstraps it, another one and a worker join', async () => {
    const { code, stdout, stderr } = await run('apply', '--yes', '-v', '1');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('3 hosts: 3 changed.\n');
    expect(stderr).toContain('[etcd-join/promote] patched Member node2');
    expect(statSync(join(directory, 'admin.conf')).mode & 0o777).toBe(0o600);
  }, 900_000);

  it('is unchanged by a second apply', async () => {
    const { code, stdout, stderr } = await run('plan', '--exit-code');
    expect([code, stdout], stderr).toEqual([0, '3 hosts: 3 unchanged.\n']);
    const { stdout: rows } = await runCommand(['fleet', 'status', '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig]);
    const nodes = rows.trim().split('\n').slice(1);
    expect(nodes.map((line) => line.split(/ {2,}/)).map(([host, , , , , health, node, drift]) => [host, health, node, drift])).toEqual(
      ['node3', 'node1', 'node2'].map((host) => [host, 'ok', 'Ready', 'none']),
    );
  }, 300_000);

  it('gets a lost kubeconfig written again, and nothing else changes', async () => {
    const before = readFileSync(join(directory, 'admin.conf'), 'utf8');
    rmSync(join(directory, 'admin.conf'));
    const { code, stdout, stderr } = await run('apply', '--yes');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('3 hosts: 3 unchanged.\n');
    expect(readFileSync(join(directory, 'admin.conf'), 'utf8')).toBe(before);
  }, 300_000);

  it('accepts a control plane again that was reset', async () => {
    const reset = await runCommand(['reset', '--force', '--host', 'node2', '--ssh-config', lab.sshConfig]);
    expect(reset.code, reset.stderr).toBe(0);
    expect(reset.stderr).toContain('[remove-etcd-member] deleted Member node2');
    expect(reset.stderr).not.toContain('PODS_STAY');
    const { code, stdout, stderr } = await run('apply', '--yes');
    expect([code, stdout], stderr).toEqual([0, '3 hosts: 1 changed, 2 unchanged.\n']);
    expect(lab.run('node2', 'cat /etc/kubernetes/manifests/etcd.yaml')).toContain('path: /health');
    expect(lab.run('node2', 'cat /var/lib/kubelet/config.yaml')).toContain('imageGCHighThresholdPercent: 91');
    expect((await run('plan', '--exit-code')).stdout).toBe('3 hosts: 3 unchanged.\n');
  }, 300_000);
});

const fleet = (address: string): string => `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf, configuration: cluster.yaml, endpoint: "${address}:6443"}
baseline:
  nodeIP: ${address.replace(/\d+$/, '0/24')}
hosts:
  - {name: node3, labels: {pool: a}, kubeletConfiguration: {maxPods: 30}}
  - {name: node1, role: controlPlane, kubeletConfiguration: {maxPods: 20}}
  - {name: node2, role: controlPlane}
`;
const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
patches: {directory: patches}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
