import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HAS_SCHEDULER, importControlPlaneImages } from '../support/control-plane-images.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const binaries = findRealBinaries();
const kubelet = typeof binaries === 'string' ? null : binaries.kubelet;
const missing = whyNoControlPlane() ?? (kubelet === null ? 'there is no kubelet (KUBEBUILDER_ASSETS)' : null) ?? whyNoLabHosts();

describe.skipIf(requirement('a cluster brought up by a fleet file', missing))('a cluster brought up by a fleet file', () => {
  let lab: LabHosts;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-fleet-'));

  beforeAll(async () => {
    if (typeof binaries === 'string' || kubelet === null) return;
    lab = startLabHosts(3, kubelet, 'control-plane');
    for (const name of lab.names) lab.reset(name);
    writeFileSync(join(directory, 'fleet.yaml'), fleet(lab.address('node1')));
    writeFileSync(join(directory, 'cluster.yaml'), CLUSTER);
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
        'SystemVerification,Swap,FileExisting-losetup',
      ],
      { env: { XDG_STATE_HOME: directory } },
    );

  it('is planned: the first control plane in full, the rest later', async () => {
    const { code, stdout, stderr } = await run('plan');
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/~ \[join\] later: it joins the cluster that node1 makes/);
    expect(existsSync(join(directory, 'admin.conf'))).toBe(false);
  });

  it('comes up, and the workers join', async () => {
    const { code, stdout, stderr } = await run('apply');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('3 hosts: 3 changed.\n');
    expect(statSync(join(directory, 'admin.conf')).mode & 0o777).toBe(0o600);
  }, 900_000);

  it('has nothing to do then', async () => {
    const { code, stdout, stderr } = await run('plan', '--exit-code');
    expect([code, stdout], stderr).toEqual([0, '3 hosts: 3 as they should be.\n']);
    const { stdout: rows } = await runCommand(['fleet', 'status', '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig]);
    const nodes = rows.trim().split('\n').slice(1);
    expect(nodes.map((line) => line.split(/ {2,}/)).map(([host, , , , health, node, drift]) => [host, health, node, drift])).toEqual(
      ['node2', 'node3', 'node1'].map((host) => [host, 'ok', 'Ready', 'none']),
    );
  }, 300_000);

  it('writes the kubeconfig again when it was lost, and changes nothing else', async () => {
    const before = readFileSync(join(directory, 'admin.conf'), 'utf8');
    rmSync(join(directory, 'admin.conf'));
    const { code, stdout, stderr } = await run('apply');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('3 hosts: 3 as they should be.\n');
    expect(readFileSync(join(directory, 'admin.conf'), 'utf8')).toBe(before);
  }, 300_000);
});

const fleet = (address: string): string => `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf, configuration: cluster.yaml}
baseline:
  nodeIP: ${address.replace(/\d+$/, '0/24')}
hosts:
  - {name: node2, labels: {pool: a}}
  - {name: node3, kubeletConfiguration: {maxPods: 30}}
  - {name: node1, role: controlPlane, kubeletConfiguration: {maxPods: 20}}
`;
const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
skipPhases: [${HAS_SCHEDULER ? '' : 'control-plane/scheduler'}]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
