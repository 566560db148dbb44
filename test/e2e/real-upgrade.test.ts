import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiWatch, longestGap, watchApiServer } from '../support/api-gap.ts';
import { type Balancer, startBalancer } from '../support/balancer.ts';
import { ETCD_PROBES, importControlPlaneImages, importKubernetesImages, programsOf } from '../support/control-plane-images.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const [FROM, TO] = ['v1.35.6', 'v1.36.2'];
const CONTROL_PLANES = ['node1', 'node2', 'node3'] as const;
const WORKERS = ['node4', 'node5'] as const;
const binaries = findRealBinaries();
const programs = programsOf(FROM);
const missing =
  whyNoKubelet() ?? whyNoLabHosts() ?? (programs === null ? `the programs of ${FROM} are not installed (KUBERNETES_VERSIONS_DIR)` : null);

/** When an upgrade is killed: as soon as a message of it matches. In the order of the run. */
const KILLS: readonly (readonly [when: string, output: RegExp])[] = [
  ['the upgrade is recorded', /created \/etc\/kubernetes\/tmp\/kubeletadm-upgrade\.json/],
  ['the manifest of etcd is written', /updated \/etc\/kubernetes\/manifests\/etcd\.yaml/],
  ['etcd runs', /etcd runs \S+/],
  ['the manifest of kube-apiserver is written', /updated \/etc\/kubernetes\/manifests\/kube-apiserver\.yaml/],
  ['kube-apiserver runs', /kube-apiserver runs \S+:v1\.36\.2/],
  ['the manifest of kube-controller-manager is written', /updated \/etc\/kubernetes\/manifests\/kube-controller-manager\.yaml/],
  ['kube-controller-manager runs', /kube-controller-manager runs \S+:v1\.36\.2/],
  ['the manifest of kube-scheduler is written', /updated \/etc\/kubernetes\/manifests\/kube-scheduler\.yaml/],
  ['kube-scheduler runs', /kube-scheduler runs \S+:v1\.36\.2/],
  ['the configuration of the cluster is updated', /updated ConfigMap kube-system\/kubeadm-config/],
];

/** Three control planes with stacked etcd behind a load balancer, and two workers, of the previous minor version. */
describe.skipIf(requirement('an upgrade of control planes', missing))('an upgrade of three control planes and two workers', () => {
  let lab: LabHosts;
  let balancer: Balancer;
  let watch: ApiWatch;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-upgrade-'));
  const [patches, broken] = [join(directory, 'patches'), join(directory, 'broken')];

  beforeAll(async () => {
    if (typeof binaries === 'string' || programs === null) return;
    lab = startLabHosts(CONTROL_PLANES.length + WORKERS.length, join(programs, 'kubelet'), 'upgrade');
    for (const name of lab.names) lab.reset(name);
    importControlPlaneImages(lab, binaries);
    importKubernetesImages(lab, CONTROL_PLANES, { version: FROM, programs });
    lab.put('node1', '/usr/local/bin/kubectl', readFileSync(join(dirname(binaries.apiserver), 'kubectl')));
    balancer = await startBalancer(lab, CONTROL_PLANES, 6443);
    for (const each of ['init', 'patches', 'broken']) mkdirSync(join(directory, each));
    writeFileSync(join(directory, 'init/etcd.yaml'), ETCD_PROBES);
    // Both versions have the same etcd: another manifest replaces it too.
    for (const each of [patches, broken])
      writeFileSync(join(each, 'etcd.yaml'), `${ETCD_PROBES}    env: [{name: UPGRADED, value: "yes"}]\n`);
    writeFileSync(join(broken, 'kube-scheduler+json.yaml'), CRASHES);
    writeFileSync(join(directory, 'upgrade.yaml'), SHORT_WAIT);
    writeFileSync(join(directory, 'fleet.yaml'), fleet(balancer.address));
    writeFileSync(join(directory, 'cluster.yaml'), CLUSTER);
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: 'ignore' });
    const { code, stderr } = await runCommand(
      ['apply', '-f', join(directory, 'fleet.yaml'), '--yes', '--ssh-config', lab.sshConfig, ...IGNORED],
      { env: { XDG_STATE_HOME: directory } },
    );
    if (code !== 0) throw new Error(stderr);
    await untilTrue(() => nodes().every((node) => node.includes(' Ready ')), 300_000);
    watch = await watchApiServer(lab, balancer.address);
  }, 1_800_000);
  afterAll(() => {
    balancer?.close();
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const ssh = (...hosts: readonly string[]): readonly string[] => [
    '--ssh-config',
    lab.sshConfig,
    ...hosts.flatMap((host) => ['--host', host]),
  ];
  const upgradeConfig = (directoryOfPatches: string): readonly string[] => [
    '--config',
    join(directory, 'upgrade.yaml'),
    '--patches',
    directoryOfPatches,
    ...IGNORED,
  ];
  const apply = (...more: readonly string[]): readonly string[] => [
    'upgrade',
    'apply',
    TO,
    '--yes',
    ...upgradeConfig(patches),
    ...ssh('node1'),
    ...more,
  ];
  const upgradeNode = (host: string, directoryOfPatches = patches): Promise<CliResult> =>
    runCommand(['upgrade', 'node', ...upgradeConfig(directoryOfPatches), ...ssh(host)]);
  /** Kills the upgrade (SIGKILL) as soon as its output matches. @returns how the process ended */
  const applyKilledAfter = async (output: RegExp): Promise<string> => {
    const child = spawn(process.execPath, [join(ROOT, 'dist/kubeletadm.mjs'), ...apply()], { stdio: ['ignore', 'ignore', 'pipe'] });
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (output.test(text)) child.kill('SIGKILL');
    });
    const [code, signal] = await once(child, 'close');
    return signal ?? `exit code ${code}: ${text}`;
  };
  const imagesOn = (host: string): string => lab.run(host, 'grep -h "image:" /etc/kubernetes/manifests/kube-*.yaml');
  const runningOn = (host: string, component: string): string => lab.run(host, `pgrep -af '^${component} ' || true`);
  const kubectl = (words: string): string => lab.run('node1', `kubectl --kubeconfig /etc/kubernetes/admin.conf ${words}`);
  /** The nodes with their state and the version of their kubelet. */
  const nodes = (): readonly string[] =>
    kubectl(`get nodes --no-headers`)
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/^(\S+) +(\S+) +(?:\S+ +){2}(\S+)$/, '$1 $2 $3'));
  /** Prints a measurement, and returns it. */
  const measured = (what: string, ms: number): number => {
    process.stderr.write(`UPGRADE ${what}: ${ms} ms\n`);
    return ms;
  };

  it('is planned, and nothing changes', async () => {
    const before = imagesOn('node1');
    const plan = await runCommand(['upgrade', 'plan', TO, ...ssh('node1'), ...IGNORED]);
    expect(plan.code, plan.stderr).toBe(0);
    expect(plan.stdout).toMatch(/kube-apiserver +node3 +v1\.35\.6 +v1\.36\.2/);
    const { code, stdout, stderr } = await runCommand(apply('--dry-run'));
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('/etc/kubernetes/manifests/kube-apiserver.yaml');
    expect(imagesOn('node1')).toBe(before);
    kubectl('create configmap of-before --from-literal=kept=yes');
  }, 300_000);

  it.each(KILLS)(
    'is killed after %s',
    async (_, output) => {
      expect(await applyKilledAfter(output)).toBe('SIGKILL');
    },
    600_000,
  );

  it('continues after ten kills; the second run changes nothing', async () => {
    const { code, stderr } = await runCommand(apply());
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`the API server reports ${TO}; the kubelet reports ${FROM}`);
    expect(stderr).toContain('skipped until all control planes are upgraded: node2 runs v1.35.6, node3 runs v1.35.6');
    expect(imagesOn('node1').match(/:v1\.36\.2/g)).toHaveLength(3);
    expect(imagesOn('node2').match(/:v1\.35\.6/g)).toHaveLength(3);
    const again = await runCommand(apply());
    expect(again.stdout, again.stderr).toContain('Nothing to do.');
  }, 900_000);

  it('restores the previous Pod of a component whose new Pod crashes', async () => {
    const before = lab.run('node2', 'cat /etc/kubernetes/manifests/kube-scheduler.yaml');
    const { code, stderr } = await upgradeNode('node2', broken);
    expect(code, stderr).toBe(5);
    expect(stderr).toMatch(/the previous Pod of kube-scheduler runs again and the API server answers \[ROLLED_BACK\]/);
    expect(lab.run('node2', 'cat /etc/kubernetes/manifests/kube-scheduler.yaml')).toBe(before);
    expect(runningOn('node2', 'kube-scheduler')).not.toContain('--no-such-flag');
  }, 900_000);

  it('continues after the cause is fixed, and upgrades the add-ons with the last control plane', async () => {
    const second = await upgradeNode('node2');
    expect(second.code, second.stderr).toBe(0);
    expect(second.stderr).toContain('skipped until all control planes are upgraded: node3 runs v1.35.6');
    const ofNode3 = await watchApiServer(lab, `${lab.address('node3')}:6443`);
    const started = performance.now();
    const third = await upgradeNode('node3');
    expect(third.code, third.stderr).toBe(0);
    measured('upgrade node of a control plane', Math.round(performance.now() - started));
    measured('its API server is not ready', longestGap(await ofNode3.stop()));
    for (const host of CONTROL_PLANES) expect(imagesOn(host).match(/:v1\.36\.2/g), host).toHaveLength(3);
    expect(third.stderr).toMatch(/\[addon\/kube-proxy\] updated DaemonSet/);
  }, 900_000);

  it('upgrades the workers with their new kubelets', async () => {
    const kubelet = (typeof binaries === 'string' ? null : binaries.kubelet) ?? '';
    for (const host of lab.names) {
      lab.put(host, '/usr/bin/kubelet', readFileSync(kubelet));
      lab.run(host, 'systemctl restart kubelet');
    }
    const { code, stderr } = await runCommand(['upgrade', 'node', ...IGNORED, ...ssh(...WORKERS)]);
    expect(code, stderr).toBe(0);
    await expect.poll(nodes, { timeout: 60_000, interval: 1_000 }).toEqual(lab.names.map((name) => `${name} Ready ${TO}`));
  }, 300_000);

  it('keeps the API of the cluster and its data available', async () => {
    const ms = measured('the API of the cluster is not ready', longestGap(await watch.stop()));
    expect(kubectl('get configmap of-before -o jsonpath={.data.kept}')).toBe('yes');
    expect(ms).toBeLessThan(30_000);
  });
});

/** The local kernel has no modules, and perhaps cgroup v1; images of the add-ons are not available. */
const IGNORED = ['--ignore-preflight-errors', 'SystemVerification,Swap,FileExisting-losetup,ImagePull'];

const CRASHES = `- {op: replace, path: /spec/containers/0/command, value: [kube-scheduler, --no-such-flag]}
`;

const SHORT_WAIT = `apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
timeouts: {upgradeManifests: 2m}
`;

const fleet = (endpoint: string): string => `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.35"
cluster: {kubeconfig: admin.conf, configuration: cluster.yaml, endpoint: "${endpoint}"}
hosts:
${CONTROL_PLANES.map((name) => `  - {name: ${name}, role: controlPlane}\n`).join('')}${WORKERS.map((name) => `  - {name: ${name}}\n`).join('')}`;

const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${FROM}
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
patches: {directory: init}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
