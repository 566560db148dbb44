import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createCa } from '../../../lab/api-server/pki.ts';
import { AppError } from '../../../src/base/errors.ts';
import type { PlanDocument } from '../../../src/host/plan/document.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import type { ClusterTarget } from '../../../src/kubeadm/control-plane/cluster-target.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { hostCommands } from '../../support/host-to-join.ts';
import { runCommand } from '../../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-init-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const kubeconfig = join(directory, 'admin.conf');
const { certPem } = await createCa();
const withCa = join(directory, 'with-ca.conf');
for (const [file, ca] of [
  [kubeconfig, {}],
  [withCa, { 'certificate-authority-data': Buffer.from(certPem).toString('base64') }],
] as const)
  writeFileSync(
    file,
    JSON.stringify({
      kind: 'Config',
      'current-context': 'admin@shop',
      contexts: [{ name: 'admin@shop', context: { cluster: 'k', user: 'u' } }],
      clusters: [{ name: 'k', cluster: { server: 'https://shop.test:6443', ...ca } }],
      users: [{ name: 'u', user: { token: 't' } }],
    }),
  );
const PHASE = ['init', 'phase', 'upload-config', 'kubeadm', '--rootfs', join(directory, 'root'), '--node-name', 'cp-1'];
const OTHERS = ['--apiserver-advertise-address', '192.0.2.10', '--dry-run'];
const LISTENING = '   0: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n';
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
  it('bootstraps a control plane: the variable is ignored, as in kubeadm', async () => {
    const args = ['init', '--rootfs', join(directory, 'root'), '--node-name', 'cp-1', ...OTHERS, '-o', 'json'];
    const { code, stdout, stderr, targets } = await run(args, { KUBECONFIG: kubeconfig });
    expect(code, stderr).toBe(0);
    const phases = (JSON.parse(stdout) as PlanDocument).hosts[0]?.changes.map(({ phase }) => phase);
    expect(phases).toContain('certs/ca');
    expect(targets).toEqual([]);
  });

  it('uses the cluster of --kubeconfig in a phase alone, not that of the variable', async () => {
    const { code, stderr, targets } = await run([...PHASE, ...OTHERS, '--kubeconfig', kubeconfig], { KUBECONFIG: '/nowhere' });
    expect([code, targets.length], stderr).toEqual([0, 1]);
  });

  it('connects to no cluster in a phase alone', async () => {
    const { code, stderr, targets } = await run([...PHASE, ...OTHERS], { KUBECONFIG: kubeconfig });
    expect([code, targets], stderr).toEqual([0, []]);
  });

  it('refuses --context without --kubeconfig', async () => {
    const { code, stderr } = await run([...PHASE, ...OTHERS, '--context', 'admin@shop'], { KUBECONFIG: kubeconfig });
    expect([code, stderr]).toEqual([2, expect.stringContaining('--context requires --kubeconfig')]);
  });
});

describe('init with --kubeconfig', () => {
  const message = `init creates a new control plane, so it has no option --kubeconfig. To join hosts to the cluster of ${kubeconfig}, run kubeletadm cluster adopt --kubeconfig ${kubeconfig}, then kubeletadm join for each host. [USAGE]\n`;

  it('is refused with the command that prepares an existing cluster', async () => {
    const services = () => ({ connectCluster: async () => expect.unreachable(), connectHost: async () => expect.unreachable() });
    const args = ['init', '--kubeconfig', kubeconfig, '--host', 'node1'];
    expect(await runCommand(args, { services })).toMatchObject({ code: 2, stdout: '', stderr: message });
    const named = message.replace(/--kubeconfig (\S+), then/, '--kubeconfig $1 --context other, then');
    expect(await runCommand([...args, '--context', 'other'], { services })).toMatchObject({ code: 2, stderr: named });
    expect(await runCommand(['init', '--context', 'other'], { services })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/has no option --context\. .* cluster adopt --kubeconfig FILE --context other, then/),
    });
  });

  it('names the commands as kubeadm under that name', async () => {
    const { stderr } = await runCommand(['init', '--kubeconfig', kubeconfig], { env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' } });
    expect(stderr).toContain(`run kubeadm cluster adopt --kubeconfig ${kubeconfig}, then kubeadm join for each host`);
  });

  it('is not suggested for a misspelt option', async () => {
    expect((await runCommand(['init', '--kubeconfi', kubeconfig])).stderr).toBe(
      'unknown option --kubeconfi for init. See kubeletadm init --help. [USAGE]\n',
    );
  });

  it.each(['kubelet-start', 'preflight', 'certs ca', 'mark-control-plane', 'show-join-command'])(
    'is refused for the phase %s, which has no such option in kubeadm',
    async (name) => {
      const services = () => ({ connectCluster: async () => expect.unreachable(), connectHost: async () => expect.unreachable() });
      const result = await runCommand(['init', 'phase', ...name.split(' '), '--kubeconfig', kubeconfig], { services });
      const stderr = `init phase ${name} has no option --kubeconfig. Only these phases of init have --kubeconfig: upload-config, upload-certs, bootstrap-token, addon. To join hosts to an existing cluster, run kubeletadm cluster adopt, then kubeletadm join for each host. [USAGE]\n`;
      expect(result).toMatchObject({ code: 2, stdout: '', stderr });
    },
  );
});

describe('a phase of init with --kubeconfig', () => {
  const phase = async (name: string, version = 'v1.36.2', more: readonly string[] = [], file = withCa) => {
    const cluster = Object.assign(fakeCluster({ gitVersion: version }), { server: 'https://shop.test:6443' });
    const args = ['init', 'phase', ...name.split(' '), '--rootfs', join(directory, 'root'), '--node-name', 'cp-1', ...OTHERS.slice(0, 2)];
    const services = () => ({ connectCluster: async () => cluster });
    return { cluster, ...(await runCommand([...args, ...more, '--kubeconfig', file], { services })) };
  };
  const map = async (cluster: Cluster, namespace: string, name: string) =>
    JSON.stringify((await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name }))?.data);

  it('writes the address and CA of the kubeconfig to cluster-info', async () => {
    const { code, stderr, cluster } = await phase('bootstrap-token');
    expect(code, stderr).toBe(0);
    const text = await map(cluster, 'kube-public', 'cluster-info');
    expect(text).toContain('server: https://shop.test:6443');
    expect(text).toContain(`certificate-authority-data: ${Buffer.from(certPem).toString('base64')}`);
  });

  it('writes neither CA nor address of the host to cluster-info of a kubeconfig without a CA', async () => {
    const pki = join(directory, 'root/etc/kubernetes/pki');
    mkdirSync(pki, { recursive: true });
    writeFileSync(join(pki, 'ca.crt'), certPem);
    const { code, stderr, cluster } = await phase('bootstrap-token', 'v1.36.2', [], kubeconfig);
    rmSync(pki, { recursive: true });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('cluster-info needs the address and the CA of the API server (--kubeconfig)');
    expect(await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-public', name: 'cluster-info' })).toBeNull();
  });

  it('connects to no API server of the host in a dry run in which that of the kubeconfig is unreachable', async () => {
    const connected: string[] = [];
    const unreachable = async () => Promise.reject(new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'connection refused' }));
    const connectCluster = async ({ kubeconfig: { file } }: ClusterTarget) => {
      connected.push(file);
      return Object.assign(fakeCluster(), file === withCa ? { version: unreachable } : {});
    };
    const files = { '/etc/kubernetes/admin.conf': readFileSync(withCa, 'utf8'), '/proc/net/tcp': LISTENING };
    const connectHost = async () =>
      fakeHost({
        name: 'node3',
        commands: { ...hostCommands('node3'), date: () => ({ stdout: `${Math.floor(Date.now() / 1000)}\n` }) },
        files,
      });
    const args = ['init', 'phase', 'bootstrap-token', '--kubeconfig', withCa, ...OTHERS];
    const { code, stdout, stderr } = await runCommand(args, { services: () => ({ connectCluster, connectHost }) });
    expect([code, connected], stderr).toEqual([0, [withCa]]);
    expect(stderr).toContain('The plan assumes an empty cluster [CLUSTER_UNREACHABLE]');
    expect(stdout).toContain('cluster-info');
  });

  it('accepts any declared version in a dry run in which the API server is unreachable', async () => {
    const version = async () => Promise.reject(new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'connection refused' }));
    const plan = (name: string, ...declared: readonly string[]) => {
      const args = ['init', 'phase', ...name.split(' '), '--rootfs', join(directory, 'root'), '--node-name', 'cp-1', ...OTHERS];
      const services = () => ({ connectCluster: async () => Object.assign(fakeCluster(), { version }) });
      return runCommand([...args, '--kubeconfig', withCa, '--diff', ...declared.flatMap((each) => ['--kubernetes-version', each])], {
        services,
      });
    };
    const { code, stdout, stderr } = await plan('bootstrap-token', 'v1.34.1');
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('cluster-info');
    expect((await plan('upload-config kubeadm', 'v1.34.1')).stdout).toContain('kubernetesVersion: v1.34.1');
    expect((await plan('upload-config kubeadm')).stdout).toContain('needs the version of the control plane (--kubernetes-version)');
    expect((await plan('addon coredns', 'v1.34.1')).stderr).toContain('[KUBERNETES_VERSION_UNSUPPORTED]');
  });

  it('declares the version of the API server in a new kubeadm-config', async () => {
    const { code, stderr, cluster } = await phase('upload-config kubeadm', 'v1.35.3');
    expect(code, stderr).toBe(0);
    expect(await map(cluster, 'kube-system', 'kubeadm-config')).toContain('kubernetesVersion: v1.35.3');
  });

  it('uses the version of the API server instead of another declared one, with a warning', async () => {
    const declared = ['--kubernetes-version', 'v1.36.2'];
    const { code, stderr, cluster } = await phase('upload-config kubeadm', 'v1.35.3', declared);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('kubernetesVersion is v1.36.2, but the API server is v1.35.3');
    expect(await map(cluster, 'kube-system', 'kubeadm-config')).toContain('kubernetesVersion: v1.35.3');
    const addon = await phase('addon kube-proxy', 'v1.35.3', declared);
    expect([addon.code, addon.stderr]).toEqual([0, expect.not.stringContaining('but the API server is')]);
  });

  it.each([
    ['bootstrap-token', 'v1.34.1', 'kube-public', 'cluster-info'],
    ['upload-config kubelet', 'v1.34.1', 'kube-system', 'kubelet-config'],
    ['upload-config kubelet', 'v1.21.14', 'kube-system', 'kubelet-config-1.21'],
    ['upload-config kubeadm', 'v1.34.1', 'kube-system', 'kubeadm-config'],
  ])('%s writes to a cluster of version %s, whose control plane init could not create', async (name, version, namespace, object) => {
    const { code, stderr, cluster } = await phase(name, version);
    expect(code, stderr).toBe(0);
    expect(await map(cluster, namespace, object)).toBeDefined();
  });

  it('declares the port of --apiserver-bind-port and a skipped add-on in a new kubeadm-config', async () => {
    const more = ['--control-plane-endpoint', 'api.test', '--apiserver-bind-port', '7443', '--skip-phases', 'addon/kube-proxy'];
    const { code, stderr, cluster } = await phase('upload-config kubeadm', 'v1.34.1', more);
    expect(code, stderr).toBe(0);
    const text = await map(cluster, 'kube-system', 'kubeadm-config');
    expect(text).toContain('controlPlaneEndpoint: api.test:7443');
    expect(text).toContain('proxy:\\n  disabled: true');
  });

  it('refuses add-ons of an unsupported version', async () => {
    const { code, stderr } = await phase('addon coredns', 'v1.34.1');
    expect([code, stderr]).toEqual([2, expect.stringContaining('[KUBERNETES_VERSION_UNSUPPORTED]')]);
  });
});

describe('the name of the cluster', () => {
  it('is in the first line on stderr and in the plan of init phase --kubeconfig', async () => {
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
