// The upgrades of npm run bench:kubeadm. kubeadm of the previous version creates each cluster: two control planes and a
// worker. Each program then upgrades the first control plane, the second one and the worker.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { longestGap, watchApiServer } from '../../test/support/api-gap.ts';
import { imageArchive } from '../../test/support/container-images.ts';
import { importKubernetesImages, programsOf } from '../../test/support/control-plane-images.ts';
import type { LabHosts } from '../../test/support/lab-hosts.ts';

const FROM = 'v1.35.6';
const TO = 'v1.36.2';
const NEEDED = ['kubeadm', 'kubelet', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

/** The reason why upgrades cannot be measured; null: they can. */
export function whyNoUpgrades(): string | null {
  const directory = programsOf(FROM);
  if (directory === null) return `Kubernetes ${FROM} not found (KUBERNETES_VERSIONS_DIR)`;
  const missing = NEEDED.filter((name) => !existsSync(join(directory, name)));
  return missing.length === 0 ? null : `${missing.join(', ')} not found in ${directory}`;
}

/** Copies the programs and images of the previous version to all hosts. @param kubelet the one of the new version */
export function prepareUpgrades(lab: LabHosts, kubelet: string): void {
  const programs = programsOf(FROM) ?? '';
  importKubernetesImages(lab, lab.names, { version: FROM, programs });
  const proxy = imageArchive({
    names: [`registry.k8s.io/kube-proxy:${FROM}`],
    programs: ['/bin/sleep'],
    entrypoint: ['sleep', '2147483647'],
  });
  for (const name of lab.names) {
    lab.importImage(name, proxy);
    lab.run(name, `mkdir -p /root/${FROM} /root/${TO}`);
    lab.put(name, `/root/${FROM}/kubeadm`, readFileSync(join(programs, 'kubeadm')));
    lab.put(name, `/root/${FROM}/kubelet`, readFileSync(join(programs, 'kubelet')));
    lab.put(name, `/root/${TO}/kubelet`, readFileSync(kubelet));
  }
}

/**
 * Creates a cluster of the previous version on clean hosts, and upgrades it.
 * @param run.timed runs a command on a host, and returns its milliseconds
 * @param run.ignore the option that ignores preflight checks
 * @returns each step in milliseconds
 */
export async function upgradeCycle(
  lab: LabHosts,
  { timed, ignore }: { readonly timed: (host: string, words: string) => number; readonly ignore: string },
): Promise<ReadonlyMap<string, number>> {
  for (const host of lab.names) useKubelet(lab, host, FROM);
  const kubeadm = (host: string, words: string): string => lab.run(host, `/root/${FROM}/kubeadm ${words} ${ignore} 2>&1`);
  // kubeadm does not detect the cgroup driver, and kubeletadm does not change that of running nodes.
  lab.run('node1', `sed 's/${TO}/${FROM}/; s/^failCgroupV1: .*/&\\ncgroupDriver: cgroupfs/' /root/init.yaml > /root/init-${FROM}.yaml`);
  kubeadm('node1', `init --config /root/init-${FROM}.yaml --upload-certs`);
  kubeadm('node3', 'join --config /root/join-control-plane.yaml');
  kubeadm('node2', 'join --config /root/join.yaml');
  lab.run('node1', 'kubectl --kubeconfig /etc/kubernetes/admin.conf wait --for=condition=Ready nodes --all --timeout=50s');
  const watch = await watchApiServer(lab, `${lab.address('node1')}:6443`);
  const apply = timed('node1', `upgrade apply ${TO} --yes --patches /root/patches ${ignore}`);
  const gap = longestGap(await watch.stop());
  const controlPlane = timed('node3', `upgrade node --patches /root/patches ${ignore}`);
  // The documentation of kubeletadm upgrades the kubelet of a worker first; kubeadm accepts both orders.
  useKubelet(lab, 'node2', TO);
  lab.run('node2', 'systemctl start kubelet');
  const worker = timed('node2', `upgrade node ${ignore}`);
  for (const host of lab.names) useKubelet(lab, host, TO);
  return new Map([
    ['upgrade apply', apply],
    ['upgrade apply: API server not ready', gap],
    ['upgrade node, control plane', controlPlane],
    ['upgrade node, worker', worker],
  ]);
}

/** Stops the kubelet of a host, and replaces it. */
function useKubelet(lab: LabHosts, host: string, version: string): void {
  lab.run(host, `systemctl stop kubelet; cp /root/${version}/kubelet /usr/bin/kubelet`);
}
