import type { SourceDocument } from '../../../codec/source.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import { type Catalogue, DEFAULT_MINOR, formatMinor, type Minor, NEWEST_MINOR, parseMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { type ParsedConfig, readKubeletConfiguration } from '../../../kubelet/documents/decode.ts';
import type { LayeredConfig } from '../../../kubelet/layers/layers.ts';
import { otherMinorWarning } from '../../../kubelet/minor-option.ts';
import { isGenerated, KUBELET_CONFIG_KEY, kubeletConfigMapName } from '../../cluster-objects/kubelet-config-map.ts';
import { applyClusterDefaults, type DefaultedCluster, mergeClusterConfiguration } from '../../config/defaults.ts';
import { dnsIp } from '../../config/dns-ip.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import { problemAsWarning } from '../../config/problem-as-warning.ts';
import type { UploadKubeletConfigInput } from '../../phases/upload-config.ts';
import { adviseClusterConfig, mergeClusterKubeletConfig, renderClusterConfig } from '../../render/cluster-config.ts';
import { readClusterConfiguration, readConfigMapDocument } from './cluster-baseline.ts';
import { type DesignedNode, designObservedNode } from './design-observed-node.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';

interface FirstNodeOptions extends NodeOptions {
  /** The user's KubeletConfiguration for all nodes. */
  readonly kubelet: SourceDocument | null;
}

interface FirstNode {
  readonly node: ObservedNode;
  readonly cluster: DefaultedCluster;
  readonly controlPlaneMinor: Minor;
  /** The running API server; null: none yet. */
  readonly running: Cluster | null;
}

export interface DesignedFirstNode extends DesignedNode {
  /** The KubeletConfiguration of all nodes, to be uploaded. */
  readonly upload: Pick<UploadKubeletConfigInput, 'controlPlaneMinor' | 'yaml' | 'generated'>;
}

/**
 * Computes the KubeletConfiguration of all nodes. The baseline is the user's KubeletConfiguration, otherwise the one in the
 * cluster if it was uploaded from --config or edited by hand; a generated one is generated again. kubeadm 1.36: init, upload-config kubelet.
 * @throws AppError with exit code 2 for wrong fields in the KubeletConfiguration
 */
export async function designClusterKubelet(
  { kubelet, catalogue }: Pick<FirstNodeOptions, 'kubelet' | 'catalogue'>,
  { cluster, controlPlaneMinor, running }: Omit<FirstNode, 'node'>,
): Promise<{
  readonly layered: LayeredConfig;
  readonly upload: DesignedFirstNode['upload'];
  /** The user's document, and not that of the cluster, is its baseline. */
  readonly isDeclared: boolean;
  readonly warnings: readonly Warning[];
}> {
  const minor = Math.min(controlPlaneMinor, NEWEST_MINOR);
  const defaults = {
    clusterDNS: dnsIp(cluster.networking.serviceSubnet),
    dnsDomain: cluster.networking.dnsDomain,
    certificatesDir: cluster.certificatesDir,
  };
  const unknown: Warning[] = [];
  const written =
    kubelet === null ? null : readKubeletConfiguration(kubelet, { minor, catalogue }, (problem) => unknown.push(problemAsWarning(problem)));
  const baseline = written ?? (await readEditedKubeletConfig(running, catalogue, controlPlaneMinor));
  const layered = mergeClusterKubeletConfig(defaults, baseline);
  return {
    layered,
    upload: { controlPlaneMinor, yaml: renderClusterConfig(layered, minor, catalogue), generated: baseline === null },
    isDeclared: written !== null,
    warnings: [...unknown, ...adviseClusterConfig(layered, defaults)],
  };
}

/**
 * Computes the KubeletConfiguration of all nodes and the files of the first node. kubeadm 1.36: init, kubelet-start.
 * @throws AppError with exit code 2: as designObservedNode and designClusterKubelet
 */
export async function designFirstNode(context: PhaseContext, options: FirstNodeOptions, first: FirstNode): Promise<DesignedFirstNode> {
  const { node, cluster, controlPlaneMinor, running } = first;
  const all = await designClusterKubelet(options, first);
  // designObservedNode warns about the kubelet on the host.
  const other = controlPlaneMinor > NEWEST_MINOR && controlPlaneMinor !== node.kubeletMinor ? otherMinorWarning(controlPlaneMinor) : null;
  const designed = await designObservedNode(context, options, {
    node,
    cluster: all.layered,
    clusterIsDeclared: all.isDeclared,
    controlPlaneMinor,
    registerWithTaints: [],
    serviceSubnets: cluster.networking.serviceSubnet,
    featureGates: cluster.featureGates ?? {},
    imageRepository: cluster.imageRepository,
    podsOf: running,
    drainedBy: context.cluster,
    written: [`${cluster.certificatesDir}/ca.crt`],
  });
  return { ...designed, upload: all.upload, warnings: [...(other === null ? [] : [other]), ...all.warnings, ...designed.warnings] };
}

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

/** The settings of a cluster: declared, over those of the running one, with its version as for `controlPlaneVersion`. */
export async function observeClusterSettings(
  running: Cluster | null,
  declared: ClusterConfiguration,
  kubelet: ObservedNode['facts']['kubelet'],
) {
  const { version, warnings } = await controlPlaneVersion(running, declared, kubelet);
  const found = running === null ? NO_CLUSTER_SETTINGS : await readClusterConfiguration(running);
  const cluster = settingsOf(found.model ?? {}, declared, version);
  return { version, found, cluster, controlPlaneMinor: parseMinor(version) ?? NEWEST_MINOR, warnings: [...found.warnings, ...warnings] };
}

/** The cluster's KubeletConfiguration if it was uploaded from --config or edited by hand; null if it is missing or generated. */
async function readEditedKubeletConfig(cluster: Cluster | null, catalogue: Catalogue, minor: Minor): Promise<ParsedConfig | null> {
  if (cluster === null) return null;
  const name = kubeletConfigMapName(minor);
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name });
  if (found === null || isGenerated(found)) return null;
  return readKubeletConfiguration(readConfigMapDocument(found, KUBELET_CONFIG_KEY), { minor: Math.min(minor, NEWEST_MINOR), catalogue });
}

/** Settings found in a cluster that does not exist yet. */
export const NO_CLUSTER_SETTINGS = { model: null, warnings: [] } as const satisfies Awaited<ReturnType<typeof readClusterConfiguration>>;

/**
 * Merges declared settings over those of the cluster. `version` replaces the cluster's version only if one is declared.
 * @param bindPort as for `applyClusterDefaults`
 */
export function settingsOf(
  found: ClusterConfiguration,
  declared: ClusterConfiguration,
  version: string,
  bindPort?: number,
): DefaultedCluster {
  const kubernetesVersion = declared.kubernetesVersion === undefined ? (found.kubernetesVersion ?? version) : version;
  return applyClusterDefaults({ ...mergeClusterConfiguration(found, declared), kubernetesVersion }, bindPort);
}
