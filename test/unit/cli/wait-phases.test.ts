import { beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../../lab/api-server/pki.ts';
import { revealText, Secret } from '../../../src/base/text/secret.ts';
import { clientCertificateKubeconfig } from '../../../src/kube/kubeconfig-render.ts';
import { type FakeCluster, fakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { hostCommands } from '../../support/host-to-join.ts';
import { runCommand } from '../../support/run-cli.ts';

const pod = (name: string, ...flags: readonly string[]): string =>
  `kind: Pod\nspec:\n  containers:\n    - command: ${JSON.stringify([name, ...flags])}\n`;
const LISTENING = '   0: 00000000:1D13 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n';
/** A running control plane: its port is not the default, its etcd has data, and its host would not pass preflight. */
const RUNNING = {
  '/etc/kubernetes/manifests/kube-apiserver.yaml': pod('kube-apiserver', '--advertise-address=10.0.0.1', '--secure-port=7443'),
  '/etc/kubernetes/manifests/kube-controller-manager.yaml': pod('kube-controller-manager'),
  '/etc/kubernetes/manifests/kube-scheduler.yaml': pod('kube-scheduler'),
  '/etc/kubernetes/manifests/etcd.yaml': pod('etcd', '--data-dir=/var/lib/etcd'),
  '/var/lib/etcd/member/snap/db': 'data',
  '/proc/net/tcp': LISTENING,
  '/proc/meminfo': 'MemTotal: 100 kB\n',
};

let admin = '';
beforeAll(async () => {
  const { certPem: caPem, issueClient } = await createCa();
  const { certPem: certificatePem, keyPem } = await issueClient({ commonName: 'kubernetes-admin' });
  const user = { clusterName: 'kubernetes', server: 'https://10.0.0.1:7443', user: 'kubernetes-admin' };
  admin = revealText(clientCertificateKubeconfig({ ...user, caPem, certificatePem, keyPem: new Secret(keyPem) }));
});

function run(argv: readonly string[], given: Readonly<Record<string, string>> = RUNNING) {
  const files = given === RUNNING ? { ...given, '/etc/kubernetes/admin.conf': admin } : given;
  const queried: string[] = [];
  const http = (url: string) => {
    queried.push(url);
    return { status: 200, body: 'ok' } as const;
  };
  const host = fakeHost({
    name: 'cp-1',
    units: {},
    files,
    commands: { ...hostCommands('cp-1'), date: () => ({ stdout: `${Math.floor(Date.now() / 1000)}\n` }) },
    http,
  });
  const cluster: FakeCluster = fakeCluster();
  const services = () => ({ connectHost: async () => host, connectCluster: async () => cluster });
  return { host, cluster, queried, result: runCommand(argv, { services }) };
}

describe('a phase that waits, run alone', () => {
  it.each([['init'], ['join']])(
    '%s phase wait-control-plane waits for the manifests on the host, without a configuration',
    async (command) => {
      const { queried, result, host } = run([command, 'phase', 'wait-control-plane']);
      expect(await result).toMatchObject({ code: 0, stderr: expect.not.stringContaining('ERR') });
      expect(queried.toSorted()).toEqual([
        'https://10.0.0.1:7443/livez',
        'https://127.0.0.1:10257/healthz',
        'https://127.0.0.1:10259/livez',
      ]);
      expect(JSON.stringify(host.performed)).not.toContain('write-file');
    },
  );

  it('of init binds the user of admin.conf, as kubeadm does', async () => {
    const { cluster, result } = run(['init', 'phase', 'wait-control-plane']);
    await result;
    const binding = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', name: 'kubeadm:cluster-admins' };
    expect(await cluster.get(binding)).not.toBeNull();
  });

  it.each([
    ['init', 3],
    ['join', 1],
  ])('%s fails on a host without a control plane', async (command, code) => {
    const failed = await run([command, 'phase', 'wait-control-plane'], { '/proc/net/tcp': '' }).result;
    expect(failed).toMatchObject({ code, stderr: expect.stringContaining('[CONTROL_PLANE_MISSING]') });
  });

  it('never advises to remove the data of etcd', async () => {
    const { stderr } = await run(['init', 'phase', 'preflight', '--node-name', 'cp-1', '--apiserver-advertise-address', '10.0.0.1']).result;
    expect(stderr).toContain('preflight');
    expect(stderr).not.toContain('rm -r');
  });
});
