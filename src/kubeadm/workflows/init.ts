import { parseKubernetesVersion } from '../../base/kubernetes-version.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { SourceDocument } from '../../codec/source.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { NEWEST_MINOR, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../config/defaults.ts';
import { encodeClusterConfiguration } from '../config/encode.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { controlPlanePhases } from '../kubeadm-phases.ts';
import { type BootstrapTokenInput, bootstrapToken } from '../phases/bootstrap-token.ts';
import { type KubeletStartInput, kubeletStart } from '../phases/kubelet-start.ts';
import { kubeletWaitBootstrap } from '../phases/kubelet-wait-bootstrap.ts';
import { type SaveNodeSettingsInput, saveStartedNodeSettings } from '../phases/save-node-settings.ts';
import { type ShowJoinCommandInput, showJoinCommand } from '../phases/show-join-command.ts';
import { type UploadKubeadmConfigInput, uploadConfigKubeadm } from '../phases/upload-config-kubeadm.ts';
import { type UploadKubeletConfigInput, uploadConfigKubelet } from '../phases/upload-config-kubelet.ts';
import { type InitTokenOptions, planInitTokens } from './init-tokens.ts';
import { bootstrapFiles, hasIdentity } from './node/bootstrap-files.ts';
import { readClusterConfiguration } from './node/cluster-baseline.ts';
import { designFirstNode } from './node/design-first-node.ts';
import { controlPlaneVersion, NO_CLUSTER_SETTINGS, settingsOf } from './node/init-settings.ts';
import type { NodeOptions } from './node/node-options.ts';
import { nodeSettingsOf } from './node/node-settings-of.ts';
import { observeNode } from './node/observe-node.ts';

export interface InitOptions extends NodeOptions, InitTokenOptions {
  readonly cluster: ClusterConfiguration;
  /** The user's KubeletConfiguration for all nodes. */
  readonly kubelet: SourceDocument | null;
  /** URL and CA of the existing API server, from its kubeconfig. */
  readonly apiServer: { readonly server: string; readonly caPem: string } | null;
  readonly forceUpload: boolean;
  readonly tlsBootstrapMs: number;
  /** Tokens must not be printed. */
  readonly withholdToken: boolean;
  /** Prints the join commands. */
  readonly showJoinCommand: ShowJoinCommandInput['show'];
}

export interface InitInput {
  readonly kubeletStart: KubeletStartInput;
  readonly save: SaveNodeSettingsInput;
  readonly upload: UploadKubeletConfigInput;
  readonly uploadKubeadm: UploadKubeadmConfigInput;
  readonly bootstrapToken: BootstrapTokenInput;
  readonly show: ShowJoinCommandInput;
  readonly tlsBootstrapMs: number;
  readonly nodeName: string;
}

/** Bootstraps the first node of an existing API server and uploads the configuration for all nodes. */
export const initWorkflow: Workflow<InitOptions, InitInput> = {
  name: 'init',
  absentPhases: controlPlanePhases('init'),
  phases: [
    bootstrapToken.select((input) => input.bootstrapToken),
    kubeletStart.select((input) => input.kubeletStart),
    saveStartedNodeSettings.select((input) => input.save),
    kubeletWaitBootstrap.select((input) => ({ timeoutMs: input.tlsBootstrapMs, nodeName: input.nodeName })),
    uploadConfigKubeadm.select((input) => input.uploadKubeadm),
    uploadConfigKubelet.select((input) => input.upload),
    showJoinCommand.select((input) => input.show),
  ],
  prepare: prepareInit,
};

async function prepareInit(context: PhaseContext, options: InitOptions): Promise<Prepared<InitInput>> {
  const node = await observeNode(context, options);
  const { version, warnings: versionWarnings } = await controlPlaneVersion(context.cluster, options.cluster, node.facts.kubelet);
  const minor = parseMinor(version) ?? NEWEST_MINOR;
  const found = context.cluster === null ? NO_CLUSTER_SETTINGS : await readClusterConfiguration(context.cluster);
  const cluster = settingsOf(found.model ?? {}, options.cluster, version);
  const apiServer = options.apiServer && { ...options.apiServer, server: serverOf(cluster, options.apiServer) };
  const { design, start, upload, warnings, refusals } = await designFirstNode(context, options, {
    node,
    cluster,
    controlPlaneMinor: minor,
    running: context.cluster,
  });
  const tokens = await planInitTokens(context, options);
  const identity = initIdentity(options, { apiServer, token: tokens.joining[0], cluster, existingIdentity: hasIdentity(node.facts) });
  return {
    input: {
      kubeletStart: { ...start, credentials: identity.files },
      upload: {
        ...upload,
        forceUpload: options.forceUpload,
        assumeEmptyCluster: options.run.dryRun,
      },
      nodeName: node.registration.name,
      save: { nodeSettings: nodeSettingsOf(node, options), mayChown: start.mayChown, isStored: start.settings !== undefined },
      tlsBootstrapMs: options.tlsBootstrapMs,
      uploadKubeadm: {
        clusterConfiguration: parseKubernetesVersion(version)?.kind === 'release' ? encodeClusterConfiguration(cluster) : null,
        currentConfiguration: found.model && encodeClusterConfiguration(applyClusterDefaults(found.model)),
        assumeEmptyCluster: options.run.dryRun,
      },
      bootstrapToken: {
        tokens: tokens.desired,
        apiServer,
        replaceAddress: options.forceUpload || cluster.controlPlaneEndpoint !== undefined,
        assumeEmptyCluster: options.run.dryRun,
        now: context.clock.now(),
      },
      show: { tokens: tokens.joining, apiServer, withhold: options.withholdToken, show: options.showJoinCommand },
    },
    warnings: [...found.warnings, ...versionWarnings, ...warnings, ...identity.warnings],
    refusals,
    origins: design.origins,
  };
}

/** The URL that nodes use: the control plane endpoint, if one is declared. */
function serverOf({ controlPlaneEndpoint }: DefaultedCluster, { server }: { readonly server: string }): string {
  return controlPlaneEndpoint === undefined ? server : `https://${controlPlaneEndpoint}`;
}

/** Files with the cluster CA and, for a kubelet without a client certificate, bootstrap credentials. */
function initIdentity(
  { templates }: InitOptions,
  facts: {
    readonly apiServer: InitOptions['apiServer'];
    readonly token: Secret | undefined;
    readonly cluster: DefaultedCluster;
    readonly existingIdentity: boolean;
  },
): { files: readonly DesiredFile[]; warnings: readonly Warning[] } {
  const { apiServer, token, cluster, existingIdentity } = facts;
  if (apiServer === null) return { files: [], warnings: [] };
  const target = { ...apiServer, clusterName: cluster.clusterName, caPath: `${cluster.certificatesDir}/ca.crt` };
  if (existingIdentity) return { files: bootstrapFiles(templates, { ...target, token: null }), warnings: [] };
  if (token !== undefined) return { files: bootstrapFiles(templates, { ...target, token }), warnings: [] };
  const message =
    'the kubelet has no credentials: /etc/kubernetes/kubelet.conf is missing or unusable, and no token allows joining. Pass a token with --token';
  return { files: bootstrapFiles(templates, { ...target, token: null }), warnings: [{ code: 'KUBELET_NO_CREDENTIALS', message }] };
}
