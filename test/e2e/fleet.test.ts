import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { type PackageRepository, startRepository, type TestPackage, whyNoRepository } from '../support/package-repository.ts';
import { registerNodes } from '../support/registered-nodes.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-bundle.ts';
import type { CliResult } from '../support/run-cli.ts';

const HOSTS = ['node1', 'node2', 'node3', 'node4', 'node5', 'node6'];
const CONFIG = '/var/lib/kubelet/config.yaml';
const DROP_IN = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
const FILES = [CONFIG, '/var/lib/kubelet/instance-config.yaml', '/var/lib/kubelet/kubeadm-flags.env', DROP_IN];
const SHOWN = `for f in ${FILES.join(' ')}; do stat -c '# %n %a %U:%G' $f; cat $f; done`;

describe.skipIf(requirement('lab hosts', whyNoLabHosts()))('fleet of six real hosts', { timeout: 300_000 }, () => {
  let api: LabApiServer;
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
    endNodes = registerNodes(lab, cluster, api.ca);
  }, 900_000);
  afterAll(async () => {
    await endNodes?.();
    lab?.close();
    await cluster?.close();
    await api?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const fleet = (...args: readonly string[]): Promise<CliResult> =>
    runCommand(['fleet', ...args, '-f', file, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: directory } });
  const shown = (host: string): string => lab.run(host, SHOWN);

  it('plan groups hosts with the same changes', async () => {
    const { code, stdout, stderr } = await fleet('plan', '--exit-code');
    expect(code, stderr).toBe(6);
    expect(stdout.split('\n').filter((line) => /^\S/.test(line))).toEqual([
      expect.stringMatching(/^cluster context "kubernetes-admin@kubernetes", https:/),
      'node[1:6] (6 hosts)',
      'canary: node1; the other hosts follow only if the canary succeeds',
      '6 hosts: 6 pending (6 nodes join).',
    ]);
  });

  it('apply gives each host its own files', async () => {
    const { code, stdout, stderr } = await fleet('apply', '--yes');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('6 hosts: 6 changed.\n');
    for (const host of HOSTS) await expect(shown(host)).toMatchFileSnapshot(golden(host));
    for (const host of HOSTS)
      expect(lab.run(host, 'systemctl is-active kubelet && curl -s http://127.0.0.1:10248/healthz')).toBe('active\nok');
  });

  it('a second apply changes nothing', async () => {
    const again = await fleet('plan', '--exit-code');
    expect([again.code, again.stdout], again.stderr).toEqual([0, '6 hosts: 6 unchanged.\n']);
    const { code, stdout, stderr } = await fleet('status');
    expect(code, stderr).toBe(0);
    const rows = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {2,}/));
    expect(rows.map(([host, reachable, , , ...more]) => [host, reachable, ...more])).toEqual(
      HOSTS.map((host) => [host, 'yes', 'file', 'ok', 'Ready', 'none']),
    );
    expect(new Set(rows.map(([, , , config]) => config)).size).toBe(3);
  });

  it('drift of a host that was edited by hand is shown and corrected', async () => {
    const starts = new Map(HOSTS.map((host) => [host, kubeletStart(host)]));
    lab.run('node5', `sed -i 's/^maxPods: .*/maxPods: 7/' ${CONFIG}`);
    const drift = await fleet('drift', '--exit-code');
    expect(drift.code, drift.stderr).toBe(6);
    expect(drift.stdout).toMatch(/^node5 +\/var\/lib\/kubelet\/config\.yaml +\w+: wanted 30, on disk 7; the host changed$/m);
    expect((await fleet('apply', '--yes')).stdout).toBe('6 hosts: 1 changed, 5 unchanged.\n');
    expect(shown('node5')).toBe(readFileSync(golden('node5'), 'utf8'));
    for (const host of HOSTS) expect(kubeletStart(host) === starts.get(host)).toBe(host !== 'node5');
    expect(await fleet('drift', '--exit-code')).toMatchObject({ code: 0, stdout: 'No drift.\n' });
  });

  it('a saved plan is applied, and only kubelets with changed files restart', async () => {
    writeFileSync(file, FLEET.replace('maxPods: 30', 'maxPods: 31'));
    const starts = new Map(HOSTS.map((host) => [host, kubeletStart(host)]));
    const plan = join(directory, 'plan.json');
    expect((await fleet('plan', '--out', plan)).stdout).toMatch(/^6 hosts: 3 pending .*, 3 unchanged; highest impact: [a-z-]+\.$/m);
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

  describe.skipIf(requirement('packages for lab hosts', whyNoRepository()))('bare hosts', () => {
    let repository: PackageRepository;
    const bare = join(directory, 'bare.yaml');
    const program = join(directory, 'bin/crictl');

    beforeAll(async () => {
      repository = await startRepository(packagesOf('1.36.2'));
      lab.expose(repository.port);
      mkdirSync(join(directory, 'bin'));
      writeFileSync(program, '#!/bin/sh\necho crictl of a test\n');
      for (const host of BARE) {
        lab.reset(host);
        lab.run(host, NOTHING_INSTALLED);
      }
      // A reset host loses the port that was exposed to it.
      lab.expose(repository.port);
      writeFileSync(bare, bareFleet(repository, createHash('sha256').update(readFileSync(program)).digest('hex')));
    }, 300_000);
    afterAll(() => repository?.close());

    const onBare = (...args: readonly string[]): Promise<CliResult> =>
      runCommand([...args, '-f', bare, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: directory } });

    it('plan lists the packages to install, and that the rest follows after them', async () => {
      const { code, stdout, stderr } = await onBare('plan', '--limit', 'node1');
      expect(code, stderr).toBe(0);
      expect(stdout.split('\n').filter((line) => /^ {2}[-+~>] /.test(line))).toEqual([
        '  + /etc/modules-load.d/kubeletadm.conf',
        '  + /etc/sysctl.d/90-kubeletadm.conf',
        expect.stringMatching(/^ {2}~ set sysctl vm\.max_map_count: the current value is [0-9]+$/),
        '  + /etc/apt/keyrings/kubernetes-apt-keyring.asc',
        '  + /etc/apt/sources.list.d/kubernetes.list',
        '  ~ install packages kubelet=1.36.* cri-tools lab-runtime: kubelet, cri-tools, lab-runtime are not installed',
        '  ~ hold packages kubelet: system upgrades must not change its version',
        '  ~ enable lab-runtime: the unit is not enabled at boot',
        '  ~ start lab-runtime: the unit is not running',
        '  > [kubelet-start, kubelet-start/remember, kubelet-wait-bootstrap, kubelet-wait-bootstrap/node, mark-node] later: waits for kernel-modules, sysctls, install-packages',
      ]);
      expect(lab.run('node1', 'ls /etc/apt/keyrings; command -v kubelet || true')).toBe('');
    });

    it('apply installs container runtime and kubelet, and joins the hosts', async () => {
      const { code, stdout, stderr } = await onBare('apply', '--yes');
      expect(code, stderr).toBe(0);
      expect(stdout).toBe('2 hosts: 2 changed.\n');
      for (const host of BARE)
        expect(lab.run(host, 'systemctl is-active kubelet; cat /proc/sys/vm/max_map_count /etc/modules-load.d/kubeletadm.conf')).toBe(
          'active\n262144\noverlay\n',
        );
      expect(
        lab.run('node1', "dpkg-query -W -f '${Version}\\n' kubelet lab-runtime; apt-mark showhold; systemctl is-enabled lab-runtime"),
      ).toBe('1.36.2-1.1\n1.0\nkubelet\nenabled\n');
      expect(lab.run('node2', 'crictl; stat -c %a /usr/bin/kubelet /opt/lab/bin/crictl; readlink /opt/lab/current')).toBe(
        'crictl of a test\n755\n750\nbin\n',
      );
    });

    it('a second run changes nothing, and downloads no file again', async () => {
      const before = repository.asked.length;
      expect(await onBare('plan', '--exit-code')).toMatchObject({ code: 0, stdout: '2 hosts: 2 unchanged.\n' });
      expect(repository.asked.length).toBe(before);
    });

    it('apply installs a newly declared version, and restarts the kubelet', async () => {
      repository.publish(packagesOf('1.36.2', '1.36.3'));
      writeFileSync(bare, readFileSync(bare, 'utf8').replace('version: "1.36"', 'version: "1.36.3"'));
      const start = kubeletStart('node1');
      const { code, stdout, stderr } = await onBare('apply', '--yes');
      expect(code, stderr).toBe(0);
      expect(stdout).toBe('2 hosts: 1 changed, 1 unchanged.\n');
      expect(lab.run('node1', "dpkg-query -W -f '${Version}' kubelet; apt-mark showhold")).toBe('1.36.3-1.1kubelet\n');
      expect(kubeletStart('node1')).not.toBe(start);
    });

    it('apply rejects packages that the pinned key did not sign', async () => {
      const foreign = await startRepository(packagesOf('1.36.4'));
      try {
        writeFileSync(
          bare,
          readFileSync(bare, 'utf8').replace('version: "1.36.3"', 'version: "1.36.4"').replace(repository.key, foreign.key),
        );
        lab.run('node1', 'rm /etc/apt/keyrings/kubernetes-apt-keyring.asc');
        expect(await onBare('apply', '--yes', '--limit', 'node1')).toMatchObject({
          code: 3,
          stderr: expect.stringContaining(
            `node1: ${foreign.key}: contains the key ${foreign.fingerprint}; expected only ${repository.fingerprint}. Nothing was installed.`,
          ),
        });
        // The right key, and a repository signed by another key.
        writeFileSync(bare, readFileSync(bare, 'utf8').replace(foreign.key, repository.key));
        cpSync(foreign.directory, repository.directory, { recursive: true });
        const refused = await onBare('apply', '--yes', '--limit', 'node1');
        expect(refused.code).toBe(1);
        expect(refused.stderr).toMatch(/node1: installing kubelet=1\.36\.4-\* failed: .*\[HOST_OPERATION_FAILED\]/);
        expect(lab.run('node1', "dpkg-query -W -f '${Version}' kubelet")).toBe('1.36.3-1.1');
      } finally {
        await foreign.close();
      }
    });
  });

  function kubeletStart(host: string): string {
    return lab.run(host, 'systemctl show kubelet -p ExecMainStartTimestampMonotonic --value');
  }
});

const BARE = ['node1', 'node2'];

/**
 * Removes the kubelet and the runtime socket that the lab installs. Only the test's package repository is
 * reachable.
 */
const NOTHING_INSTALLED = `systemctl disable -q --now kubelet; systemctl stop lab-cri; rm -rf /usr/bin/kubelet /usr/lib/systemd/system/kubelet.service /var/run/containerd
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; systemctl daemon-reload`;

const STAND_IN = readFileSync(fileURLToPath(new URL('../lab/stand-in-kubelet.py', import.meta.url)));

/** A container runtime: the stand-in of the lab's hosts. */
const RUNTIME_UNIT = `[Service]
RuntimeDirectory=containerd
ExecStart=/usr/bin/python3 /usr/local/lib/lab-cri.py
[Install]
WantedBy=multi-user.target
`;
const KUBELET_UNIT = '[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\nRestartSec=1\n[Install]\nWantedBy=multi-user.target\n';

function packagesOf(...kubelets: readonly string[]): readonly TestPackage[] {
  return [
    { name: 'cri-tools', version: '1.36.0-1.1', files: { '/usr/bin/crictl': '#!/bin/sh\n' } },
    { name: 'lab-runtime', version: '1.0', files: { '/usr/lib/systemd/system/lab-runtime.service': RUNTIME_UNIT } },
    ...kubelets.map(
      (version): TestPackage => ({
        name: 'kubelet',
        version: `${version}-1.1`,
        files: { '/usr/bin/kubelet': STAND_IN, '/usr/lib/systemd/system/kubelet.service': KUBELET_UNIT },
      }),
    ),
  ];
}

/** node1 gets packages; node2 gets one program from the local host, one over the network, and archives. */
function bareFleet(repository: PackageRepository, crictl: string): string {
  const url = `http://127.0.0.1:${repository.port}`;
  const archive = join(repository.directory, 'lab.tar.gz');
  const tree = mkdtempSync(join(tmpdir(), 'kubeletadm-e2e-'));
  mkdirSync(join(tree, 'bin'));
  mkdirSync(join(tree, 'units'));
  symlinkSync('bin', join(tree, 'current'));
  writeFileSync(join(tree, 'units/lab-runtime.service'), RUNTIME_UNIT);
  execFileSync('tar', ['-C', tree, '-czf', archive, 'bin', 'current', 'units']);
  rmSync(tree, { recursive: true });
  writeFileSync(join(repository.directory, 'kubelet'), STAND_IN);
  writeFileSync(join(repository.directory, 'lab-runtime.service'), RUNTIME_UNIT);
  const sum = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');
  return `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf}
baseline:
  swap: off
  kernelModules: [overlay]
  sysctls: {vm.max_map_count: 262144}
  packages:
    version: "1.36"
    runtime: lab-runtime
    repository: ${url}
    key: ${repository.key}
    keyFingerprints: [${repository.fingerprint}]
hosts:
  - {name: node1, install: packages}
  - name: node2
    install: binaries
    binaries:
      source: ${url}
      files:
        - {name: kubelet, sha256: "${sum(STAND_IN)}"}
        - {name: lab-runtime.service, sha256: "${sum(RUNTIME_UNIT)}", path: /etc/systemd/system/lab-runtime.service, mode: "0644"}
        - {name: lab.tar.gz, sha256: "${sum(readFileSync(archive))}", extractTo: /opt/lab}
        - {name: crictl, source: bin, sha256: "${crictl}", path: /opt/lab/bin/crictl, mode: "0750"}
        - {name: crictl, source: bin, sha256: "${crictl}", path: /usr/bin/crictl}
      units: [lab-runtime]
`;
}

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
