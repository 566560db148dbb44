import type { Warning } from '../../../host/plan/change.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import { type Catalogue, DEFAULT_MINOR, formatMinor, type Minor, NEWEST_MINOR, parseMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { type ParsedConfig, readKubeletConfiguration } from '../../../kubelet/documents/decode.ts';
import { isGenerated, KUBELET_CONFIG_KEY, kubeletConfigMapName } from '../../cluster-objects/kubelet-config-map.ts';
import { applyClusterDefaults, type DefaultedCluster, mergeClusterConfiguration } from '../../config/defaults.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import type { readClusterConfiguration } from './cluster-baseline.ts';
import { readConfigMapDocument } from './cluster-documents.ts';
import type { ObservedNode } from './observe-node.ts';

/** Kubernetes version of the control plane: of the API server, else as declared, else of the kubelet on the host. */
export async function controlPlaneVersion(
  cluster: Cluster | null,
  { kubernetesVersion }: ClusterConfiguration,
  kubelet: ObservedNode['facts']['kubelet'],
): Promise<{ version: string; warnings: readonly Warning[] }> {
  const written = kubernetesVersion !== undefined && parseMinor(kubernetesVersion) !== null ? kubernetesVersion : null;
  const ofKubelet = kubelet !== null && 'version' in kubelet ? kubelet.version : formatMinor(DEFAULT_MINOR);
  if (cluster === null) return { version: written ?? ofKubelet, warnings: [] };
  const version = await cluster.version();
  if (written === null || parseMinor(written) === parseMinor(version)) return { version, warnings: [] };
  const message = `kubernetesVersion is ${written}, but the API server is ${version}: the version of the API server is used`;
  return { version, warnings: [{ code: 'KUBERNETES_VERSION_DIFFERS', message }] };
}

/** The cluster's KubeletConfiguration if an administrator edited it; null if it is missing or generated. */
export async function readEditedKubeletConfig(cluster: Cluster | null, catalogue: Catalogue, minor: Minor): Promise<ParsedConfig | null> {
  if (cluster === null) return null;
  const name = kubeletConfigMapName(minor);
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name });
  if (found === null || isGenerated(found)) return null;
  return readKubeletConfiguration(readConfigMapDocument(found, KUBELET_CONFIG_KEY), { minor: Math.min(minor, NEWEST_MINOR), catalogue });
}

/** Settings found in a cluster that does not exist yet. */
export const NO_CLUSTER_SETTINGS = { model: null, warnings: [] } as const satisfies Awaited<ReturnType<typeof readClusterConfiguration>>;

/** Merges declared settings over those of the cluster. `version` replaces the cluster's version only if one is declared. */
export function settingsOf(found: ClusterConfiguration, declared: ClusterConfiguration, version: string): DefaultedCluster {
  const kubernetesVersion = declared.kubernetesVersion === undefined ? (found.kubernetesVersion ?? version) : version;
  return applyClusterDefaults({ ...mergeClusterConfiguration(found, declared), kubernetesVersion });
}
