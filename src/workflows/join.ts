import { applyClusterDefaults } from '../core/config/defaults.ts';
import { dnsIp } from '../core/config/dns-ip.ts';
import { loadConfig } from '../core/config/load.ts';
import type { ClusterConfiguration } from '../core/config/model.ts';
import { AppError, isAppError } from '../core/errors.ts';
import { formatMinor, type Minor, NEWEST_MINOR, parseMinor } from '../core/kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../core/kubelet/decode.ts';
import { KUBELET_CONFIG_KEY, kubeletConfigMapName } from '../core/kubernetes/kubelet-config-map.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { Warning } from '../core/plan/change.ts';
import { adviseClusterConfig, layerClusterConfig, type WrittenConfig } from '../core/render/cluster-config.ts';
import type { Secret } from '../core/text/secret.ts';
import type { PhaseContext } from '../engine/phase.ts';
import type { Prepared, Workflow } from '../engine/run-workflow.ts';
import { type KubeletStartInput, kubeletStart } from '../phases/kubelet-start.ts';
import { kubeletWaitBootstrap } from '../phases/kubelet-wait-bootstrap.ts';
import { type RememberNodeInput, rememberStartedNode } from '../phases/remember-node.ts';
import type { Cluster } from '../ports/cluster.ts';
import { bootstrapFiles, hasIdentity } from './bootstrap-files.ts';
import { readConfigMapDocument } from './cluster-documents.ts';
import { joinFindings } from './join-findings.ts';
import { nodeMemoryOf } from './node-memory-of.ts';
import { designObservedNode, kubeletStartInput, type NodeOptions, type ObservedNode, observeNode } from './prepare-node.ts';
import { selectPhase } from './select-phase.ts';

export interface JoinOptions extends NodeOptions {
  /** The cluster the node joins, as discovered. */
  readonly apiServer: { readonly server: string; readonly caPem: string };
  /** What the kubelet bootstraps itself with. */
  readonly token: Secret;
  readonly caCertPath: string;
  readonly controlPlane: boolean;
  readonly tlsBootstrapMs: number;
}

export interface JoinInput {
  readonly kubeletStart: KubeletStartInput;
  readonly remember: RememberNodeInput;
  readonly tlsBootstrapMs: number;
}

/** Joins a worker: reads the cluster's configuration with the credentials given, then writes and starts the kubelet. */
export const joinWorkflow: Workflow<JoinOptions, JoinInput> = {
  name: 'join',
  phases: [
    selectPhase(kubeletStart, (input) => input.kubeletStart),
    selectPhase(rememberStartedNode, (input) => input.remember),
    selectPhase(kubeletWaitBootstrap, (input) => ({ timeoutMs: input.tlsBootstrapMs })),
  ],
  prepare: prepareJoin,
};

async function prepareJoin(context: PhaseContext, options: JoinOptions): Promise<Prepared<JoinInput>> {
  const cluster = context.cluster as Cluster;
  const node = await observeNode(context, options);
  const version = await cluster.version();
  const minor = parseMinor(version) ?? NEWEST_MINOR;
  const settings = applyClusterDefaults((await readClusterConfiguration(cluster)) ?? {});
  const defaults = {
    clusterDNS: dnsIp(settings.networking.serviceSubnet),
    dnsDomain: settings.networking.dnsDomain,
    certificatesDir: settings.certificatesDir,
  };
  const { baseline, warnings: baselineWarnings } = await readKubeletConfig(cluster, minor, options);
  const layered = layerClusterConfig(defaults, baseline);
  const { design, warnings, refusals } = designObservedNode(context, options, {
    node,
    cluster: layered,
    clusterIsDeclared: false,
    controlPlaneMinor: minor,
    registerWithTaints: options.controlPlane ? [] : (node.registration.taints ?? []),
    serviceSubnets: settings.networking.serviceSubnet,
    findings: joinFindings(node, { ...options.apiServer, caCertPath: options.caCertPath, namesake: await namesakeOf(node, cluster) }),
  });
  const start = kubeletStartInput(design, options);
  const target = { ...options.apiServer, caPath: options.caCertPath, token: hasIdentity(node.facts) ? null : options.token };
  return {
    input: {
      kubeletStart: {
        ...start,
        files: [...bootstrapFiles(options.templates, target), ...start.files],
        directories: [...start.directories, { path: '/etc/kubernetes', mode: 0o755 }],
      },
      remember: { memory: nodeMemoryOf(node, options), mayChown: start.mayChown },
      tlsBootstrapMs: options.tlsBootstrapMs,
    },
    warnings: [...baselineWarnings, ...adviseClusterConfig(layered, defaults), ...warnings],
    refusals,
    origins: design.origins,
  };
}

/** The Node of the same name; null where the credentials may not look (kubeadm lets bootstrap tokens do it). */
async function namesakeOf({ registration }: ObservedNode, cluster: Cluster): Promise<KubeObject | null> {
  return unlessForbidden(cluster.get({ apiVersion: 'v1', kind: 'Node', name: registration.name }));
}

async function unlessForbidden(found: Promise<KubeObject | null>): Promise<KubeObject | null> {
  try {
    return await found;
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return null;
    throw error;
  }
}

/** The cluster's kubeadm-config; null in a cluster that kubeadm did not make, or where the credentials may not read it. */
async function readClusterConfiguration(cluster: Cluster): Promise<ClusterConfiguration | null> {
  const found = await unlessForbidden(
    cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' }),
  );
  const text = (found?.data as Readonly<Record<string, string>> | undefined)?.ClusterConfiguration;
  if (text === undefined) return null;
  const { cluster: model, problems } = loadConfig(text, 'ConfigMap kube-system/kubeadm-config', {
    kinds: ['ClusterConfiguration'],
    allowDeprecated: true,
  });
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors);
  return model ?? null;
}

/**
 * The KubeletConfiguration of all nodes. What its version of the types does not know is left out with a warning, as kubeadm does; wrong types are errors.
 * @see kubeadm 1.36 componentconfigs: `kubelet-config`; `kubelet-config-1.X` up to 1.23
 */
async function readKubeletConfig(
  cluster: Cluster,
  minor: Minor,
  options: JoinOptions,
): Promise<{ baseline: WrittenConfig; warnings: readonly Warning[] }> {
  const name = kubeletConfigMapName(minor);
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name });
  if (found === null) {
    const message = `there is no ConfigMap kube-system/${name} in the cluster (${formatMinor(minor)})`;
    throw new AppError({
      code: 'CLUSTER_NO_KUBELET_CONFIG',
      message,
      mend: 'Upload one with: kubeletadm init phase upload-config kubelet --kubeconfig admin.conf',
    });
  }
  const document = readConfigMapDocument(found, KUBELET_CONFIG_KEY);
  const { value, fields, problems } = decodeKubeletConfiguration(document, {
    minor: Math.min(minor, NEWEST_MINOR),
    catalogue: options.catalogue,
    lenient: true,
  });
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors);
  const warnings = problems.map(({ code, message, path, position }): Warning => {
    const place = position === undefined ? '' : `${position.file}:${position.line}: `;
    return { code, message: `${place}${path ?? ''} ${message}`.trim(), ...(path === undefined ? {} : { field: path }) };
  });
  return { baseline: { value, fields, source: document.file }, warnings };
}
