import { AppError } from '../../../base/errors.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import type { ApiAccess } from '../control-plane/api-access.ts';
import { apiServerNotUp } from '../control-plane/api-access.ts';
import { decodeClusterConfiguration, KUBEADM_CONFIG_REF } from '../node/cluster-baseline.ts';

/** The cluster of a control plane, with the access of an administrator. */
export interface AdminCluster {
  readonly cluster: Cluster;
  /** Of kubeadm-config. */
  readonly model: ClusterConfiguration;
  readonly warnings: readonly Warning[];
}

/**
 * Reads the configuration of the cluster that an upgrade changes.
 * @throws AppError API_SERVER_NOT_UP; CLUSTER_NO_KUBEADM_CONFIG, exit code 3
 */
export async function readAdminCluster(context: PhaseContext, api: ApiAccess): Promise<AdminCluster> {
  const cluster = await api.reach(context);
  if (cluster === null) throw apiServerNotUp(context.host.name);
  return requireClusterConfiguration(cluster, context.host.name);
}

/**
 * The configuration of a cluster of kubeadm.
 * @param host named in the error
 * @throws AppError CLUSTER_NO_KUBEADM_CONFIG, exit code 3, if it does not exist; CLUSTER_FORBIDDEN
 */
export async function requireClusterConfiguration(cluster: Cluster, host: string): Promise<AdminCluster> {
  const { model, warnings } = decodeClusterConfiguration(await cluster.get(KUBEADM_CONFIG_REF));
  if (model !== null) return { cluster, model, warnings };
  const message = 'ConfigMap kube-system/kubeadm-config, which configures the control planes of the cluster, does not exist or is empty';
  const hint = 'Upload the ConfigMap with: kubeletadm init phase upload-config kubeadm --config FILE';
  throw new AppError({ host, code: 'CLUSTER_NO_KUBEADM_CONFIG', message, hint }, { exitCode: 3 });
}
