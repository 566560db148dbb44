import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/adapters/cluster-kube.ts';
import { type ApiServer, startApiServer } from '../../src/lab/api-server/server.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { registerNodes } from '../support/registered-nodes.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const HOSTS = ['node1', 'node2', 'node3', 'node4', 'node5', 'node6'];
const CONFIG = '/var/lib/kubelet/config.yaml';
const DROP_IN = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
const FILES = [CONFIG, '/var/lib/kubelet/instance-config.yaml', '/var/lib/kubelet/kubeadm-flags.env', DROP_IN];
const SHOWN = `for f in ${FILES.join(' ')}; do stat -c '# %n %a %U:%G' $f; cat $f; done`;

describe.skipIf(requirement('lab hosts', whyNoLabHosts()))('a fleet of six real hosts', { timeout: 300_000 }, () => {
  let api: ApiServer;
  let lab: LabHosts;
  let cluster: Cluster | undefined;
  let endNodes: (() => Promise<void>) | undefined;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-e2e-'));
  const file = join(directory, 'fleet.yaml');

  beforeAll(async () => {
    api = await startApiServer({ controllers: ['bootstrap-signer'] });
    for (const [name, key, text] of [
      ['kubeadm-config', 'ClusterConfiguration', CLUSTER],
      ['kubelet-config', 'kubelet', KUBELET],
    ] as const)
      api.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'kube-system' }, data: { [key]: text } });
    writeFileSync(join(directory, 'admin.conf'), api.adminKubeconfig());
    writeFileSync(file, FLEET);
    lab = startLabHosts(HOSTS.length);
    for (const name of HOSTS) lab.reset(name);
    cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
    endNodes = registerNodes(lab, cluster);
  }, 900_000);
  afterAll(async () => {
    await endNodes?.();
    await cluster?.close();
    await api?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const fleet = (...args: readonly string[]): Promise<CliResult> =>
    runCommand(['fleet', ...args, '-f', file, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: directory } });
  const shown = (host: string): string => lab.run(host, SHOWN);

  it('is planned, hosts with the same changes together', async () => {
    const { code, stdout, stderr } = await fleet('plan', '--exit-code');
    expect(code, stderr).toBe(6);
    expect(stdout.split('\n').filter((line) => /^\S/.test(line))).toEqual([
      'node[1:3] (3 hosts)',
      'node4, node5 (2 hosts)',
      'node6',
      '6 hosts: 6 to change.',
    ]);
  });

  it('is applied, and each host has the files that belong to it', async () => {
    const { code, stdout, stderr } = await fleet('apply');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('6 hosts: 6 changed.\n');
    for (const host of HOSTS) await expect(shown(host)).toMatchFileSnapshot(golden(host));
    for (const host of HOSTS)
      expect(lab.run(host, 'systemctl is-active kubelet && curl -s http://127.0.0.1:10248/healthz')).toBe('active\nok');
  });

  it('has nothing to do then', async () => {
    expect(await fleet('plan', '--exit-code')).toMatchObject({ code: 0, stdout: '6 hosts: 6 as they should be.\n' });
    const { code, stdout } = await fleet('status');
    expect(code).toBe(0);
    const rows = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {2,}/));
    expect(rows.map(([host, reachable, , , health, node, drift]) => [host, reachable, health, node, drift])).toEqual(
      HOSTS.map((host) => [host, 'yes', 'ok', 'Ready', 'none']),
    );
    expect(new Set(rows.map(([, , , config]) => config)).size).toBe(3);
  });

  it('shows the drift of a host that was edited by hand, and mends it', async () => {
    const starts = new Map(HOSTS.map((host) => [host, kubeletStart(host)]));
    lab.run('node5', `sed -i 's/^maxPods: .*/maxPods: 7/' ${CONFIG}`);
    const drift = await fleet('drift', '--exit-code');
    expect(drift.code, drift.stderr).toBe(6);
    expect(drift.stdout).toMatch(/^node5 +\/var\/lib\/kubelet\/config\.yaml +its content differs$/m);
    expect((await fleet('apply')).stdout).toBe('6 hosts: 1 changed, 5 as they should be.\n');
    expect(shown('node5')).toBe(readFileSync(golden('node5'), 'utf8'));
    for (const host of HOSTS) expect(kubeletStart(host) === starts.get(host)).toBe(host !== 'node5');
    expect(await fleet('drift', '--exit-code')).toMatchObject({ code: 0, stdout: 'No drift.\n' });
  });

  it('does what a saved plan says, and restarts only kubelets that get other files', async () => {
    writeFileSync(file, FLEET.replace('maxPods: 30', 'maxPods: 31'));
    const starts = new Map(HOSTS.map((host) => [host, kubeletStart(host)]));
    const plan = join(directory, 'plan.json');
    expect((await fleet('plan', '--out', plan)).stdout).toMatch(/^6 hosts: 3 to change, 3 as they should be\.$/m);
    rmSync(file);
    const { code, stdout, stderr } = await runCommand(['apply', plan, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: directory },
    });
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('3 hosts: 3 changed.\n');
    const maxPods = HOSTS.map((host) => lab.run(host, `sed -n 's/^maxPods: //p' ${CONFIG}`).trim());
    expect(maxPods).toEqual(['60', '60', '60', '31', '31', '12']);
    expect(HOSTS.filter((host) => kubeletStart(host) !== starts.get(host))).toEqual(['node4', 'node5']);
  });

  function kubeletStart(host: string): string {
    return lab.run(host, 'systemctl show kubelet -p ExecMainStartTimestampMonotonic --value');
  }
});

function golden(host: string): string {
  return fileURLToPath(new URL(`./golden/fleet/${host}.txt`, import.meta.url));
}

const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
networking: {dnsDomain: cluster.local, serviceSubnet: 10.96.0.0/12}
`;
const KUBELET = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization: {mode: Webhook}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
failCgroupV1: false
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
`;
const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
name: six
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf}
baseline:
  kubeletConfiguration:
    evictionHard: {memory.available: 5%}
groups:
  - name: core
    labels: {pool: core}
    kubeletConfiguration: {maxPods: 60, imageGCHighThresholdPercent: 90}
  - name: edge
    labels: {pool: edge}
    taints: [{key: edge, effect: NoSchedule}]
    kubeletConfiguration:
      maxPods: 30
      evictionHard: {nodefs.available: 15%}
hosts:
  - {name: 'node[1:3]', groups: [core]}
  - {name: 'node[4:5]', groups: [edge]}
  - {name: node6, groups: [edge], kubeletConfiguration: {maxPods: 12}, kubeletExtraArgs: [{name: v, value: "2"}]}
`;
