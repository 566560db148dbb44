import { AppError, isAppError, type Problem } from '../../../base/errors.ts';
import { releaseOfVersion } from '../../../base/kubernetes-version.ts';
import { parseSource, type SourceDocument } from '../../../codec/source.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { KUBE_SYSTEM, KUBEADM_CONFIG_NAME } from '../../../kube/well-known.ts';
import { type Catalogue, formatMinor, type Minor, NEWEST_MINOR, parseMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { decodeKubeletConfiguration, type ParsedConfig } from '../../../kubelet/documents/decode.ts';
import type { LayeredConfig } from '../../../kubelet/layers/layers.ts';
import { KUBELET_CONFIG_KEY, kubeletConfigMapName } from '../../cluster-objects/kubelet-config-map.ts';
import { applyClusterDefaults } from '../../config/defaults.ts';
import { dnsIp } from '../../config/dns-ip.ts';
import { loadConfig } from '../../config/load.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import { proxyExceptions } from '../../config/proxy-exceptions.ts';
import { adviseClusterConfig, mergeClusterKubeletConfig } from '../../render/cluster-config.ts';

/** The ConfigMap in which kubeadm keeps the ClusterConfiguration. */
export const KUBEADM_CONFIG_REF = { apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: KUBEADM_CONFIG_NAME } as const;

/** Cluster-wide settings of all nodes. */
export interface ClusterBaseline {
  readonly controlPlaneMinor: Minor;
  readonly layered: LayeredConfig;
  readonly serviceSubnets: string | null;
  /** Subnets, domains and the API endpoint of the cluster that its hosts reach without a proxy. */
  readonly proxyExceptions: readonly string[];
  readonly clusterName: string;
  readonly imageRepository: string;
  /** Feature gates of kubeadm, not of the kubelet. */
  readonly featureGates: Readonly<Record<string, boolean>>;
  readonly warnings: readonly Warning[];
}

/** The documents of a cluster as an upgrade leaves them. */
export interface UpgradedDocuments {
  /** `v1.36.2`, or `ci/v1.36.2-10+abcdef` */
  readonly version: string;
  readonly cluster: ClusterConfiguration;
  /** Text of the KubeletConfiguration; null: that of the cluster. */
  readonly kubelet: string | null;
}

/**
 * Reads `kubelet-config` and the fields of `kubeadm-config` that decide its defaults.
 * @param upgraded documents that replace those of the cluster
 * @throws AppError CLUSTER_NO_KUBELET_CONFIG, CLUSTER_CONFIG_INVALID, the decoder's problems, the errors of `Cluster`
 */
export async function readClusterBaseline(
  cluster: Cluster,
  catalogue: Catalogue,
  upgraded: UpgradedDocuments | null = null,
): Promise<ClusterBaseline> {
  const minor = parseMinor(upgraded === null ? await cluster.version() : releaseOfVersion(upgraded.version)) ?? NEWEST_MINOR;
  const found = upgraded === null ? await readClusterConfiguration(cluster) : { model: upgraded.cluster, warnings: [] };
  const settings = applyClusterDefaults(found.model ?? {});
  const defaults = {
    clusterDNS: dnsIp(settings.networking.serviceSubnet),
    dnsDomain: settings.networking.dnsDomain,
    certificatesDir: settings.certificatesDir,
  };
  const { baseline, warnings } = await readKubeletConfig(cluster, { minor, catalogue, replaced: upgraded?.kubelet ?? null });
  const layered = mergeClusterKubeletConfig(defaults, baseline);
  return {
    controlPlaneMinor: minor,
    layered,
    serviceSubnets: settings.networking.serviceSubnet,
    proxyExceptions: proxyExceptions(settings),
    clusterName: settings.clusterName,
    imageRepository: settings.imageRepository,
    featureGates: settings.featureGates ?? {},
    warnings: [...found.warnings, ...warnings, ...adviseClusterConfig(layered, defaults)],
  };
}

/** The object; null when the credentials are not allowed to read it. */
export async function unlessForbidden<T>(found: Promise<T | null>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return null;
    throw error;
  }
}

export interface FoundClusterConfiguration {
  readonly model: ClusterConfiguration | null;
  readonly warnings: readonly Warning[];
}

/**
 * The ClusterConfiguration of kubeadm-config; null when the ConfigMap does not exist or the credentials may not read
 * it. A newer kubeadm may have written unknown fields: they are ignored with a warning.
 */
export async function readClusterConfiguration(cluster: Cluster): Promise<FoundClusterConfiguration> {
  return decodeClusterConfiguration(await unlessForbidden(cluster.get(KUBEADM_CONFIG_REF)));
}

/**
 * Decodes ConfigMap kubeadm-config; null when it does not exist.
 * @throws AppError with the problems of its ClusterConfiguration
 */
export function decodeClusterConfiguration(found: KubeObject | null): FoundClusterConfiguration {
  const text = (found?.data as Readonly<Record<string, string>> | undefined)?.ClusterConfiguration;
  if (text === undefined) return { model: null, warnings: [] };
  const { cluster: model, problems } = loadConfig(text, 'ConfigMap kube-system/kubeadm-config', {
    kinds: ['ClusterConfiguration'],
    allowDeprecated: true,
    lenient: true,
  });
  return { model: model ?? null, warnings: refuseErrors(problems) };
}

/**
 * The KubeletConfiguration of all nodes. As in kubeadm, unknown fields are dropped with a warning; wrong types are
 * errors.
 * @see kubeadm 1.36 componentconfigs: `kubelet-config`; `kubelet-config-1.X` up to 1.23
 */
async function readKubeletConfig(
  cluster: Cluster,
  { minor, catalogue, replaced }: { readonly minor: Minor; readonly catalogue: Catalogue; readonly replaced: string | null },
): Promise<{ baseline: ParsedConfig; warnings: readonly Warning[] }> {
  const name = kubeletConfigMapName(minor);
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name });
  if (found === null) {
    const message = `ConfigMap kube-system/${name} does not exist in the cluster (${formatMinor(minor)})`;
    throw new AppError({
      code: 'CLUSTER_NO_KUBELET_CONFIG',
      message,
      hint: 'Create the ConfigMap with: kubeletadm cluster adopt --kubeconfig admin.conf',
    });
  }
  const desired = replaced === null ? found : { ...found, data: { [KUBELET_CONFIG_KEY]: replaced } };
  const document = readConfigMapDocument(desired, KUBELET_CONFIG_KEY);
  const { value, fields, problems } = decodeKubeletConfiguration(document, {
    minor: Math.min(minor, NEWEST_MINOR),
    catalogue,
    lenient: true,
  });
  return { baseline: { value, fields, source: document.file }, warnings: refuseErrors(problems) };
}

/** Throws the errors, returns the warnings. */
function refuseErrors(problems: readonly Problem[]): readonly Warning[] {
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors);
  return problems.map(({ code, message, path, position }): Warning => {
    const place = position === undefined ? '' : `${position.file}:${position.line}: `;
    return { code, message: `${place}${path ?? ''} ${message}`.trim(), field: path };
  });
}

/**
 * The YAML document under a key of a ConfigMap.
 * @throws AppError CLUSTER_CONFIG_INVALID when the key is missing, empty, or holds several documents (no rule selects
 * one of them)
 */
export function readConfigMapDocument(configMap: KubeObject, key: string): SourceDocument {
  const where = `ConfigMap ${configMap.metadata.namespace}/${configMap.metadata.name}`;
  const text = (configMap.data as Readonly<Record<string, string>> | undefined)?.[key];
  if (text === undefined) throw invalid(`${where} has no key ${key}`);
  const { documents, problems } = parseSource(text, where);
  if (problems.length > 0) throw new AppError(problems, { exitCode: 1 });
  const [document, another] = documents.filter(({ root }) => root !== null);
  if (another !== undefined) throw invalid(`${where}: key ${key} holds several documents`);
  if (document === undefined) throw invalid(`${where}: key ${key} is empty`);
  return document;
}

function invalid(message: string): AppError {
  return new AppError({
    code: 'CLUSTER_CONFIG_INVALID',
    message,
    hint: 'Upload the ConfigMap again with: kubeletadm init phase upload-config kubelet --kubeconfig admin.conf',
  });
}
