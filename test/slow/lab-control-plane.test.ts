import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type NetConnectOpts, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab, LabHost } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('a control plane of stand-in static pods', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-lab-control-plane-'));
  const destinations = new Set<string>();
  let lab: Lab;
  let first: LabHost;

  beforeAll(async () => {
    const { connect: connectSocket } = Socket.prototype;
    vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket, ...args: unknown[]) {
      const options = [args[0]].flat()[0] as NetConnectOpts;
      if ('port' in options) destinations.add(options.host ?? 'localhost');
      return Reflect.apply(connectSocket, this, args);
    });
    lab = await startLab({ directory, hosts: 2 });
    first = lab.hosts[0] as LabHost;
  });
  afterEach(() => {
    expect([...destinations].filter((host) => !host.startsWith('127.'))).toEqual([]);
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    await lab.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const run = async (host: string, ...words: readonly string[]): Promise<CliResult> => {
    const result = await runCommand([...words, '--ssh-config', lab.sshConfig, '--host', host]);
    expect(result, `${words.join(' ')}\n${result.stderr}`).toMatchObject({ code: 0 });
    return result;
  };
  const asKubeadm = async (host: string, ...words: readonly string[]): Promise<string> => {
    const env = { KUBELETADM_PROGRAM_NAME: 'kubeadm' };
    const { code, stdout, stderr } = await runCommand([...words, '--ssh-config', lab.sshConfig, '--host', host], { env });
    expect(code, `${words.join(' ')}\n${stderr}`).toBe(0);
    return stdout;
  };
  const file = (path: string): string => readFileSync(join(first.rootDir, path), 'utf8');
  const asAdmin = async <T>(work: (cluster: Cluster) => Promise<T>): Promise<T> => {
    const cluster = kubeCluster({ kubeconfig: { text: file('etc/kubernetes/admin.conf'), file: 'admin.conf' } });
    try {
      return await work(cluster);
    } finally {
      await cluster.close();
    }
  };

  it('does not start with an endpoint that may be another machine for the local host', async () => {
    const config = join(directory, 'other.yaml');
    const init =
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\ntimeouts:\n  controlPlaneComponentHealthCheck: 3s\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.1\nencryptionAlgorithm: ECDSA-P256\n';
    writeFileSync(config, init);
    const { code, stderr } = await runCommand(['init', '--config', config, '--ssh-config', lab.sshConfig, '--host', 'node1']);
    expect(code).toBe(1);
    expect(stderr).toContain(`the lab requires init --control-plane-endpoint ${first.loopback}:6443`);
    await run('node1', 'reset', '--force');
  });

  it('is created by init, and accepts workers', async () => {
    const config = join(directory, 'init.yaml');
    const endpoint = `${first.loopback}:6443`;
    writeFileSync(
      config,
      `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nmetadata: {name: config}\nkubernetesVersion: v1.36.1\nencryptionAlgorithm: ECDSA-P256\ncontrolPlaneEndpoint: ${endpoint}\n---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmetadata: {name: config}\nmaxPods: 64\n`,
    );
    // The file of kind, with metadata and other documents, and the options of kubespray.
    const options = ['--ignore-preflight-errors=all', '--skip-phases=addon/coredns', '--upload-certs', '--v=1'];
    const stdout = await asKubeadm('node1', 'init', `--config=${config}`, ...options);
    expect(stdout).toMatch(/ --certificate-key [0-9a-f]{64}\n/);
    expect(file('var/lib/kubelet/config.yaml')).toContain('\nmaxPods: 64\n');
    expect(stdout).toContain('\nYour Kubernetes control-plane has initialized successfully!\n');
    // The last two lines are the command for workers, as scripts expect it of kubeadm.
    const [, words = ''] = /^kubeadm (join .*)$/s.exec(stdout.trimEnd().split('\n').slice(-2).join('\n').replace('\\\n', '')) ?? [];
    expect(await asKubeadm('node2', ...words.split(/\s+/))).toMatch(/^\nThis node has joined the cluster:\n/);
    expect(await asAdmin((cluster) => cluster.version())).toBe('v1.36.1');
    const { items } = await asAdmin((cluster) => cluster.list({ apiVersion: 'v1', kind: 'Node' }));
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['node1', 'node2']);
  });

  it('creates and deletes tokens with the option before the command', async () => {
    const kubeadm = async (...words: readonly string[]): Promise<CliResult> =>
      runCommand(['--kubeconfig', join(first.rootDir, 'etc/kubernetes/admin.conf'), ...words], {
        env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' },
      });
    const token = 'kubesp.0123456789abcdef';
    expect(await kubeadm('token', 'create', token)).toMatchObject({ code: 0, stdout: `${token}\n` });
    expect((await kubeadm('token', 'list')).stdout).toContain(`\n${token} `);
    expect(await kubeadm('token', 'delete', token)).toMatchObject({ code: 0, stdout: 'bootstrap token "kubesp" deleted\n' });
    const { stdout } = await kubeadm('token', 'create', '--print-join-command', '--ttl=0');
    expect(stdout).toMatch(/^kubeadm join 127\.\S+:6443 --token \S+ --discovery-token-ca-cert-hash sha256:[0-9a-f]{64} \n$/);
  });

  it('uploads its certificates with the key in the last line', async () => {
    for (const { stdout } of [
      await run('node1', 'init', 'phase', 'upload-certs', '--upload-certs'),
      { stdout: await asKubeadm('node1', 'init', 'phase', 'upload-certs', '--upload-certs') },
    ])
      expect(stdout).toMatch(/^\[upload-certs\] Storing .*\n\[upload-certs\] Using certificate key:\n[0-9a-f]{64}\n$/);
  });

  it('shows and renews its certificates', async () => {
    expect(await asKubeadm('node1', 'certs', 'check-expiration')).toMatch(
      /^\[check-expiration\] Reading configuration from the "kubeadm-config" .*\n\[check-expiration\] Use .*\n\nCERTIFICATE /,
    );
    const { stdout } = await run('node1', 'certs', 'check-expiration');
    expect(stdout).toMatch(/^apiserver-etcd-client .* 364d .* etcd-ca /m);
    const before = file('etc/kubernetes/pki/apiserver.crt');
    await run('node1', 'certs', 'renew', 'all');
    expect(file('etc/kubernetes/pki/apiserver.crt')).not.toBe(before);
  });

  /** The certificate that the API server serves. */
  const served = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: first.loopback, port: 6443, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
        socket.destroy();
      }).on('error', reject);
    });
  const written = (): string => new X509Certificate(file('etc/kubernetes/pki/apiserver.crt')).fingerprint256;

  it('restarts its static pods one after the other to use renewed certificates', async () => {
    // The previous test has renewed the certificate without a restart.
    expect(await served()).not.toBe(written());
    const { stdout, stderr } = await run('node1', 'certs', 'renew', 'all', '--restart');
    expect(stdout).toMatch(/^node1: 11 certificates renewed, valid until \d{4}-\d\d-\d\d; 4 static Pods restarted\n$/);
    expect(await served()).toBe(written());
    const steps = [...stderr.matchAll(/^node1 \[restart\/([a-z-]+)\] (stopped|\S+ runs in a new container, healthy)/gm)];
    expect(steps.map(([, name, what]) => `${name} ${what === 'stopped' ? 'stopped' : 'healthy'}`)).toEqual(
      ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].flatMap((name) => [`${name} stopped`, `${name} healthy`]),
    );
    expect(stderr).not.toContain('RESTART_NEEDED');
    const plan = await run('node1', 'certs', 'renew', 'scheduler.conf', '--restart', '--dry-run');
    expect(plan.stdout).toContain('~ restart static pod kube-scheduler: uses scheduler.conf\n');
    expect(plan.stdout).not.toContain('restart static pod etcd');
  });

  it('gives the kubeconfig of the administrator, and replaces no kubeconfig of another cluster', async () => {
    const out = join(directory, 'copy.conf');
    const { stdout } = await run('node1', 'kubeconfig', 'admin');
    writeFileSync(out, '', { mode: 0o644 });
    await run('node1', 'kubeconfig', 'admin', '--kubeconfig-out', out);
    expect(readFileSync(out, 'utf8')).toBe(stdout);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    expect(stdout).toContain(`server: https://${first.loopback}:6443\n`);
    await run('node1', 'kubeconfig', 'admin', '--kubeconfig-out', out);
    const words = ['kubeconfig', 'admin', '--kubeconfig-out', lab.kubeconfig];
    const other = readFileSync(lab.kubeconfig, 'utf8');
    const refused = await runCommand([...words, '--ssh-config', lab.sshConfig, '--host', 'node1']);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(
      /admin\.conf exists: it is a kubeconfig of another cluster, https:\/\/\S+\. The file was not changed\..* \[KUBECONFIG_EXISTS\]\n$/,
    );
    expect(readFileSync(lab.kubeconfig, 'utf8')).toBe(other);
    const init = await runCommand(['init', '--kubeconfig-out', lab.kubeconfig, '--ssh-config', lab.sshConfig, '--host', 'node1']);
    expect(init).toMatchObject({ code: 2, stdout: '' });
    expect(readFileSync(lab.kubeconfig, 'utf8')).toBe(other);
    expect((await runCommand(['kubeconfig', 'admin', '--ssh-config', lab.sshConfig, '--host', 'node2'])).stderr).toContain(
      'node2: /etc/kubernetes/admin.conf does not exist: the host is not a control plane',
    );
  });

  it('is upgraded, keeps its objects, and is unchanged by a second upgrade', async () => {
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine', namespace: 'default' } };
    await asAdmin((cluster) => cluster.create(configMap));
    const stdout = await asKubeadm('node1', 'upgrade', 'apply', 'v1.36.2', '--yes');
    expect(stdout).toContain('\n[upgrade] SUCCESS! A control plane node of your cluster was upgraded to "v1.36.2".\n');
    expect(await asAdmin((cluster) => cluster.version())).toBe('v1.36.2');
    const found = await asAdmin((cluster) => cluster.get({ ...configMap, name: 'mine', namespace: 'default' }));
    expect(found?.metadata.name).toBe('mine');
    expect((await run('node1', 'upgrade', 'node')).stdout).toMatch(/Nothing to do\.\n$/);
  });

  it('is created again, with its kubeconfig, its Nodes, and a command that joins from this host', async () => {
    await run('node1', 'reset', '--force');
    const out = join(directory, 'new.conf');
    const init = ['init', '--kubernetes-version', 'v1.36.1', '--control-plane-endpoint', `${first.loopback}:6443`];
    const { stdout, stderr } = await run('node1', ...init, '--kubeconfig-out', out);
    expect(stdout).toContain(
      `\nThe control plane is running on node1. Nodes: Ready: node1.\n\nTo use the cluster, run:\n\n  export KUBECONFIG=${out}\n`,
    );
    const command = / (join \S+ --token \S+ --discovery-token-ca-cert-hash \S+ --host NEW-HOST --ssh-config \S+)\n/.exec(stdout)?.[1] ?? '';
    await run('node2', 'reset', '--force');
    const joined = await runCommand(command.replace('NEW-HOST', 'node2').split(' '));
    expect(joined, joined.stderr).toMatchObject({ code: 0 });
    const token = / --token (\S+)/.exec(command)?.[1] ?? '';
    expect(stderr).not.toContain(token.split('.')[1]);
    expect((await runCommand(['status', '--kubeconfig', out])).stdout).toMatch(/^node1 .* Ready .*\nnode2 .* Ready /m);
    const again = await run('node1', ...init, '--skip-token-print');
    expect(again.stdout).toMatch(
      /Nodes: Ready: node1, node2\.\n\nTo use the cluster from this host, .*\n\n {2}\S.* kubeconfig admin --host node1 --ssh-config \S+ --kubeconfig-out admin\.conf\n {2}export KUBECONFIG=\$PWD\/admin\.conf\n/,
    );
    expect(again.stdout).toContain('--token <value withheld> ');
  });

  it('loses its data with reset, and its API server stops', async () => {
    await run('node1', 'reset', '--force');
    expect(readdirSync(join(first.rootDir, 'var/lib/etcd'))).toEqual([]);
    expect(file('proc/net/tcp')).not.toMatch(/:192B /);
  });
});
