import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ETCD_PROBES, HAS_PROXY, HAS_SCHEDULER, writeClusterImages } from '../support/control-plane-images.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const binaries = findRealBinaries();
const kubelet = typeof binaries === 'string' ? null : binaries.kubelet;
const missing =
  whyNoKubelet() ?? (HAS_SCHEDULER && HAS_PROXY ? null : 'kube-scheduler or kube-proxy not found (KUBEBUILDER_ASSETS)') ?? whyNoLabHosts();

/** The hosts have no images and reach no registry: the bundle contains all images, and a program. */
describe.skipIf(requirement('a cluster from a bundle', missing))('a cluster from a bundle', () => {
  let lab: LabHosts;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-bundle-'));
  const at = (path: string): string => join(directory, path);

  beforeAll(() => {
    if (typeof binaries === 'string' || kubelet === null) return;
    lab = startLabHosts(2, kubelet, 'bundle');
    for (const name of lab.names) lab.reset(name);
    for (const each of ['images', 'patches', 'bin']) mkdirSync(at(each));
    writeClusterImages(at('images'), binaries);
    writeFileSync(at('bin/busybox'), readFileSync('/bin/busybox'));
    writeFileSync(at('patches/etcd.yaml'), ETCD_PROBES);
    writeFileSync(at('cluster.yaml'), CLUSTER);
    writeFileSync(at('fleet.yaml'), fleet(lab.address('node1'), readFileSync(at('bin/busybox'))));
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
        at('fleet.yaml'),
        '--ssh-config',
        lab.sshConfig,
        '--bundle',
        at('bundle.tar'),
        '--ignore-preflight-errors',
        'SystemVerification,Swap,FileExisting-losetup',
      ],
      { env: { XDG_STATE_HOME: directory } },
    );
  const images = (host: string): readonly string[] =>
    lab
      .run(host, 'ctr -n k8s.io images ls -q')
      .split('\n')
      .filter((name) => /^[^@]*:[^@:]*$/.test(name) && !name.startsWith('sha256:'));

  /** The condition Ready of each Node, as `fleet status` prints it. */
  const nodes = async (): Promise<Readonly<Record<string, string>>> => {
    const { stdout } = await runCommand(['fleet', 'status', '-f', at('fleet.yaml'), '--ssh-config', lab.sshConfig]);
    const [header = '', ...rows] = stdout.trim().split('\n');
    const start = header.indexOf('STATUS');
    return Object.fromEntries(rows.map((row) => [row.split(' ')[0] ?? '', row.slice(start).split(' ')[0] ?? '']));
  };

  it('is created with the images of the version', async () => {
    const { code, stdout, stderr } = await runCommand([
      'bundle',
      'create',
      '-o',
      at('bundle.tar'),
      '--kubernetes-version',
      'v1.36.2',
      '--images-from',
      at('images'),
      // The sandbox image of the containerd of the hosts.
      '--image',
      'registry.k8s.io/pause:3.6',
      '--file',
      at('bin/busybox'),
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Kubernetes v1.36.2, amd64, 8 images, 1 file');
  }, 300_000);

  it('starts on hosts without images: the control plane and a worker become Ready', async () => {
    expect(lab.names.map(images)).toEqual([[], []]);
    const { code, stdout, stderr } = await run('apply', '--yes');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('2 hosts: 2 changed.\n');
    expect(await nodes()).toEqual({ node1: 'Ready', node2: 'Ready' });
  }, 900_000);

  it('has the images of the control plane on its hosts only, and the program on all', () => {
    const components = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'];
    const has = (host: string, name: string): boolean => images(host).some((image) => image.startsWith(`registry.k8s.io/${name}:`));
    expect(components.map((name) => [has('node1', name), has('node2', name)])).toEqual(components.map(() => [true, false]));
    expect(['kube-proxy', 'coredns/coredns', 'pause'].map((name) => [has('node1', name), has('node2', name)])).toEqual(
      [1, 2, 3].map(() => [true, true]),
    );
    for (const name of lab.names) expect(lab.run(name, '/usr/local/bin/busybox echo it runs')).toBe('it runs\n');
  });

  it('is unchanged by a second apply', async () => {
    const { code, stdout, stderr } = await run('plan', '--exit-code');
    expect([code, stdout], stderr).toEqual([0, '2 hosts: 2 unchanged.\n']);
  }, 300_000);

  describe('with a proxy that does not exist', () => {
    const proxied = (): Promise<CliResult> => {
      const text = fleet(lab.address('node1'), readFileSync(at('bin/busybox')));
      writeFileSync(at('fleet.yaml'), text.replace('{name: node2}', '{name: node2, proxy: {https: "http://192.0.2.1:3128"}}'));
      return run('apply', '--yes', '--limit', 'node2', '--confirm-timeout', '80s');
    };

    it('is rolled back if NO_PROXY does not reach the kubelet, which then cannot reach the API server', async () => {
      const dropIn = '/etc/systemd/system/kubelet.service.d/zz-lab.conf';
      lab.run('node2', `printf '[Service]\\nUnsetEnvironment=NO_PROXY\\n' > ${dropIn} && systemctl daemon-reload`);
      const { code, stderr } = await proxied();
      expect(stderr).toContain('Node node2: the kubelet has not reported its state since its restart');
      expect(stderr).toMatch(/proxy: the previous files were restored and the kubelet is healthy again.*\[ROLLED_BACK\]/);
      expect(code).not.toBe(0);
      expect(lab.run('node2', `rm ${dropIn}; systemctl daemon-reload; ls /etc/kubeletadm 2>/dev/null; true`)).toBe('');
      await expect.poll(nodes, { timeout: 60_000, interval: 2_000 }).toEqual({ node1: 'Ready', node2: 'Ready' });
    }, 300_000);

    it('reaches the API server without the proxy, and is confirmed by the Node', async () => {
      const { code, stderr } = await proxied();
      expect(code, stderr).toBe(0);
      expect(stderr).toMatch(/^node2 changed: created proxy\.env, .*kubelet restarted, confirmed /m);
      expect(stderr).not.toContain('COMMIT_NOT_IN_FORCE');
      expect(lab.run('node2', "tr '\\0' '\\n' < /proc/$(pidof kubelet)/environ")).toMatch(/^NO_PROXY=.*10\.244\.0\.0\/16/m);
      expect(await nodes()).toEqual({ node1: 'Ready', node2: 'Ready' });
    }, 300_000);
  });
});

const fleet = (address: string, tool: Buffer): string => `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf, configuration: cluster.yaml, endpoint: "${address}:6443"}
baseline:
  nodeIP: ${address.replace(/\d+$/, '0/24')}
  install: binaries
  binaries:
    source: https://registry.invalid/bin
    files: [{name: tool, path: /usr/local/bin/busybox, sha256: ${createHash('sha256').update(tool).digest('hex')}}]
hosts:
  - {name: node1, role: controlPlane}
  - {name: node2}
`;
const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
patches: {directory: patches}
timeouts: {controlPlaneComponentHealthCheck: 8m}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
