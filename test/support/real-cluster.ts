import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { type LabHosts, startLabHosts } from './lab-hosts.ts';
import { findRealBinaries, startRealApiServer } from './real-apiserver.ts';

/** A real control plane on the local host, and lab hosts with real kubelets that reach it. */
export interface RealCluster {
  readonly cluster: Cluster;
  readonly lab: LabHosts;
  close(): Promise<void>;
}

/**
 * @param hosts number of hosts; all are new
 * @param directory receives `admin.conf`, the kubeconfig of an administrator, and `init.yaml`
 * @param config content of `init.yaml`
 * @throws Error when `whyNoKubelet` or `whyNoLabHosts` returns a reason
 */
export async function startRealCluster(hosts: number, directory: string, config: string): Promise<RealCluster> {
  const binaries = findRealBinaries();
  if (typeof binaries === 'string') throw new Error(binaries);
  const { kubelet } = binaries;
  if (kubelet === null) throw new Error('kubelet not found');
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
