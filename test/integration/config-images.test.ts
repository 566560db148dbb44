import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { findRealBinaries } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-images-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const config = join(directory, 'init.yaml');
writeFileSync(
  config,
  `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2+lab.1
imageRepository: registry.example.org/k8s
dns: {imageRepository: registry.k8s.io}
etcd: {local: {imageTag: 3.6.9-0}}
proxy: {disabled: true}
`,
);
const list = (...args: readonly string[]) => runCommand(['config', 'images', 'list', ...args]);

describe('config images list', () => {
  it('prints the images of a configuration', async () => {
    const { code, stdout } = await list('--config', config);
    expect(code).toBe(0);
    expect(stdout.trimEnd().split('\n')).toEqual([
      'registry.example.org/k8s/kube-apiserver:v1.36.2_lab.1',
      'registry.example.org/k8s/kube-controller-manager:v1.36.2_lab.1',
      'registry.example.org/k8s/kube-scheduler:v1.36.2_lab.1',
      'registry.k8s.io/coredns/coredns:v1.14.2',
      'registry.example.org/k8s/pause:3.10.2',
      'registry.example.org/k8s/etcd:3.6.9-0',
    ]);
  });

  it('rejects an invalid configuration', async () => {
    expect(await list('--kubernetes-version', '1.20.0')).toMatchObject({ code: 2, stdout: '' });
    expect((await list('--image-repository', 'no such place')).code).toBe(2);
  });

  const binaries = findRealBinaries();
  const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;
  const missing = kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : null;
  it.skipIf(requirement('the images kubeadm lists', missing)).each([
    ['--config', config],
    ['--kubernetes-version', 'v1.35.4'],
    ['--kubernetes-version', '1.36.0', '--image-repository', 'localhost:5000'],
  ])('prints the same as kubeadm: %s %s', async (...args) => {
    const theirs = execFileSync(kubeadm as string, ['config', 'images', 'list', ...args, '-o', 'yaml'], { encoding: 'utf8' });
    expect(parse((await list(...args, '-o', 'yaml')).stdout)).toEqual(parse(theirs));
  });
});
