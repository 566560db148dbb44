import { AppError } from '../../../base/errors.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { KUBELET_CONF } from '../../../kube/well-known.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import type { ControlPlaneNode } from '../../control-plane/model.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { caDirectoriesOf } from '../../facts/control-plane-host.ts';
import { apiEndpointOf } from '../../upgrade/static-pod-state.ts';
import { decodeUpgradeRecord, UPGRADE_ORDER, UPGRADE_RECORD_PATH } from '../../upgrade/upgrade-record.ts';
import { type ApiAccess, apiServerNotUp } from '../control-plane/api-access.ts';
import { decodeClusterConfiguration, KUBEADM_CONFIG_REF } from '../node/cluster-baseline.ts';

export interface ControlPlaneHostFacts {
  /** The endpoint of the API server of the host. */
  readonly endpoint: ControlPlaneNode['localAPIEndpoint'];
  readonly caDirectories: ControlPlaneNode['caDirectories'];
  readonly fileAt: (path: string) => FileFact | null;
  /** The existing manifest of a component; empty: no manifest. */
  readonly textOf: (component: StaticPodName) => string;
  /** An upgrade has started on the host and is not complete. */
  readonly isInterrupted: boolean;
}

const HOST_FACTS = combineFacts({
  files: fileFacts([...UPGRADE_ORDER.map(manifestPath), KUBELET_CONF, UPGRADE_RECORD_PATH]),
  caDirectories: caDirectoriesOf(),
});

/**
 * Observes a control plane that is upgraded.
 * @throws AppError CONTROL_PLANE_MISSING, exit code 3, without the manifest of an API server
 */
export async function observeControlPlaneHost({ host, signal }: PhaseContext): Promise<ControlPlaneHostFacts> {
  const { files, caDirectories } = await observe(host, HOST_FACTS, signal);
  const fileAt = (path: string): FileFact | null => files.get(path) ?? null;
  const textOf = (component: StaticPodName): string => fileAt(manifestPath(component))?.content ?? '';
  const endpoint = apiEndpointOf(textOf('kube-apiserver'));
  if (endpoint === null) throw noControlPlane(host.name);
  const isInterrupted = decodeUpgradeRecord(fileAt(UPGRADE_RECORD_PATH)?.content ?? '') !== null;
  return { endpoint, caDirectories, fileAt, textOf, isInterrupted };
}

/** The error for a host without a control plane that can be upgraded; exit code 3. */
export function noControlPlane(host: string): AppError {
  const path = manifestPath('kube-apiserver');
  const message = `the host has no control plane that can be upgraded: ${path} does not exist or does not set the flag --advertise-address`;
  const hint = 'Run the command on a control plane; upgrade a worker with kubeletadm upgrade node';
  return new AppError({ host, code: 'CONTROL_PLANE_MISSING', message, hint }, { exitCode: 3 });
}

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
