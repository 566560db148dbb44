import { AppError } from '../../base/errors.ts';
import { releaseOfVersion } from '../../base/kubernetes-version.ts';
import { revealText, type Secret } from '../../base/text/secret.ts';
import type { SourceDocument } from '../../codec/source.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { type Prepared, phaseSelection, type Workflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBELET_PKI_DIR, KUBERNETES_DIR } from '../../kube/well-known.ts';
import { NEWEST_MINOR, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { hostFacts } from '../../kubelet/facts/host-facts.ts';
import { corednsObjects } from '../addons/coredns.ts';
import { kubeProxyObjects } from '../addons/kube-proxy.ts';
import { applyClusterDefaults, type DefaultedCluster, withScheme } from '../config/defaults.ts';
import { argValue, type ClusterConfiguration } from '../config/model.ts';
import { controlPlaneServer } from '../control-plane/model.ts';
import { addonCoredns, addonKubeProxy } from '../phases/addons.ts';
import { bootstrapToken } from '../phases/bootstrap-token.ts';
import { bindClusterAdmins } from '../phases/cluster-admins.ts';
import { type KubeletFinalizeInput, kubeletFinalize } from '../phases/kubelet-finalize.ts';
import { type KubeletStartInput, kubeletStart } from '../phases/kubelet-start.ts';
import { markControlPlane } from '../phases/mark-control-plane.ts';
import { certsPhases, kubeconfigPhases } from '../phases/pki.ts';
import { pullImages } from '../phases/pull-images.ts';
import { saveStartedNodeSettings } from '../phases/save-node-settings.ts';
import { type ShowJoinCommandInput, showJoinCommand } from '../phases/show-join-command.ts';
import { controlPlaneApiserver, controlPlaneControllerManager, controlPlaneScheduler, etcdLocal } from '../phases/static-pods.ts';
import { uploadCerts } from '../phases/upload-certs.ts';
import { uploadConfigKubeadm, uploadConfigKubelet } from '../phases/upload-config.ts';
import { waitControlPlane } from '../phases/wait-control-plane.ts';
import { pkiPath } from '../pki/certificate-list.ts';
import { KUBECONFIGS } from '../pki/kubeconfig-list.ts';
import type { NodeDesign } from '../render/node-design.ts';
import { atEndpoint, joinObjects } from './adopt-cluster.ts';
import { type InitTokenOptions, type InitTokens, planInitTokens } from './bootstrap-tokens.ts';
import { type PreparedUpload, prepareUpload } from './certificates/shared-certs.ts';
import {
  type ApiServerRouteOptions,
  type ApiServerRoutes,
  apiServerRoutes,
  deferUntilApiServer,
  findRunning,
  withApiServer,
} from './control-plane/api-access.ts';
import type { ConnectEtcd } from './control-plane/etcd-access.ts';
import { externalEtcdFindings } from './control-plane/etcd-access.ts';
import {
  type ControlPlaneOptions,
  controlPlaneQueries,
  type ObservedControlPlane,
  observeControlPlane,
  type PreparedControlPlane,
  prepareControlPlane,
  withAdvertiseAddress,
} from './control-plane/prepare-control-plane.ts';
import {
  type ResolveClusterInput,
  type ResolvedCluster,
  resolveClusterConfiguration,
  withoutSkippedAddons,
} from './control-plane/resolve-cluster-configuration.ts';
import { type FoundClusterConfiguration, readClusterConfiguration } from './node/cluster-baseline.ts';
import { controlPlaneVersion, type DesignedFirstNode, designFirstNode, NO_CLUSTER_SETTINGS, settingsOf } from './node/design-first-node.ts';
import { toWarning } from './node/design-observed-node.ts';
import { type ObservedNode, observeNode } from './node/observe-node.ts';

export interface InitOptions extends ControlPlaneOptions, ApiServerRouteOptions, Omit<InitTokenOptions, 'apiServer'> {
  readonly cluster: ClusterConfiguration;
  /** The user's KubeletConfiguration for all nodes. */
  readonly kubelet: SourceDocument | null;
  readonly connectEtcd: ConnectEtcd;
  readonly releaseOf: ResolveClusterInput['releaseOf'];
  readonly forceUpload: boolean;
  readonly withholdToken: boolean;
  readonly showJoinCommand: ShowJoinCommandInput['show'];
  /** The shared certificates of control planes are uploaded. */
  readonly uploadCerts: boolean;
  /** Encrypts the uploaded certificates; null: a new key is generated. */
  readonly certificateKey: Secret | null;
  /** Owner token of the uploaded Secret, which expires with the token. */
  readonly certsToken: Secret;
  /** Prints the key after certificates encrypted with it were uploaded. */
  readonly showCertificateKey: (key: Secret) => void;
  /** The join command omits the key. */
  readonly withholdCertificateKey: boolean;
}

/** Bootstraps a control plane and the first objects of a cluster. Phases in the order of kubeadm 1.36 init. */
export const initWorkflow: Workflow<InitOptions, InitInput> = {
  name: 'init',
  phases: [
    pullImages.select((input) => input.pull),
    ...[...certsPhases, ...kubeconfigPhases].map((phase) => phase.select((input: InitInput) => input.pki)),
    etcdLocal.select((input) => input.manifests.etcd),
    controlPlaneApiserver.select((input) => input.manifests['kube-apiserver']),
    controlPlaneControllerManager.select((input) => input.manifests['kube-controller-manager']),
    controlPlaneScheduler.select((input) => input.manifests['kube-scheduler']),
    kubeletStart.select((input) => input.kubeletStart),
    saveStartedNodeSettings.select((input) => input.save),
    waitControlPlane.select((input) => input.wait),
    deferUntilApiServer(
      bindClusterAdmins,
      (input) => input.admins,
      ({ superApi }) => superApi,
    ),
    deferUntilApiServer(uploadConfigKubeadm, (input) => input.uploadKubeadm),
    deferUntilApiServer(uploadConfigKubelet, (input) => input.upload),
    deferUntilApiServer(uploadCerts, (input) => input.uploadCerts),
    deferUntilApiServer(markControlPlane, (input) => input.mark),
    deferUntilApiServer(bootstrapToken, (input) => input.bootstrapToken),
    withApiServer(kubeletFinalize, (input) => input.finalize),
    deferUntilApiServer(addonCoredns, (input) => input.coredns),
    deferUntilApiServer(addonKubeProxy, (input) => input.kubeProxy),
    deferUntilApiServer(showJoinCommand, (input) => input.show),
  ],
  queries: (options) => {
    const { criSocket } = options.nodeRegistration;
    const node = hostFacts(criSocket === undefined ? null : withScheme(criSocket));
    const { kubeconfigDir: kubernetesDir = KUBERNETES_DIR } = options;
    return { ...node.queries, ...controlPlaneQueries(applyClusterDefaults(options.cluster), { kubernetesDir, kubeconfigs: KUBECONFIGS }) };
  },
  prepare: prepareInit,
};

async function prepareInit(context: PhaseContext, options: InitOptions): Promise<Prepared<InitInput>> {
  const host = await observeInitHost(context, options);
  const resolved = await resolveInitCluster(host, options);
  // The keys are generated while the kubelet checks its configuration.
  const [controlPlane, firstNode] = await Promise.all([
    designControlPlane(context, options, host, resolved.cluster),
    designFirstNode(context, options, {
      node: host.node,
      cluster: resolved.cluster,
      controlPlaneMinor: resolved.minor,
      running: host.running,
    }),
  ]);
  const admission = await prepareAdmission({ ...context, cluster: host.running }, options, resolved.cluster, controlPlane);
  const { found } = host;
  return {
    input: inputOf(options, { host, cluster: resolved.cluster, controlPlane, firstNode, admission, now: context.clock.now() }),
    warnings: [
      ...found.warnings,
      ...resolved.warnings,
      ...firstNode.warnings,
      ...controlPlane.preflight.warnings.map(toWarning),
      ...controlPlane.warnings,
    ],
    refusals: [...firstNode.refusals, ...controlPlane.preflight.errors, ...controlPlane.refusals, ...(admission.shared?.problems ?? [])],
    node: { nodeName: host.node.registration.name, isProven: false, machineId: null },
    origins: firstNode.design.origins,
  };
}

/** An observed host and its API server, if one is running. */
interface InitHost {
  readonly node: ObservedNode;
  readonly observed: ObservedControlPlane;
  readonly routes: ApiServerRoutes;
  readonly running: Cluster | null;
  readonly lockedOut: AppError | null;
  /** kubeadm-config of the running API server. */
  readonly found: FoundClusterConfiguration;
}

async function observeInitHost(context: PhaseContext, options: InitOptions): Promise<InitHost> {
  const node = await observeNode(context, options);
  const { etcd } = applyClusterDefaults(options.cluster);
  const { phases } = initWorkflow;
  const observed = await observeControlPlane(context, withAdvertiseAddress(options, node), { etcd, phases });
  const routes = await apiServerRoutes(context, options, observed.localAPIEndpoint);
  const { running, lockedOut } = await findRunning(context, routes);
  const found = running === null ? NO_CLUSTER_SETTINGS : await readClusterConfiguration(running);
  return { node, observed, routes, running, lockedOut, found };
}

/** In a given cluster, only an add-on has the declared version, which must then be supported; as in `cluster adopt`. */
async function resolveInitCluster({ node, observed, found }: InitHost, options: InitOptions) {
  const { given, cluster: declared, run, releaseOf } = options;
  const { bindPort } = observed.localAPIEndpoint;
  const input = { found: found.model ?? {}, declared, bindPort, kubelet: node.facts.kubelet, releaseOf, run };
  if (given === null) return withMinor(await resolveClusterConfiguration(input));
  const { version, warnings } = await controlPlaneVersion(given.cluster, declared, null);
  if (['addon/coredns', 'addon/kube-proxy'].some(phaseSelection(run)))
    return withMinor(await resolveClusterConfiguration({ ...input, found: { kubernetesVersion: version, ...found.model } }));
  const cluster = withoutSkippedAddons(settingsOf(input.found, declared, version, bindPort), run);
  return { cluster, warnings, minor: parseMinor(version) ?? NEWEST_MINOR };
}

/**
 * @throws AppError when the running API server accepts no credentials of the host; with the problems of the host's
 * certificates, if any
 */
async function designControlPlane(
  context: PhaseContext,
  options: InitOptions,
  { node, observed, routes, lockedOut }: InitHost,
  cluster: DefaultedCluster,
): Promise<PreparedControlPlane> {
  const { external } = cluster.etcd;
  const isSelected = phaseSelection(options.run);
  const isChecked = external !== undefined && !options.skipPreflight && !options.singlePhase && !options.staged;
  const prepared = await prepareControlPlane(context, options, {
    node,
    observed,
    cluster,
    findings: isChecked ? await externalEtcdFindings(context, options.connectEtcd, external, observed.host.files) : [],
    kubeconfigs: KUBECONFIGS,
    generates: { certificate: (name) => isSelected(`certs/${name}`), kubeconfig: (name) => isSelected(`kubeconfig/${name}`) },
  });
  if (lockedOut !== null)
    throw prepared.refusals.length === 0 ? lockedOut : new AppError(prepared.refusals, { exitCode: 3, cause: lockedOut });
  routes.use(prepared.pki.textAt);
  return prepared;
}

function withMinor({ cluster, warnings }: ResolvedCluster) {
  const minor = Math.min(parseMinor(releaseOfVersion(cluster.kubernetesVersion)) ?? NEWEST_MINOR, NEWEST_MINOR);
  return { cluster, warnings, minor };
}

/** Everything that joining nodes need: URL and CA of the API server, tokens, certificates for control planes. */
interface Admission {
  readonly apiServer: NonNullable<InitOptions['given']>['apiServer'];
  readonly tokens: InitTokens;
  /** Null: no certificates are uploaded. */
  readonly shared: PreparedUpload | null;
}

async function prepareAdmission(
  context: PhaseContext,
  options: InitOptions,
  cluster: DefaultedCluster,
  { pki, node }: PreparedControlPlane,
): Promise<Admission> {
  const apiServer = serverToJoin(options, cluster, { pki, node });
  const tokens = await planInitTokens(context, { ...options, apiServer });
  if (!options.uploadCerts) return { apiServer, tokens, shared: null };
  const shared = await prepareUpload(context, {
    cluster,
    pki,
    issuer: options.issuer,
    certificateKey: options.certificateKey,
    freshToken: options.certsToken,
    now: context.clock.now(),
    show: options.showCertificateKey,
  });
  return { apiServer, tokens, shared };
}

/** The API server of the given kubeconfig, else that of the host; at the control plane endpoint, if one is declared. */
function serverToJoin(
  { given }: InitOptions,
  cluster: DefaultedCluster,
  { pki, node }: Pick<PreparedControlPlane, 'pki' | 'node'>,
): Admission['apiServer'] {
  // The host need not be part of the cluster of a given kubeconfig.
  if (given !== null) return atEndpoint(given.apiServer, cluster);
  const caPem = pki.textAt(pkiPath(cluster.certificatesDir, 'ca', 'crt'));
  return caPem === null ? null : { server: controlPlaneServer(node), caPem: revealText(caPem) };
}

type InitInput = ReturnType<typeof inputOf>;

function inputOf(
  options: InitOptions,
  {
    host,
    cluster,
    controlPlane,
    firstNode,
    admission,
    now,
  }: {
    readonly host: InitHost;
    readonly cluster: DefaultedCluster;
    readonly controlPlane: PreparedControlPlane;
    readonly firstNode: DesignedFirstNode;
    readonly admission: Admission;
    readonly now: Date;
  },
) {
  const { node, routes, found } = host;
  const { start } = firstNode;
  const { forceUpload } = options;
  const proxy = cluster.proxy.disabled === true ? { objects: null, warnings: [] } : kubeProxyObjects(controlPlane.node);
  const corednsWanted = cluster.dns.disabled === true ? null : corednsObjects(controlPlane.node);
  return {
    api: routes.api,
    superApi: routes.superApi,
    assumeEmptyCluster: options.run.dryRun,
    staged: options.staged,
    admins: { reachAsAdmin: routes.reachAsAdmin, timeoutMs: controlPlane.mark.timeoutMs },
    pull: controlPlane.pull,
    pki: controlPlane.pki,
    manifests: controlPlane.manifests,
    kubeletStart: { ...start, credentials: [] },
    save: firstNode.save,
    wait: controlPlane.wait,
    ...joinObjects({ ...admission, version: cluster.kubernetesVersion, cluster, found, upload: firstNode.upload, forceUpload, now }),
    uploadCerts: admission.shared?.input ?? null,
    mark: controlPlane.mark,
    coredns: { objects: corednsWanted, forceUpload },
    kubeProxy: { ...proxy, forceUpload },
    finalize: finalizeInput(node, firstNode.design, start),
    show: showInput(options, cluster, admission),
  };
}

function finalizeInput({ registration }: ObservedNode, design: NodeDesign, { health }: KubeletStartInput): KubeletFinalizeInput {
  const flag = (name: string): string | undefined => argValue(registration.kubeletExtraArgs, name);
  const rotates = (flag('rotate-certificates') ?? String(design.layered.config.rotateCertificates)) === 'true';
  return { certDir: flag('cert-dir') ?? KUBELET_PKI_DIR, rotates, health, nodeName: registration.name };
}

function showInput(
  options: InitOptions,
  { controlPlaneEndpoint }: DefaultedCluster,
  { tokens, apiServer, shared }: Admission,
): ShowJoinCommandInput {
  const certificateKey = options.withholdCertificateKey ? null : (shared?.input.key ?? null);
  return {
    tokens: tokens.joining,
    apiServer,
    withhold: options.withholdToken,
    controlPlane: controlPlaneEndpoint === undefined ? null : () => ({ certificateKey }),
    show: options.showJoinCommand,
  };
}
