import { parseKubernetesVersion } from '../../base/kubernetes-version.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Workflow } from '../../host/run-workflow.ts';
import type { ClusterServer } from '../../kube/kubeconfig-render.ts';
import type { Catalogue } from '../../kubelet/catalogue/catalogue.ts';
import { NEWEST_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import { KUBELET_API_VERSION } from '../../kubelet/documents/decode.ts';
import { otherMinorWarning } from '../../kubelet/minor-option.ts';
import { checkNodeFields } from '../../kubelet/validate/check-node-fields.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../config/defaults.ts';
import { encodeClusterConfiguration } from '../config/encode.ts';
import type { LoadedConfig } from '../config/load.ts';
import { type BootstrapTokenInput, bootstrapToken } from '../phases/bootstrap-token.ts';
import { type ShowJoinCommandInput, showJoinCommand } from '../phases/show-join-command.ts';
import { type UploadKubeletConfigInput, uploadConfigKubeadm, uploadConfigKubelet } from '../phases/upload-config.ts';
import { type InitTokenOptions, type InitTokens, planInitTokens } from './bootstrap-tokens.ts';
import type { FoundClusterConfiguration } from './node/cluster-baseline.ts';
import { designClusterKubelet, observeClusterSettings } from './node/design-first-node.ts';

interface AdoptOptions extends InitTokenOptions {
  /** ClusterConfiguration and KubeletConfiguration, as declared. */
  readonly config: Pick<LoadedConfig, 'cluster' | 'kubelet'>;
  readonly catalogue: Catalogue;
  /** URL and CA of the API server, from its kubeconfig; null: the kubeconfig contains no CA. */
  readonly apiServer: ClusterServer | null;
  readonly forceUpload: boolean;
  /** The join command omits the token. */
  readonly withholdToken: boolean;
  /** Receives the join commands; null: none is printed. */
  readonly showJoinCommand: ShowJoinCommandInput['show'] | null;
}

/**
 * Creates the objects of a kubeadm cluster in a cluster that another program created, so that hosts can join it. Changes no
 * host, and no object that an administrator edited.
 */
export const adoptWorkflow: Workflow<AdoptOptions, Awaited<ReturnType<typeof prepareAdopt>>['input']> = {
  name: 'cluster adopt',
  phases: [
    uploadConfigKubeadm.select((input) => input.uploadKubeadm),
    uploadConfigKubelet.select((input) => input.upload),
    bootstrapToken.select((input) => input.bootstrapToken),
    showJoinCommand.select((input) => input.show),
  ],
  prepare: prepareAdopt,
};

/** @throws AppError with exit code 2 for a KubeletConfiguration that a kubelet of the cluster's version would refuse */
async function prepareAdopt(context: PhaseContext, options: AdoptOptions) {
  const { config, catalogue, forceUpload, showJoinCommand: show } = options;
  const running = context.cluster;
  const { version, found, cluster, controlPlaneMinor, warnings } = await observeClusterSettings(running, config.cluster ?? {}, null);
  const kubelet = await designClusterKubelet({ kubelet: config.kubelet ?? null, catalogue }, { cluster, controlPlaneMinor, running });
  const header = { apiVersion: KUBELET_API_VERSION, kind: 'KubeletConfiguration' };
  const whole = { ...kubelet.layered, config: { ...header, ...kubelet.layered.config } };
  const checked = checkNodeFields(whole, { minor: Math.min(controlPlaneMinor, NEWEST_MINOR), assumed: false, catalogue });
  const other = otherMinorWarning(controlPlaneMinor);
  const needsToken = show !== null || options.bootstrapTokens.length > 0;
  const tokens = needsToken ? await planInitTokens(context, options) : { desired: [], joining: [] };
  const apiServer = atEndpoint(options.apiServer, cluster);
  return {
    input: {
      ...joinObjects({ version, cluster, found, upload: kubelet.upload, tokens, apiServer, forceUpload, now: context.clock.now() }),
      show: show && { tokens: tokens.joining, apiServer, withhold: options.withholdToken, show },
    },
    warnings: [...warnings, ...(other === null ? [] : [other]), ...kubelet.warnings, ...checked],
    refusals: [],
  };
}

/** The inputs of the phases that create the objects with which hosts join a cluster. */
export function joinObjects({
  version,
  cluster,
  found,
  upload,
  tokens,
  apiServer,
  forceUpload,
  now,
}: {
  /** Of the control plane; not a release: not known. */
  readonly version: string;
  readonly cluster: DefaultedCluster;
  /** kubeadm-config of the cluster. */
  readonly found: FoundClusterConfiguration;
  readonly upload: Omit<UploadKubeletConfigInput, 'forceUpload'>;
  readonly tokens: InitTokens;
} & Pick<BootstrapTokenInput, 'apiServer' | 'now'> &
  Pick<UploadKubeletConfigInput, 'forceUpload'>) {
  return {
    uploadKubeadm: {
      clusterConfiguration: parseKubernetesVersion(version)?.kind === 'release' ? encodeClusterConfiguration(cluster) : null,
      currentConfiguration: found.model && encodeClusterConfiguration(applyClusterDefaults(found.model)),
    },
    upload: { ...upload, forceUpload },
    bootstrapToken: {
      tokens: tokens.desired,
      apiServer,
      replaceAddress: forceUpload || cluster.controlPlaneEndpoint !== undefined,
      now,
    },
  };
}

/** An API server, at the control plane endpoint if the cluster has one. */
export function atEndpoint(apiServer: BootstrapTokenInput['apiServer'], { controlPlaneEndpoint }: DefaultedCluster) {
  return apiServer && { ...apiServer, ...(controlPlaneEndpoint && { server: `https://${controlPlaneEndpoint}` }) };
}
