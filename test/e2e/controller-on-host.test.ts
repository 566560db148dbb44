import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { leaderLease } from '../../src/rollouts/controller/lease.ts';
import { CONTROLLER_BINDING, hostsOfController } from '../../src/rollouts/install/controller-rights.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-bundle.ts';

const CONF = '/etc/kubernetes/kubeletadm-controller.conf';
const UNIT = '/etc/systemd/system/kubeletadm-controller.service';
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
    lab.expose(Number(port));
    for (const name of lab.names) {
      lab.reset(name);
      await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
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

  it('x', async () => {
    const dry = await install('--dry-run', '--diff');
    console.log(dry.code, dry.stdout, dry.stderr);
    const done = await install();
    console.log(done.code, done.stdout, done.stderr);
    console.log(
      await lab.query(
        'node1',
        `systemctl status kubeletadm-controller; journalctl -u kubeletadm-controller | tail -20; ls -l ${CONF} /usr/local/lib/kubeletadm-controller; ls -laR /run/credentials; curl -s 127.0.0.1:10247/metrics | grep leader; systemd-analyze security kubeletadm-controller | tail -60`,
      ),
    );
    console.log(
      await lab.query(
        'node1',
        `p=$(systemctl show -p MainPID --value kubeletadm-controller); cat /proc/$p/status | grep -E 'Uid|VmRSS|Cap|Seccomp'; tr '\\0' ' ' </proc/$p/cmdline; cat ${UNIT}`,
      ),
    );
    const again = await install();
    console.log(again.code, again.stdout, again.stderr);
    console.log(
      hostsOfController(await cluster.get(CONTROLLER_BINDING)),
      JSON.stringify(await cluster.get(leaderLease('kubeletadm-system'))),
    );
    const gone = await controller('uninstall', '--host', 'node1');
    console.log(gone.code, gone.stdout, gone.stderr);
    const last = await controller('uninstall', '--host', 'node2');
    console.log(last.code, last.stdout, last.stderr);
  }, 300_000);
});
