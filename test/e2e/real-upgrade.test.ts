import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ETCD_PROBES, importControlPlaneImages, importKubernetesImages, programsOf } from '../support/control-plane-images.ts';
import { installProgram, type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const [FROM, TO] = ['v1.35.6', 'v1.36.2'];
const binaries = findRealBinaries();
const programs = programsOf(FROM);
const missing =
  whyNoKubelet() ?? whyNoLabHosts() ?? (programs === null ? `the programs of ${FROM} are not installed (KUBERNETES_VERSIONS_DIR)` : null);

/** Two control planes of the previous minor version, with real static Pods. */
describe.skipIf(requirement('an upgrade of control planes', missing))('an upgrade of two control planes', () => {
  let lab: LabHosts;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-upgrade-'));
  const patches = join(directory, 'patches');
  const broken = join(directory, 'broken');

  beforeAll(async () => {
    if (typeof binaries === 'string' || programs === null) return;
    lab = startLabHosts(2, join(programs, 'kubelet'), 'upgrade');
    for (const name of lab.names) lab.reset(name);
    importControlPlaneImages(lab, binaries);
    importKubernetesImages(lab, lab.names, { version: FROM, programs });
    for (const each of [patches, broken]) {
      mkdirSync(each);
      writeFileSync(join(each, 'etcd.yaml'), ETCD_PROBES);
    }
    writeFileSync(join(broken, 'kube-scheduler+json.yaml'), CRASHES);
    writeFileSync(join(directory, 'init.yaml'), config(`${lab.address('node1')}:6443`, patches));
    writeFileSync(join(directory, 'upgrade.yaml'), SHORT_WAIT);
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: 'ignore' });
    lab.put('node2', '/usr/local/bin/node', readFileSync(process.execPath));
    installProgram(lab, 'node2', join(ROOT, 'dist'));
    lab.run('node2', `mkdir -p /root/patches && cat > /root/patches/etcd.yaml <<'X'\n${ETCD_PROBES}X`);
    const { code, stdout, stderr } = await runCommand([
      'init',
      '--config',
      join(directory, 'init.yaml'),
      ...ssh('node1'),
      '--upload-certs',
      ...IGNORED,
    ]);
    if (code !== 0) throw new Error(stderr);
    const line = [...stdout.matchAll(/^ {2}(kubeletadm join .* --control-plane .*)$/gm)][0]?.[1];
    lab.run(
      'node2',
      `nohup ${line} --wait-ready=3m --patches /root/patches ${IGNORED.join(' ')} > /root/join.log 2>&1; echo $? > /root/join.exit &`,
    );
    await untilTrue(async () => (await lab.query('node2', 'cat /root/join.exit').catch(() => '')) === '0\n', 300_000);
  }, 1_200_000);
  afterAll(() => {
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const applyArguments = (directoryOfPatches: string): readonly string[] => [
    'upgrade',
    'apply',
    TO,
    '--yes',
    '--config',
    join(directory, 'upgrade.yaml'),
    '--patches',
    directoryOfPatches,
    ...ssh('node1'),
    ...IGNORED,
  ];
  const apply = (directoryOfPatches: string) => runCommand(applyArguments(directoryOfPatches));
  /** Kills the upgrade (SIGKILL) as soon as its output matches. @returns how the process ended */
  const applyKilledAt = async (output: RegExp): Promise<string> => {
    const child = spawn(process.execPath, [join(ROOT, 'dist/kubeletadm.mjs'), ...applyArguments(patches)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
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

  it('continues after it was killed while the API server restarted, or between two components', async () => {
    expect(await applyKilledAt(/updated \/etc\/kubernetes\/manifests\/kube-apiserver\.yaml/)).toBe('SIGKILL');
    expect(await applyKilledAt(/kube-apiserver runs \S+:v1\.36\.2/)).toBe('SIGKILL');
    expect(imagesOn('node1')).toContain(':v1.36.2');
  }, 900_000);

  it('restores the previous Pod of a component whose new Pod crashes', async () => {
    const before = lab.run('node1', 'cat /etc/kubernetes/manifests/kube-scheduler.yaml');
    const { code, stderr } = await apply(broken);
    expect(code, stderr).toBe(5);
    expect(stderr).toMatch(/the previous Pod of kube-scheduler runs again and the API server answers \[ROLLED_BACK\]/);
    expect(lab.run('node1', 'cat /etc/kubernetes/manifests/kube-scheduler.yaml')).toBe(before);
    expect(runningOn('node1', 'kube-scheduler')).not.toContain('--no-such-flag');
  }, 900_000);

  it('continues after the cause is fixed; the second run changes nothing', async () => {
    const { code, stderr } = await apply(patches);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`the API server reports ${TO}, the kubelet ${FROM}`);
    expect(stderr).toContain('skipped until all control planes are upgraded: node2');
    expect(imagesOn('node1').match(/:v1\.36\.2/g)).toHaveLength(3);
    expect(imagesOn('node2').match(/:v1\.35\.6/g)).toHaveLength(3);
    const again = await apply(patches);
    expect(again.stdout, again.stderr).toContain('Nothing to do.');
  }, 900_000);

  it('upgrades the other control plane, and then the add-ons', async () => {
    const { code, stderr } = await runCommand(['upgrade', 'node', '--patches', patches, ...ssh('node2'), ...IGNORED]);
    expect(code, stderr).toBe(0);
    expect(imagesOn('node2').match(/:v1\.36\.2/g)).toHaveLength(3);
    expect(stderr).toMatch(/\[addon\/kube-proxy\] updated DaemonSet/);
  }, 900_000);
});

/** The local kernel has no modules, and perhaps cgroup v1; images of the add-ons are not available. */
const IGNORED = ['--ignore-preflight-errors', 'SystemVerification,Swap,FileExisting-losetup,ImagePull'];

const CRASHES = `- {op: replace, path: /spec/containers/0/command, value: [kube-scheduler, --no-such-flag]}
`;

const SHORT_WAIT = `apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
timeouts: {upgradeManifests: 2m}
`;

const config = (endpoint: string, patches: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
patches: {directory: ${patches}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${FROM}
controlPlaneEndpoint: ${endpoint}
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
