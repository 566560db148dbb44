import type { Reporter } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { inClusterKubeconfig } from '../../kube/operator-kubeconfig.ts';
import { type KubeconfigRequest, type OpenClusterPorts, openCluster } from './open-cluster.ts';

/** Connects with a kubeconfig; without one and in a pod, with the service account of the pod. @throws AppError the errors of `openCluster` */
export async function connectFromPod(
  services: OpenClusterPorts,
  named: KubeconfigRequest,
  reporter: Reporter,
): Promise<{ readonly cluster: Cluster; readonly tlsServerName?: string | undefined }> {
  const own = named.kubeconfig === undefined && services.env.KUBECONFIG === undefined ? inClusterKubeconfig(services.env) : null;
  if (own !== null) return { cluster: await services.connectCluster({ kubeconfig: own }) };
  const { cluster, tlsServerName } = await openCluster(services, named, { writes: reporter });
  return { cluster: cluster as Cluster, tlsServerName };
}
