import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ImageInput, imageArchive } from '../support/container-images.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const binaries = findRealBinaries();
const kubelet = typeof binaries === 'string' ? null : binaries.kubelet;
const missing = whyNoControlPlane() ?? (kubelet === null ? 'there is no kubelet (KUBEBUILDER_ASSETS)' : null) ?? whyNoLabHosts();
/** Where there is none its phase is left out. */
const scheduler = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kube-scheduler');
const hasScheduler = process.env.KUBEBUILDER_ASSETS !== undefined && existsSync(scheduler);

/** A cluster from bare hosts: static pods of Kubernetes itself, started by real kubelets in containerd. */
describe.skipIf(requirement('a control plane made on a bare host', missing))('a control plane made on a bare host', () => {
  let lab: LabHosts;
  let printed = '';
  let address = '';
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-cp-'));

  beforeAll(async () => {
    if (typeof binaries === 'string' || kubelet === null) return;
    lab = startLabHosts(3, kubelet, 'control-plane');
    for (const name of lab.names) lab.reset(name);
    address = lab.address('node1');
    writeFileSync(join(directory, 'init.yaml'), config(`${address}:6443`));
    const images: readonly ImageInput[] = [
      { names: [`${REPOSITORY}/kube-apiserver:v1.36.2`], programs: [binaries.apiserver] },
      { names: [`${REPOSITORY}/kube-controller-manager:v1.36.2`], programs: [binaries.controllerManager ?? ''] },
      etcdImage(binaries.etcd),
      ...(hasScheduler ? [{ names: [`${REPOSITORY}/kube-scheduler:v1.36.2`], programs: [scheduler] }] : []),
      {
        names: ['registry.k8s.io/pause:3.6', 'registry.k8s.io/pause:3.8', `${REPOSITORY}/pause:3.10.2`],
        programs: ['/bin/sleep'],
        entrypoint: ['sleep', '2147483647'],
      },
    ];
    for (const image of images) {
      const archive = imageArchive(image);
      for (const name of lab.names) lab.importImage(name, archive);
    }
  }, 900_000);
  afterAll(() => {
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const without = hasScheduler ? [] : ['--skip-phases', 'control-plane/scheduler'];
  const ignored = ['--ignore-preflight-errors', 'SystemVerification,Swap,FileExisting-losetup'];
  const init = (...more: readonly string[]) =>
    runCommand(['init', '--config', join(directory, 'init.yaml'), ...ssh('node1'), ...without, ...ignored, '--upload-certs', ...more]);

  it('comes up healthy, and the first node is its control plane', async () => {
    const { code, stdout, stderr } = await init('-v', '1');
    expect(code, stderr).toBe(0);
    printed = stdout;
    expect(printed).toMatch(/^ {2}kubeletadm join \S+ .*--control-plane --certificate-key [0-9a-f]{64}$/m);
  }, 600_000);
});

const REPOSITORY = 'registry.k8s.io';

/** A distribution's etcd may be older than the one kubeadm deploys: flags that it does not know are left out. */
function etcdImage(etcd: string): ImageInput {
  const older = join(mkdtempSync(join(tmpdir(), 'kubeletadm-etcd-')), 'etcd-of-the-machine');
  copyFileSync(etcd, older);
  const script = `#!/bin/busybox sh
h=$(etcd-of-the-machine --help 2>&1)
for a in "$@"; do shift; n=\${a%%=*}; case $h in *"$n"*) set -- "$@" "$a";; esac; done
exec etcd-of-the-machine "$@"
`;
  return { names: [`${REPOSITORY}/etcd:3.6.8-0`], programs: [older, '/bin/busybox'], scripts: { etcd: script } };
}

const config = (endpoint: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
controlPlaneEndpoint: ${endpoint}
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
