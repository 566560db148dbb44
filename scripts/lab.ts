// npm run lab: a cluster on lab hosts (systemd and sshd in containers, see test/lab/hosts.sh), for users
// without virtual
// machines. It performs the steps of vagrant/cluster.sh and runs until Ctrl-C. As root on Debian or Ubuntu.
//
// WORKERS=2             workers in addition to the first node
// KUBEBUILDER_ASSETS=   folder with kube-apiserver, kube-controller-manager, etcd and kubelet: a real cluster
// from bare hosts. Default: a simulated API server
//                       in this process and stand-in kubelets.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startApiServer } from '../lab/api-server/server.ts';
import { kubeCluster } from '../src/kube/adapters/cluster-kube.ts';
import { HAS_SCHEDULER, importControlPlaneImages } from '../test/support/control-plane-images.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../test/support/lab-hosts.ts';
import { findRealBinaries } from '../test/support/real-apiserver.ts';
import { registerNodes } from '../test/support/registered-nodes.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIRECTORY = join(ROOT, '.lab');
const FLEET = join(DIRECTORY, 'fleet.yaml');
const ADMIN = join(DIRECTORY, 'admin.conf');
const WORKERS = Number(process.env.WORKERS ?? 2);

const print = (text: string): void => void process.stdout.write(`${text}\n`);

/**
 * Runs kubeletadm with this command line; false when it failed. Asynchronous: the API server may be part of
 * this process.
 */
async function kubeletadm(...argv: readonly string[]): Promise<boolean> {
  print(`\n# kubeletadm ${argv.join(' ').replaceAll(`${ROOT}`, '')}`);
  const child = spawn(process.execPath, ['--import', 'tsx', join(ROOT, 'src/bin.ts'), ...argv], { cwd: ROOT, stdio: 'inherit' });
  return new Promise((resolve) => child.once('exit', (code) => resolve(code === 0)));
}

const applyFleet = (lab: LabHosts): Promise<boolean> => kubeletadm('apply', '--yes', '-f', FLEET, '--ssh-config', lab.sshConfig);

/** Settings of the fleet file for all lab hosts: they share the local kernel. */
function fleet(lab: LabHosts, isReal: boolean): string {
  const [first = '', ...others] = lab.names;
  return `# The hosts of npm run lab. Change it, and apply it again.
apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster:
  kubeconfig: admin.conf
${isReal ? '  configuration: cluster.yaml\n' : ''}baseline:
  nodeIP: ${lab.address(first).replace(/\d+$/, '0/24')}
  ignorePreflightErrors: [SystemVerification, Swap, FileExisting-losetup, ImagePull]
hosts:
  - name: ${first}
${isReal ? '    role: control-plane\n' : ''}${others.map((name) => `  - name: ${name}\n`).join('')}`;
}

/** For all nodes, in case the local host still uses cgroup v1. */
const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n';

const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
${HAS_SCHEDULER ? '' : 'skipPhases: [control-plane/scheduler]\n'}---
${KUBELET}`;

/** Real Kubernetes components: the first host bootstraps the cluster, the others join it. */
async function realCluster(lab: LabHosts, binaries: Exclude<ReturnType<typeof findRealBinaries>, string>): Promise<boolean> {
  for (const name of lab.names) lab.reset(name);
  print('Putting the images of the control plane on the hosts.');
  importControlPlaneImages(lab, binaries);
  writeFileSync(join(DIRECTORY, 'cluster.yaml'), CLUSTER);
  writeFileSync(FLEET, fleet(lab, true));
  return applyFleet(lab);
}

/**
 * An API server in this process, which all hosts join with the fleet file.
 */
async function standInCluster(lab: LabHosts): Promise<{ readonly done: boolean; readonly close: () => Promise<void> }> {
  for (const name of lab.names) lab.reset(name);
  const api = await startApiServer({ controllers: ['bootstrap-signer', 'csr-approver', 'csr-signer'] });
  lab.expose(Number(new URL(api.url).port));
  writeFileSync(ADMIN, api.adminKubeconfig(), { mode: 0o600 });
  writeFileSync(FLEET, fleet(lab, false));
  const cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: ADMIN } });
  const endNodes = registerNodes(lab, cluster, api.ca);
  const config = join(DIRECTORY, 'cluster.yaml');
  writeFileSync(
    config,
    `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ncontrolPlaneEndpoint: ${new URL(api.url).host}\n---\n${KUBELET}`,
  );
  const done = (await kubeletadm('cluster', 'adopt', '--kubeconfig', ADMIN, '--config', config)) && (await applyFleet(lab));
  const close = async (): Promise<void> => {
    await endNodes();
    await cluster.close();
    await api.close();
  };
  return { done, close };
}

function untilInterrupted(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => undefined, 60_000);
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        clearInterval(timer);
        resolve();
      });
  });
}

async function main(): Promise<number> {
  const why = whyNoLabHosts();
  if (why !== null) {
    print(`npm run lab: ${why}. Without hosts of its own: npx tsx src/bin.ts lab`);
    return 3;
  }
  if (!Number.isInteger(WORKERS) || WORKERS < 0 || WORKERS > 50) {
    print(`npm run lab: WORKERS=${process.env.WORKERS}: a number from 0 to 50 is wanted`);
    return 2;
  }
  const found = findRealBinaries();
  const binaries = typeof found === 'string' || found.kubelet === null || found.controllerManager === null ? null : found;
  rmSync(DIRECTORY, { recursive: true, force: true });
  mkdirSync(DIRECTORY);
  print(`Booting ${WORKERS + 1} hosts; the first time on a machine it takes a minute.`);
  const lab = startLabHosts(1 + WORKERS, binaries?.kubelet ?? null, binaries === null ? 'lab' : 'lab-real');
  let close = async (): Promise<void> => undefined;
  try {
    let done: boolean;
    if (binaries === null) ({ done, close } = await standInCluster(lab));
    else done = await realCluster(lab, binaries);
    if (!done) return 1;
    const hosts = `--ssh-config ${lab.sshConfig}`;
    print(`
Up. Try, in another terminal (vagrant/README.md has more):
  npx tsx src/bin.ts fleet status -f .lab/fleet.yaml ${hosts}
  npx tsx src/bin.ts plan -f .lab/fleet.yaml ${hosts}          # after a change of .lab/fleet.yaml; then apply
  kubectl --kubeconfig .lab/admin.conf get nodes${binaries === null ? '' : `                # on a host: the API server is on their network`}
  ssh -F ${lab.sshConfig} node2

Ctrl-C stops the lab.`);
    await untilInterrupted();
    return 0;
  } finally {
    await close();
    lab.close();
  }
}

process.exitCode = await main();
