import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { type Catalogue, formatMinor, type Minor, NEWEST_MINOR, parseMinor } from '../../kubelet/catalogue.ts';
import { type ParsedConfig, readKubeletConfiguration } from '../../kubelet/decode.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../config/defaults.ts';
import { mergeClusterConfiguration } from '../config/merge-cluster.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { isGenerated, KUBELET_CONFIG_KEY, kubeletConfigMapName } from '../kubelet-config-map.ts';
import type { readClusterConfiguration } from './cluster-baseline.ts';
import { readConfigMapDocument } from './cluster-documents.ts';
import type { ObservedNode } from './observe-node.ts';

/** What the API server says counts; then what the user wrote; then the kubelet on the host. */
export async function controlPlaneVersion(
  { cluster }: PhaseContext,
  { kubernetesVersion }: ClusterConfiguration,
  kubelet: ObservedNode['facts']['kubelet'],
): Promise<{ version: string; warnings: readonly Warning[] }> {
  const written = kubernetesVersion !== undefined && parseMinor(kubernetesVersion) !== null ? kubernetesVersion : null;
  const ofKubelet = kubelet !== null && 'version' in kubelet ? kubelet.version : formatMinor(NEWEST_MINOR);
  if (cluster === null) return { version: written ?? ofKubelet, warnings: [] };
  const version = await cluster.version();
  if (written === null || parseMinor(written) === parseMinor(version)) return { version, warnings: [] };
  const message = `kubernetesVersion is ${written}, but the API server is ${version}: the server's version counts`;
  return { version, warnings: [{ code: 'KUBERNETES_VERSION_DIFFERS', message }] };
}

/** Without a KubeletConfiguration from the user, one that somebody edited in the cluster is the baseline; a generated one is made anew. */
export async function editedClusterConfig(
  { cluster }: PhaseContext,
  { catalogue }: { readonly catalogue: Catalogue },
  minor: Minor,
): Promise<ParsedConfig | null> {
  if (cluster === null) return null;
  const name = kubeletConfigMapName(minor);
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name });
  if (found === null || isGenerated(found)) return null;
  return readKubeletConfiguration(readConfigMapDocument(found, KUBELET_CONFIG_KEY), { minor: Math.min(minor, NEWEST_MINOR), catalogue });
}

/** Of a cluster that is not there. */
export const NO_SETTINGS = { model: null, warnings: [] } as const satisfies Awaited<ReturnType<typeof readClusterConfiguration>>;

/** What was declared over what the cluster says. Its version stays as it is there, unless one was declared: then the server's counts. */
export function settingsOf(found: ClusterConfiguration, declared: ClusterConfiguration, version: string): DefaultedCluster {
  const kubernetesVersion = declared.kubernetesVersion === undefined ? (found.kubernetesVersion ?? version) : version;
  return applyClusterDefaults({ ...mergeClusterConfiguration(found, declared), kubernetesVersion });
}
