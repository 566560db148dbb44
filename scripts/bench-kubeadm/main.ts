// npm run bench:kubeadm: time of init, join, reset and upgrade on the same hosts, in turn: kubeadm and kubeletadm on the
// host itself, both started over SSH, and kubeletadm on the local host with --host.
//
// KUBEBUILDER_ASSETS=DIR   directory of kubeadm, kubectl, kubelet, kube-apiserver, kube-controller-manager, kube-scheduler
//                          and etcd of one version; required
// BENCH_ONLY=upgrade       only upgrades. They need KUBERNETES_VERSIONS_DIR=DIR, the directory of kubernetes-1.35.6/bin
// BENCH_ROUNDS=5           runs of each program; medians are compared
// BENCH_ONLY=worker        only join and reset of a worker, all in one cluster of kubeadm; default: all commands, each run in a
//                          new cluster
//
// kubeletadm is the executable of its packages, which contains Node.js, on the hosts and for --host.
//
// Needs root and Debian or Ubuntu: the hosts are containers with systemd, sshd and containerd. Every command starts
// on hosts without configuration and without containers; the images are present.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { imageArchive } from '../../test/support/container-images.ts';
import { ETCD_PROBES, importControlPlaneImages } from '../../test/support/control-plane-images.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../../test/support/lab-hosts.ts';
import { findRealBinaries } from '../../test/support/real-apiserver.ts';
import { prepareUpgrades, upgradeCycle, whyNoUpgrades } from './upgrade.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const WORKER_ONLY = process.env.BENCH_ONLY === 'worker';
const UPGRADE_ONLY = process.env.BENCH_ONLY === 'upgrade';
/** Our time in multiples of kubeadm's that is acceptable. */
const BAR = 1.2;
const TOKEN = 'abcdef.0123456789abcdef';
const KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';
/** The kernel of the containers has no modules, and possibly cgroup v1. */
const IGNORE = '--ignore-preflight-errors=SystemVerification,Swap,FileExisting-losetup,FileExisting-conntrack,NumCPU,Mem';

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const loadNow = (): string =>
  loadavg()
    .map((value) => value.toFixed(1))
    .join(' ');
const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** A way to run the commands. The configuration files are in `/root`. */
interface Contestant {
  readonly name: string;
  /** The command line for a host, as run here. */
  readonly command: (host: string, words: string) => readonly string[];
}

async function main(): Promise<void> {
  const binaries = findRealBinaries();
  const missing = typeof binaries === 'string' ? binaries : whyNoLabHosts();
  if (typeof binaries === 'string' || missing !== null) throw new Error(missing ?? '');
  const { kubelet, kubeadm } = binaries;
  if (kubelet === null || kubeadm === null) throw new Error('kubelet or kubeadm not found in KUBEBUILDER_ASSETS');
  execFileSync(process.execPath, [join(ROOT, 'scripts/build-sea.mjs')], { cwd: ROOT, stdio: 'ignore' });
  const executable = join(ROOT, `dist/kubeletadm-linux-${process.arch}`);
  const lab = startLabHosts(WORKER_ONLY ? 2 : 3, kubelet, 'bench-kubeadm');
  const here = mkdtempSync(join(tmpdir(), 'bench-kubeadm-'));
  try {
    importControlPlaneImages(lab, binaries);
    importAddonImages(lab, kubeadm);
    for (const name of lab.names) {
      lab.put(name, '/usr/local/bin/kubeadm', readFileSync(kubeadm));
      lab.put(name, '/usr/local/bin/kubectl', readFileSync(join(dirname(kubeadm), 'kubectl')));
      lab.put(name, '/usr/local/bin/kubeletadm', readFileSync(executable));
      const write = (path: string, text: string): void => lab.put(name, path, text);
      lab.run(name, 'mkdir -p /root/patches');
      writeConfigs('/root', { first: lab.address('node1'), own: lab.address(name), write });
      // The drop-in of the kubeadm package, which kubeadm needs and kubeletadm otherwise writes itself.
      lab.run(name, `mkdir -p /root/package && cat > /root/package/10-kubeadm.conf <<'X'\n${DROP_IN}X`);
    }
    mkdirSync(join(here, 'patches'));
    writeConfigs(here, { first: lab.address('node1'), own: lab.address(lab.names.at(-1) ?? ''), write: writeFileSync });
    const sshConfig = join(here, 'ssh_config');
    writeFileSync(sshConfig, directSshConfig(lab, join(here, 'known_hosts')));
    // Everything runs on the network of the hosts: the lab's forwarded SSH ports delay small packets by 40 ms.
    const inLab = ['nsenter', `--net=/run/netns/${lab.namespace}`];
    const ssh = (host: string, line: string): readonly string[] => [...inLab, 'ssh', '-F', sshConfig, host, line];
    const kubeadmOnHost: Contestant = { name: 'kubeadm', command: (host, words) => ssh(host, `kubeadm ${words}`) };
    const contestants: readonly Contestant[] = [
      kubeadmOnHost,
      { name: 'kubeletadm', command: (host, words) => ssh(host, `kubeletadm ${words}`) },
      {
        name: 'kubeletadm --host',
        command: (host, words) => {
          return [...inLab, executable, ...words.replaceAll('/root/', `${here}/`).split(' '), '--ssh-config', sshConfig, '--host', host];
        },
      },
    ];
    const noUpgrades = WORKER_ONLY ? 'BENCH_ONLY=worker' : whyNoUpgrades();
    if (noUpgrades === null) prepareUpgrades(lab, kubelet);
    else print(`skipped: upgrade: ${noUpgrades}`);
    const times = new Map<string, Map<string, number[]>>();
    if (WORKER_ONLY) createCluster(lab, kubeadmOnHost);
    print(`${ROUNDS} rounds; load before: ${loadNow()}`);
    for (let round = 0; round < ROUNDS; round++) {
      const order = round % 2 === 0 ? contestants : contestants.toReversed();
      for (const contestant of order) {
        const installs = WORKER_ONLY ? workerCycle(lab, contestant) : UPGRADE_ONLY ? [] : cycle(lab, contestant);
        const runs = new Map([...installs, ...(noUpgrades === null ? await upgrades(lab, contestant) : [])]);
        for (const [step, ms] of runs) {
          const byName = times.get(step) ?? new Map<string, number[]>();
          times.set(step, byName.set(contestant.name, [...(byName.get(contestant.name) ?? []), ms]));
        }
        print(`  ${contestant.name}: ${[...runs].map(([step, ms]) => `${step} ${(ms / 1000).toFixed(2)} s`).join(', ')}`);
      }
    }
    print(`load after: ${loadNow()}`);
    print(`\n| Command | kubeadm | kubeletadm | Ratio | kubeletadm --host | Ratio |\n| --- | --- | --- | --- | --- | --- |`);
    for (const [step, byName] of times) {
      const [theirs = Number.NaN, ...ours] = contestants.map(({ name }) => median(byName.get(name) ?? []));
      const cells = ours.flatMap((ms) => {
        const ratio = ms / theirs;
        return [`${(ms / 1000).toFixed(2)} s`, `${ratio.toFixed(2)}${ratio <= BAR ? '' : ` (wanted: at most ${BAR})`}`];
      });
      print(`| ${[step, `${(theirs / 1000).toFixed(2)} s`, ...cells].join(' | ')} |`);
    }
  } finally {
    rmSync(here, { recursive: true, force: true });
    lab.close();
  }
}

/** One cluster: each step in milliseconds. */
function cycle(lab: LabHosts, contestant: Contestant): ReadonlyMap<string, number> {
  return new Map([
    ['init', createCluster(lab, contestant)],
    ['join, worker', timed(contestant, 'node2', JOIN_WORKER)],
    ['join, control plane', timed(contestant, 'node3', `join --config /root/join-control-plane.yaml ${IGNORE}`)],
    ['reset, worker', timed(contestant, 'node2', RESET)],
    ['reset, control plane', timed(contestant, 'node3', RESET)],
  ]);
}

/** A worker of an existing cluster: each step in milliseconds. */
function workerCycle(lab: LabHosts, contestant: Contestant): ReadonlyMap<string, number> {
  clean(lab, 'node2');
  lab.run('node1', 'kubectl --kubeconfig /etc/kubernetes/admin.conf delete node node2 --ignore-not-found');
  return new Map([
    ['join, worker', timed(contestant, 'node2', JOIN_WORKER)],
    ['reset, worker', timed(contestant, 'node2', RESET)],
  ]);
}

/** Upgrades of a cluster of the previous version: each step in milliseconds. */
function upgrades(lab: LabHosts, contestant: Contestant): Promise<ReadonlyMap<string, number>> {
  for (const host of lab.names) clean(lab, host);
  return upgradeCycle(lab, { timed: (host, words) => timed(contestant, host, words), ignore: IGNORE });
}

const JOIN_WORKER = `join --config /root/join.yaml ${IGNORE}`;
const RESET = 'reset --force';

/** Cleans all hosts and creates a cluster. Returns the milliseconds of init. */
function createCluster(lab: LabHosts, contestant: Contestant): number {
  for (const host of lab.names) clean(lab, host);
  const ms = timed(contestant, 'node1', `init --config /root/init.yaml --upload-certs ${IGNORE}`);
  // Both programs wait for the signature, which takes up to ten seconds: its time would show nothing about them.
  lab.run('node1', UNTIL_SIGNED);
  return ms;
}

/** Runs a command. Returns its milliseconds. */
function timed({ name, command }: Contestant, host: string, words: string): number {
  const [program = '', ...args] = command(host, words);
  const started = performance.now();
  try {
    execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: 300_000, maxBuffer: 64 * 1024 * 1024 });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: Buffer; stderr?: Buffer };
    throw new Error(`${name} ${words} failed:\n${stdout}${stderr}`);
  }
  return performance.now() - started;
}

const UNTIL_SIGNED =
  'until kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-public get configmap cluster-info -o yaml | grep -q jws-kubeconfig-; do sleep 0.2; done';

/** The lab's configuration with the addresses of the hosts on their own network. */
function directSshConfig(lab: LabHosts, knownHosts: string): string {
  const key = /IdentityFile (.*)/.exec(readFileSync(lab.sshConfig, 'utf8'))?.[1] ?? '';
  const hosts = lab.names.map((name) => `Host ${name}\n  HostName ${lab.address(name)}\n`);
  const keys = `  UserKnownHostsFile ${knownHosts}\n  StrictHostKeyChecking accept-new\n  LogLevel ERROR\n`;
  return `${hosts.join('')}Host *\n  User root\n  IdentityFile ${key}\n  IdentitiesOnly yes\n${keys}`;
}

/** Ends all containers, and removes the files and state of both programs. */
function clean(lab: LabHosts, host: string): void {
  lab.run(host, CLEAN);
  // As the packages of kubeadm and the kubelet do.
  lab.run(
    host,
    'mkdir -p /usr/lib/systemd/system/kubelet.service.d && cp /root/package/10-kubeadm.conf /usr/lib/systemd/system/kubelet.service.d/',
  );
  lab.run(host, 'systemctl daemon-reload && systemctl enable -q kubelet');
}

const CLEAN = `
systemctl disable -q --now kubelet 2>/dev/null
for id in $(ctr -n k8s.io tasks ls -q); do ctr -n k8s.io tasks kill -s KILL $id 2>/dev/null; done
sleep 1
for id in $(ctr -n k8s.io containers ls -q); do ctr -n k8s.io tasks rm -f $id 2>/dev/null; ctr -n k8s.io containers rm $id 2>/dev/null; done
systemctl restart containerd
for m in $(awk '$2 ~ "^/var/lib/kubelet/" {print $2}' /proc/mounts); do umount $m; done
rm -rf /etc/kubernetes /var/lib/kubelet /var/lib/etcd /etc/systemd/system/kubelet.service* /usr/lib/systemd/system/kubelet.service.d
systemctl daemon-reload
sync
`;

/** kubeadm's images of the add-ons, whose content does not matter here. */
function importAddonImages(lab: LabHosts, kubeadm: string): void {
  const listed = execFileSync(kubeadm, ['config', 'images', 'list', '--kubernetes-version', VERSION], { encoding: 'utf8' });
  const names = listed.split('\n').filter((name) => /kube-proxy|coredns/.test(name));
  const archive = imageArchive({ names, programs: ['/bin/sleep'], entrypoint: ['sleep', '2147483647'] });
  for (const name of lab.names) lab.importImage(name, archive);
}

const VERSION = 'v1.36.2';

/** Writes the configuration files of all commands, and the patch that they name, into a directory. */
function writeConfigs(
  directory: string,
  { first, own, write }: { readonly first: string; readonly own: string; readonly write: (path: string, text: string) => void },
): void {
  const patches = `${directory}/patches`;
  write(`${patches}/etcd.yaml`, ETCD_PROBES);
  write(`${directory}/init.yaml`, initConfig(first, patches));
  write(`${directory}/join.yaml`, joinConfig(first, patches));
  write(`${directory}/join-control-plane.yaml`, joinConfig(first, patches, own));
}

const initConfig = (address: string, patches: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: ${TOKEN}}]
certificateKey: ${KEY}
localAPIEndpoint: {advertiseAddress: ${address}}
patches: {directory: ${patches}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${VERSION}
controlPlaneEndpoint: ${address}:6443
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;

const joinConfig = (address: string, patches: string, own?: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {token: ${TOKEN}, apiServerEndpoint: "${address}:6443", unsafeSkipCAVerification: true}
patches: {directory: ${patches}}
${own === undefined ? '' : `controlPlane: {certificateKey: ${KEY}, localAPIEndpoint: {advertiseAddress: ${own}}}\n`}`;

const DROP_IN = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;

await main();
