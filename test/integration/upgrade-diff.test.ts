import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { CA_MOUNT_DIRS } from '../../src/kubeadm/control-plane/paths.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../support/fake-host.ts';
import { type InitRecording, initRecordings } from '../support/kubeadm-recordings.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const MANIFESTS = '/etc/kubernetes/manifests';
const NAMES = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-upgrade-diff-'));
const kubeconfig = join(directory, 'admin.conf');
const ADMIN = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://10.0.0.11:6443', insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;
writeFileSync(kubeconfig, ADMIN, { mode: 0o600 });
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface World {
  readonly kubeadmConfig: KubeObject;
  readonly files: Readonly<Record<string, string>>;
}

/** The cluster and the control plane host that kubeadm created. */
function worldOf({ expected }: InitRecording): World | null {
  const { files = {}, apiActions = [] } = expected;
  const kubeadmConfig = apiActions.find(({ object }) => object?.metadata.name === 'kubeadm-config' && object.kind === 'ConfigMap')?.object;
  const manifests = Object.entries(files).flatMap(([path, text]) => {
    const name = NAMES.find((each) => path.endsWith(`/manifests/${each}.yaml`));
    return name === undefined ? [] : [[`${MANIFESTS}/${name}.yaml`, text]];
  });
  if (kubeadmConfig === undefined || manifests.length !== NAMES.length) return null;
  const text = Object.fromEntries(manifests)[`${MANIFESTS}/kube-apiserver.yaml`];
  const cas = CA_MOUNT_DIRS.filter((path) => text.includes(`path: ${path}\n`)).map((path) => [`${path}/x.pem`, '']);
  return { kubeadmConfig, files: Object.fromEntries([...manifests, ...cas]) };
}

function diff({ kubeadmConfig, files }: World, ...args: readonly string[]): Promise<CliResult> {
  const connectHost = async ({ address = 'localhost' }): Promise<FakeHost> => fakeHost({ name: address, files });
  const connectCluster = async () => fakeCluster({ objects: [kubeadmConfig] });
  return runCommand(['upgrade', 'diff', ...args, '--kubeconfig', kubeconfig], { services: () => ({ connectHost, connectCluster }) });
}

const worlds = initRecordings().flatMap((recording) => {
  const world = worldOf(recording);
  return world === null ? [] : [{ name: recording.name, world, isPatched: recording.input.includes('patches') }];
});
const DEFAULTS = worlds.find(({ name }) => name === '01-defaults')?.world as World;

describe("upgrade diff of kubeadm's manifests", () => {
  it.each(worlds.filter(({ isPatched }) => !isPatched))('finds no difference at the same version: $name', async ({ world }) => {
    const { code, stdout, stderr } = await diff(world);
    expect([code, stdout], stderr).toEqual([0, '']);
  });

  it('shows the images of another version', async () => {
    const { code, stdout, stderr } = await diff(DEFAULTS, 'v1.36.9', '-c', '0');
    expect(code, stderr).toBe(0);
    const lines = stdout.split('\n').filter((line) => !line.startsWith('@@'));
    expect(lines).toEqual([
      ...NAMES.flatMap((name) => [
        `--- ${MANIFESTS}/${name}.yaml`,
        '+++ new manifest',
        `-    image: registry.k8s.io/${name}:${/image: .*:(.*)/.exec(DEFAULTS.files[`${MANIFESTS}/${name}.yaml`] ?? '')?.[1]}`,
        `+    image: registry.k8s.io/${name}:v1.36.9`,
      ]),
      '',
    ]);
  });

  it('shows a manual change with three lines of context', async () => {
    const path = `${MANIFESTS}/kube-scheduler.yaml`;
    const text = (DEFAULTS.files[path] ?? '').replace('priorityClassName: system-node-critical', 'priorityClassName: mine');
    const { stdout } = await diff({ ...DEFAULTS, files: { ...DEFAULTS.files, [path]: text } });
    expect(stdout).toContain(`--- ${path}\n`);
    expect(stdout).toContain('-  priorityClassName: mine\n+  priorityClassName: system-node-critical\n');
    expect(stdout.split('\n').filter((line) => line.startsWith(' '))).toHaveLength(6);
  });

  it('keeps the proxy variables of the existing manifests', async () => {
    const env = '    env:\n    - name: HTTPS_PROXY\n      value: http://proxy.example:3128\n';
    const files = Object.fromEntries(
      Object.entries(DEFAULTS.files).map(([path, text]) => [path, text.replace(/^ {4}image:/m, (line) => `${env}${line}`)]),
    );
    expect((await diff({ ...DEFAULTS, files })).stdout).toBe('');
  });

  it('has no signing key without the key of the CA, as kubeadm with an external CA', async () => {
    const pki = '/etc/kubernetes/pki';
    const external = await diff({ ...DEFAULTS, files: { ...DEFAULTS.files, [`${pki}/ca.crt`]: 'CRT' } });
    expect(external.stdout).toContain(`-    - --cluster-signing-key-file=${pki}/ca.key\n`);
    expect((await diff({ ...DEFAULTS, files: { ...DEFAULTS.files, [`${pki}/ca.crt`]: 'CRT', [`${pki}/ca.key`]: 'KEY' } })).stdout).toBe('');
  });

  it('names the hosts if several are given', async () => {
    const { stdout } = await diff(DEFAULTS, 'v1.36.9', '--host', 'cp1', '--host', 'cp2');
    expect(stdout.split('\n').filter((line) => line.startsWith('--- '))).toEqual(
      ['cp1', 'cp2'].flatMap((host) => NAMES.map((name) => `--- ${host}:${MANIFESTS}/${name}.yaml`)),
    );
  });

  it('reports missing manifests, an invalid version and an invalid number', async () => {
    const { [`${MANIFESTS}/kube-scheduler.yaml`]: _, ...files } = DEFAULTS.files;
    const missing = await diff({ ...DEFAULTS, files });
    expect([missing.code, missing.stderr]).toEqual([3, expect.stringContaining('[UPGRADE_MANIFEST_MISSING]')]);
    expect((await diff(DEFAULTS, 'x')).code).toBe(2);
    expect((await diff(DEFAULTS, '-c', 'x')).code).toBe(2);
    expect((await diff(DEFAULTS, '--context-lines=-1')).code).toBe(2);
  });

  it('reads the version and the context from UpgradeConfiguration', async () => {
    const config = join(directory, 'upgrade.yaml');
    writeFileSync(
      config,
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: UpgradeConfiguration\ndiff:\n  kubernetesVersion: v1.36.8\n  contextLines: 1\n',
    );
    const { code, stdout, stderr } = await diff(DEFAULTS, '--config', config);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('+    image: registry.k8s.io/kube-apiserver:v1.36.8\n');
    expect(stdout.split('\n').filter((line) => line.startsWith(' '))).toHaveLength(2 * NAMES.length);
  });
});
