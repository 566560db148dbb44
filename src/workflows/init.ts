import { applyClusterDefaults } from '../core/config/defaults.ts';
import { dnsIp } from '../core/config/dns-ip.ts';
import type { BootstrapToken, ClusterConfiguration } from '../core/config/model.ts';
import type { SourceDocument } from '../core/config/source.ts';
import { formatMinor, type Minor, NEWEST_MINOR, parseMinor } from '../core/kubelet/catalogue.ts';
import { isGenerated, KUBELET_CONFIG_KEY, kubeletConfigMapName } from '../core/kubernetes/kubelet-config-map.ts';
import type { Warning } from '../core/plan/change.ts';
import type { WantedFile } from '../core/plan/diff-file.ts';
import { adviseClusterConfig, encodeClusterConfig, layerClusterConfig, type WrittenConfig } from '../core/render/cluster-config.ts';
import type { Secret } from '../core/text/secret.ts';
import { encodeYaml } from '../core/text/yaml-encode.ts';
import type { PhaseContext } from '../engine/phase.ts';
import type { Prepared, Workflow } from '../engine/run-workflow.ts';
import { type KubeletStartInput, kubeletStart } from '../phases/kubelet-start.ts';
import { kubeletWaitBootstrap } from '../phases/kubelet-wait-bootstrap.ts';
import { type RememberNodeInput, rememberStartedNode } from '../phases/remember-node.ts';
import { type UploadKubeletConfigInput, uploadConfigKubelet } from '../phases/upload-config-kubelet.ts';
import { bootstrapFiles, hasIdentity } from './bootstrap-files.ts';
import { readConfigMapDocument } from './cluster-documents.ts';
import { nodeMemoryOf } from './node-memory-of.ts';
import { designObservedNode, kubeletStartInput, type NodeOptions, observeNode, readWritten } from './prepare-node.ts';
import { selectPhase } from './select-phase.ts';

export interface InitOptions extends NodeOptions {
  readonly cluster: ClusterConfiguration;
  /** The KubeletConfiguration for all nodes, when the user gave one. */
  readonly kubelet: SourceDocument | null;
  readonly bootstrapTokens: readonly BootstrapToken[];
  /** CA and address of the API server there is, from its kubeconfig. */
  readonly apiServer: { readonly server: string; readonly caPem: string } | null;
  readonly forceUpload: boolean;
  readonly tlsBootstrapMs: number;
}

export interface InitInput {
  readonly kubeletStart: KubeletStartInput;
  readonly remember: RememberNodeInput;
  readonly upload: UploadKubeletConfigInput;
  readonly tlsBootstrapMs: number;
}

/** Brings up the first node's kubelet at an API server that is there, and uploads the configuration for all others. */
export const initWorkflow: Workflow<InitOptions, InitInput> = {
  name: 'init',
  phases: [
    selectPhase(kubeletStart, (input) => input.kubeletStart),
    selectPhase(rememberStartedNode, (input) => input.remember),
    selectPhase(kubeletWaitBootstrap, (input) => ({ timeoutMs: input.tlsBootstrapMs })),
    selectPhase(uploadConfigKubelet, (input) => input.upload),
  ],
  prepare: prepareInit,
};

async function prepareInit(context: PhaseContext, options: InitOptions): Promise<Prepared<InitInput>> {
  const node = await observeNode(context, options);
  const { version, warnings: versionWarnings } = await controlPlaneVersion(context, options.cluster, node.kubeletMinor);
  const minor = parseMinor(version) ?? NEWEST_MINOR;
  const cluster = applyClusterDefaults(options.cluster);
  const defaults = {
    clusterDNS: dnsIp(cluster.networking.serviceSubnet),
    dnsDomain: cluster.networking.dnsDomain,
    certificatesDir: cluster.certificatesDir,
  };
  const written = options.kubelet === null ? null : readWritten(options.kubelet, Math.min(minor, NEWEST_MINOR), options.catalogue);
  const baseline = written ?? (await editedClusterConfig(context, options, minor));
  const layered = layerClusterConfig(defaults, baseline);
  const { design, warnings, refusals } = await designObservedNode(context, options, {
    node,
    cluster: layered,
    clusterIsDeclared: written !== null,
    controlPlaneMinor: minor,
    registerWithTaints: [],
    serviceSubnets: cluster.networking.serviceSubnet,
    featureGates: cluster.featureGates ?? {},
  });
  const identity = initIdentity(options, hasIdentity(node.facts));
  const start = kubeletStartInput(design, options);
  return {
    input: {
      kubeletStart: {
        ...start,
        files: [...identity.files, ...start.files],
        directories: [...start.directories, { path: '/etc/kubernetes', mode: 0o755 }],
      },
      upload: {
        controlPlaneMinor: minor,
        yaml: encodeYaml(encodeClusterConfig(layered, Math.min(minor, NEWEST_MINOR), options.catalogue)),
        generated: baseline === null,
        forceUpload: options.forceUpload,
        assumeEmptyCluster: options.dryRun,
      },
      remember: { memory: nodeMemoryOf(node, options), mayChown: start.mayChown },
      tlsBootstrapMs: options.tlsBootstrapMs,
    },
    warnings: [...versionWarnings, ...adviseClusterConfig(layered, defaults), ...warnings, ...identity.warnings],
    refusals,
    origins: design.origins,
  };
}

/** What the API server says counts; then what the user wrote; then the kubelet on the host. */
async function controlPlaneVersion(
  { cluster }: PhaseContext,
  { kubernetesVersion }: ClusterConfiguration,
  kubeletMinor: Minor | null,
): Promise<{ version: string; warnings: readonly Warning[] }> {
  const written = kubernetesVersion !== undefined && parseMinor(kubernetesVersion) !== null ? kubernetesVersion : null;
  if (cluster === null) return { version: written ?? formatMinor(kubeletMinor ?? NEWEST_MINOR), warnings: [] };
  const version = await cluster.version();
  if (written === null || parseMinor(written) === parseMinor(version)) return { version, warnings: [] };
  const message = `kubernetesVersion is ${written}, but the API server is ${version}: the server's version counts`;
  return { version, warnings: [{ code: 'KUBERNETES_VERSION_DIFFERS', message }] };
}

/** Without a KubeletConfiguration from the user, one that somebody edited in the cluster is the baseline; a generated one is made anew. */
async function editedClusterConfig({ cluster }: PhaseContext, { catalogue }: InitOptions, minor: Minor): Promise<WrittenConfig | null> {
  if (cluster === null) return null;
  const name = kubeletConfigMapName(minor);
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name });
  if (found === null || isGenerated(found)) return null;
  return readWritten(readConfigMapDocument(found, KUBELET_CONFIG_KEY), Math.min(minor, NEWEST_MINOR), catalogue);
}

/** With an API server and a token, a kubelet without an identity gets bootstrap credentials and the cluster's CA. */
function initIdentity(options: InitOptions, identityThere: boolean): { files: readonly WantedFile[]; warnings: readonly Warning[] } {
  if (options.apiServer === null) return { files: [], warnings: [] };
  const token = options.bootstrapTokens.find((each) => each.token !== undefined)?.token as Secret | undefined;
  const { certificatesDir, clusterName } = applyClusterDefaults(options.cluster);
  const target = { ...options.apiServer, clusterName, caPath: `${certificatesDir}/ca.crt` };
  if (identityThere) return { files: bootstrapFiles(options.templates, { ...target, token: null }), warnings: [] };
  if (token !== undefined) return { files: bootstrapFiles(options.templates, { ...target, token }), warnings: [] };
  const message = 'there is no kubelet.conf on the host and no token was given (--token): the kubelet has nothing to log in with';
  return { files: bootstrapFiles(options.templates, { ...target, token: null }), warnings: [{ code: 'KUBELET_NO_CREDENTIALS', message }] };
}
