import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { CONTROLLER_BINDING, hostsOfController } from '../../src/rollouts/install/controller-rights.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-bundle.ts';

const CONF = '/etc/kubernetes/kubeletadm-controller.conf';
const CLIENT_PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const BUNDLE = fileURLToPath(new URL('../../dist/kubeletadm.mjs', import.meta.url));
const binaries = findRealBinaries();

/** With a real kube-apiserver if its binary is available. */
describe.skipIf(requirement('lab hosts', whyNoLabHosts()))('the controller as a unit on control planes', () => {
  let api: Pick<RealApiServer, 'url' | 'ca' | 'adminKubeconfig' | 'kubeconfigFor' | 'close'>;
  let lab: LabHosts;
  let cluster: Cluster;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-controller-'));

  beforeAll(async () => {
    api = typeof binaries === 'string' ? await startApiServer() : await startRealApiServer(binaries);
    writeFileSync(join(directory, 'admin.conf'), api.adminKubeconfig());
    cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
    lab = startLabHosts(2);
    const { port } = new URL(api.url);
    // Other tests leave files on the hosts.
    for (const name of lab.names) lab.reset(name);
    lab.expose(Number(port));
    for (const name of lab.names) {
      const node = { apiVersion: 'v1', kind: 'Node', name };
      await cluster.create({ ...node, metadata: { name } });
      const nodeInfo = { machineID: lab.run(name, 'cat /etc/machine-id').trim() };
      await cluster.patch(node, 'strategic', { status: { nodeInfo } }, { subresource: 'status' });
      const kubeconfig = await api.kubeconfigFor(`system:node:${name}`, ['system:nodes']);
      const pem = (part: string): string =>
        Buffer.from(new RegExp(`${part}: (\\S+)`).exec(kubeconfig)?.[1] ?? '', 'base64').toString('utf8');
      lab.run(name, 'mkdir -p /etc/kubernetes/manifests /etc/kubernetes/pki /var/lib/kubelet/pki');
      lab.put(name, '/usr/local/bin/node', readFileSync(process.execPath));
      lab.put(name, CLIENT_PEM, pem('client-certificate-data') + pem('client-key-data'));
      lab.put(name, '/etc/kubernetes/kubelet.conf', kubeconfig.replace(/client-(certificate|key)-data: \S+/g, `client-$1: ${CLIENT_PEM}`));
      lab.put(name, '/etc/kubernetes/pki/ca.crt', api.ca.certPem);
      lab.put(name, '/etc/kubernetes/pki/ca.key', api.ca.keyPem);
      const endpoint = 'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint';
      lab.put(name, '/etc/kubernetes/manifests/kube-apiserver.yaml', `metadata: {annotations: {${endpoint}: '127.0.0.1:${port}'}}\n`);
    }
  }, 900_000);
  afterAll(async () => {
    await cluster?.close();
    await api?.close();
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const controller = (command: string, ...words: readonly string[]) =>
    runCommand(['controller', command, '--ssh-config', lab.sshConfig, '--kubeconfig', join(directory, 'admin.conf'), ...words]);
  const install = (...words: readonly string[]) =>
    controller('install', '--program', BUNDLE, ...lab.names.flatMap((name) => ['--host', name]), ...words);

  const state = (name: string) => lab.query(name, 'systemctl is-active kubeletadm-controller || true').then((text) => text.trim());
  const leads = async (name: string) =>
    /^kubeletadm_controller_leader 1$/m.test(await lab.query(name, 'curl -fs http://127.0.0.1:10247/metrics || true'));
  const leader = async () => {
    const leading = await Promise.all(lab.names.map(leads));
    return lab.names.filter((_, i) => leading[i]).join(' ');
  };
  const rollout = (name: string) => ({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name } });

  it('is installed on two hosts as two replicas, of which one leads; a second run changes nothing', async () => {
    const dry = await install('--dry-run', '--exit-code', '--diff', '-o', 'json');
    expect(dry.code).toBe(6);
    expect(await cluster.get({ apiVersion: 'v1', kind: 'Namespace', name: 'kubeletadm-system' })).toBeNull();
    const done = await install();
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('kubeletadm-controller restarted')]);
    expect([dry, done].map(({ stdout, stderr }) => stdout + stderr).join()).not.toMatch(/PRIVATE KEY|client-key-data/);
    expect(await Promise.all(lab.names.map(state))).toEqual(['active', 'active']);
    expect(hostsOfController(await cluster.get(CONTROLLER_BINDING))).toEqual(['node1', 'node2']);
    await expect.poll(leader, { timeout: 30_000 }).toMatch(/^node[12]$/);
    const again = await install();
    expect([again.code, again.stderr]).toEqual([0, expect.not.stringContaining('changed')]);
    expect((await install('--dry-run', '--exit-code')).code).toBe(0);
  }, 300_000);

  it('runs without privileges, and other users cannot read its kubeconfig', async () => {
    const status = await lab.query('node1', 'cat /proc/$(systemctl show -p MainPID --value kubeletadm-controller)/status');
    expect(Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])).toBeGreaterThan(60_000);
    expect(status).toMatch(/^CapBnd:\t0000000000000000$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(await lab.query('node1', `stat -c '%a %U:%G' ${CONF}; ls /run/credentials/kubeletadm-controller.service`)).toBe(
      '600 root:root\nkubeconfig\n',
    );
    const read =
      'setpriv --reuid=65534 --regid=65534 --clear-groups cat /run/credentials/kubeletadm-controller.service/kubeconfig 2>&1 || true';
    expect(await lab.query('node1', read)).toContain('Permission denied');
    const words = await lab.query('node1', "tr '\\0' ' ' < /proc/$(systemctl show -p MainPID --value kubeletadm-controller)/cmdline");
    expect(words).toMatch(
      / controller --kubeconfig \/run\/credentials\/kubeletadm-controller\.service\/kubeconfig --listen 127\.0\.0\.1:10247 $/,
    );
  });

  it('acts with the rights of its user; the other host takes over', async () => {
    const phase = async (name: string) =>
      ((await cluster.get({ ...rollout(name), name }))?.status as { phase?: string } | undefined)?.phase;
    const spec = { nodeSelector: { matchLabels: { pool: 'none' } }, payload: { overlay: { maxPods: 50 } } };
    await cluster.create({ ...rollout('first'), spec });
    await expect.poll(() => phase('first'), { timeout: 60_000 }).toBe('Complete');
    const [old, other] = (await leader()) === 'node1' ? ['node1', 'node2'] : ['node2', 'node1'];
    await lab.query(old, 'systemctl stop kubeletadm-controller');
    await expect.poll(leader, { timeout: 60_000 }).toBe(other);
    await cluster.create({ ...rollout('second'), spec });
    await expect.poll(() => phase('second'), { timeout: 60_000 }).toBe('Complete');
    // A stopped unit is started again.
    expect((await install()).code).toBe(0);
    expect(await state(old)).toBe('active');
  }, 300_000);

  it('gets a renewed certificate by certs renew, which restarts it', async () => {
    const pid = () => lab.query('node1', 'systemctl show -p MainPID --value kubeletadm-controller');
    const sum = () => lab.query('node1', `sha256sum ${CONF}`);
    const before = [await pid(), await sum()];
    const certs = (...words: readonly string[]) => runCommand(['certs', ...words, '--ssh-config', lab.sshConfig, '--host', 'node1']);
    const listed = await certs('check-expiration');
    expect(listed.stdout).toMatch(/^kubeletadm-controller\.conf +\w{3} \d\d, \d{4}/m);
    const renewed = await certs('renew', 'kubeletadm-controller.conf');
    expect([renewed.code, renewed.stderr]).toEqual([0, expect.stringContaining('the controller is ready')]);
    const after = [await pid(), await sum()];
    expect(after.map((text, i) => text === before[i])).toEqual([false, false]);
    expect((await install('--dry-run', '--exit-code')).code).toBe(0);
  }, 120_000);

  it('is removed from one host and continues on the other; reset removes it too', async () => {
    const files = (name: string) =>
      lab.query(
        name,
        'find /etc/kubernetes /etc/systemd /usr/local/lib /run/credentials -name "kubeletadm-controller*"; systemctl show -p LoadState --value kubeletadm-controller',
      );
    const gone = await controller('uninstall', '--host', 'node1');
    expect([gone.code, await files('node1')]).toEqual([0, 'not-found\n']);
    expect(hostsOfController(await cluster.get(CONTROLLER_BINDING))).toEqual(['node2']);
    await expect.poll(leader, { timeout: 60_000 }).toBe('node2');
    const reset = await runCommand([
      'reset',
      '--force',
      '--ssh-config',
      lab.sshConfig,
      '--host',
      'node2',
      '--cri-socket',
      'unix:///run/x.sock',
    ]);
    expect([reset.code, reset.stderr]).toEqual([0, expect.stringContaining('CONTROLLER_RIGHTS_STAY')]);
    expect(await files('node2')).toBe('not-found\n');
    const last = await controller('uninstall', '--host', 'node2', '--node-name', 'node2');
    expect([last.code, last.stdout + last.stderr]).toEqual([0, expect.stringContaining('stays, with the rollouts first, second')]);
    expect(await cluster.get(CONTROLLER_BINDING)).toBeNull();
  }, 180_000);
});
