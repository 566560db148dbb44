import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { type LabHosts, startLabHosts } from './lab-hosts.ts';
import { findRealBinaries, startRealApiServer } from './real-apiserver.ts';

/** A control plane of Kubernetes itself on this machine, and hosts with its kubelet that reach it. */
export interface RealCluster {
  readonly cluster: Cluster;
  readonly lab: LabHosts;
  close(): Promise<void>;
}

/**
 * @param hosts how many; they are new
 * @param directory gets `admin.conf`, the kubeconfig of an administrator, and `init.yaml`
 * @param config what is in `init.yaml`
 * @throws Error where `whyNoKubelet` or `whyNoLabHosts` has a reason
 */
export async function startRealCluster(hosts: number, directory: string, config: string): Promise<RealCluster> {
  const binaries = findRealBinaries();
  if (typeof binaries === 'string') throw new Error(binaries);
  const { kubelet } = binaries;
  if (kubelet === null) throw new Error('there is no kubelet');
  const api = await startRealApiServer(binaries, { withControllerManager: true });
  const text = api.adminKubeconfig();
  writeFileSync(join(directory, 'admin.conf'), text, { mode: 0o600 });
  writeFileSync(join(directory, 'init.yaml'), config);
  let lab: LabHosts;
  try {
    lab = startLabHosts(hosts, kubelet);
    lab.expose(Number(new URL(api.url).port));
  } catch (error) {
    await api.close();
    throw error;
  }
  const cluster = kubeCluster({ kubeconfig: { text, file: 'admin.conf' } });
  return {
    cluster,
    lab,
    close: async () => {
      lab.close();
      await cluster.close();
      await api.close();
    },
  };
}
