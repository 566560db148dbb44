import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { releaseOfVersion } from '../../base/kubernetes-version.ts';
import { goDurationMs } from '../../base/text/go-duration.ts';
import { revealText, Secret, SensitiveText } from '../../base/text/secret.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { observe } from '../../host/observe.ts';
import type { Phase, PhaseContext } from '../../host/phase.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { ADMIN_CONF, KUBELET_PKI_DIR, KUBERNETES_DIR, SUPER_ADMIN_CONF } from '../../kube/well-known.ts';
import { NEWEST_MINOR, parseMinor } from '../../kubelet/catalogue.ts';
import { corednsObjects } from '../addons/coredns.ts';
import { kubeProxyObjects } from '../addons/kube-proxy.ts';
import { applyClusterDefaults } from '../config/defaults.ts';
import { encodeClusterConfiguration } from '../config/encode.ts';
import { argValue, type ClusterConfiguration } from '../config/model.ts';
import { controlPlaneServer, localServer } from '../control-plane/model.ts';
import type { StaticPodName } from '../control-plane/paths.ts';
import { controlPlanePhases } from '../kubeadm-phases.ts';
import { type AddonCorednsInput, type AddonKubeProxyInput, addonCoredns, addonKubeProxy } from '../phases/addons.ts';
import { type BootstrapTokenInput, bootstrapToken } from '../phases/bootstrap-token.ts';
import { bindClusterAdmins, type ClusterAdminsInput } from '../phases/cluster-admins.ts';
import { type KubeletFinalizeInput, kubeletFinalize } from '../phases/kubelet-finalize.ts';
import { type KubeletStartInput, kubeletStart } from '../phases/kubelet-start.ts';
import { type MarkControlPlaneInput, markControlPlane } from '../phases/mark-control-plane.ts';
import { certsPhases, kubeconfigPhases, type PkiInput } from '../phases/pki.ts';
import { type PullImagesInput, pullImages } from '../phases/pull-images.ts';
import { type SaveNodeSettingsInput, saveStartedNodeSettings } from '../phases/save-node-settings.ts';
import { type ShowJoinCommandInput, showJoinCommand } from '../phases/show-join-command.ts';
import { controlPlaneApiserver, controlPlaneControllerManager, controlPlaneScheduler, etcdLocal } from '../phases/static-pods.ts';
import { type UploadCertsInput, uploadCerts } from '../phases/upload-certs.ts';
import { type UploadKubeadmConfigInput, uploadConfigKubeadm } from '../phases/upload-config-kubeadm.ts';
import { type UploadKubeletConfigInput, uploadConfigKubelet } from '../phases/upload-config-kubelet.ts';
import { type WaitControlPlaneInput, waitControlPlane } from '../phases/wait-control-plane.ts';
import type { WriteFilesInput } from '../phases/write-files.ts';
import { pkiPath } from '../pki/certificate-list.ts';
import { KUBECONFIGS } from '../pki/kubeconfig-list.ts';
import { readClusterConfiguration } from './cluster-baseline.ts';
import { type ApiAccess, apiAccess, type ConnectControlPlane, onceAdministrator } from './control-plane/api-access.ts';
import { atApiServer, type MakesApiServer } from './control-plane/at-api-server.ts';
import { advertised, type ControlPlaneOptions, observeControlPlane, prepareControlPlane } from './control-plane/prepare-control-plane.ts';
import { type SettleClusterInput, settleCluster } from './control-plane/settle-cluster.ts';
import { designFirstNode } from './design-first-node.ts';
import { identifyNode, type NodeTrust } from './identify-node.ts';
import { NO_SETTINGS } from './init-settings.ts';
import { type InitTokenOptions, settleTokens } from './init-tokens.ts';
import { kubeletStartInput } from './kubelet-start-input.ts';
import { nodeSettingsOf } from './node-settings-of.ts';
import { observeNode } from './observe-node.ts';
import { selectPhase } from './select-phase.ts';
import { prepareUpload } from './shared-certs.ts';

export interface InitControlPlaneOptions extends ControlPlaneOptions, Omit<InitTokenOptions, 'apiServer'> {
  readonly cluster: ClusterConfiguration;
  /** The KubeletConfiguration for all nodes, when the user gave one. */
  readonly kubelet: SourceDocument | null;
  /** Whether a phase is left out by name, whatever phase alone is asked for. */
  readonly skips: (phase: string) => boolean;
  readonly connect: ConnectControlPlane;
  /** Credentials that were given for single phases, in place of those on the host. */
  readonly given: Cluster | null;
  /** Tells with them which Node the host is, before the Node is marked. */
  readonly trust: NodeTrust | null;
  readonly releaseOf: SettleClusterInput['releaseOf'];
  readonly forceUpload: boolean;
  /** Tokens are not to be shown. */
  readonly withholdToken: boolean;
  /** Takes the commands that join nodes. */
  readonly showJoinCommand: ShowJoinCommandInput['show'];
  /** The certificates that all control planes share are to be uploaded. */
  readonly uploadCerts: boolean;
  /** To encrypt them with; null: one is made. */
  readonly certificateKey: Secret | null;
  /** The token whose end is the end of the upload. */
  readonly certsToken: Secret;
  /** Takes the key once certificates are there that it opens. */
  readonly showCertificateKey: (key: Secret) => void;
  /** The key is not to be shown with the join command. */
  readonly withholdCertificateKey: boolean;
  /** Hears of each way to an API server that is opened, so that it can be closed. */
  readonly opened: (access: ApiAccess) => void;
}

export interface InitControlPlaneInput extends MakesApiServer {
  readonly superApi: ApiAccess;
  readonly admins: ClusterAdminsInput;
  readonly pull: PullImagesInput;
  readonly pki: PkiInput;
  readonly manifests: Readonly<Record<StaticPodName, WriteFilesInput>>;
  readonly kubeletStart: KubeletStartInput;
  readonly save: SaveNodeSettingsInput;
  readonly wait: WaitControlPlaneInput;
  readonly uploadKubeadm: UploadKubeadmConfigInput;
  readonly upload: UploadKubeletConfigInput;
  /** Null: it was not asked for. */
  readonly uploadCerts: UploadCertsInput | null;
  readonly mark: MarkControlPlaneInput;
  readonly bootstrapToken: BootstrapTokenInput;
  readonly finalize: KubeletFinalizeInput;
  readonly coredns: AddonCorednsInput;
  readonly kubeProxy: AddonKubeProxyInput;
  readonly show: ShowJoinCommandInput;
}

type InitPhase = Phase<InitControlPlaneInput>;

/** Makes a control plane on a bare host, with what a cluster begins with. kubeadm 1.36: init, in its order. */
export const initControlPlaneWorkflow: Workflow<InitControlPlaneOptions, InitControlPlaneInput> = {
  name: 'init',
  absentPhases: controlPlanePhases('init'),
  phases: [
    selectPhase(pullImages, (input) => input.pull),
    ...[...certsPhases, ...kubeconfigPhases].map((phase): InitPhase => selectPhase(phase, (input) => input.pki)),
    selectPhase(etcdLocal, (input) => input.manifests.etcd),
    selectPhase(controlPlaneApiserver, (input) => input.manifests['kube-apiserver']),
    selectPhase(controlPlaneControllerManager, (input) => input.manifests['kube-controller-manager']),
    selectPhase(controlPlaneScheduler, (input) => input.manifests['kube-scheduler']),
    selectPhase(kubeletStart, (input) => input.kubeletStart),
    selectPhase(saveStartedNodeSettings, (input) => input.save),
    selectPhase(waitControlPlane, (input) => input.wait),
    atApiServer(
      bindClusterAdmins,
      (input) => input.admins,
      ({ superApi }) => superApi,
    ),
    atApiServer(uploadConfigKubeadm, (input) => input.uploadKubeadm),
    atApiServer(uploadConfigKubelet, (input) => input.upload),
    atApiServer(uploadCerts, (input) => input.uploadCerts),
    atApiServer(markControlPlane, (input) => input.mark),
    atApiServer(bootstrapToken, (input) => input.bootstrapToken),
    selectPhase(kubeletFinalize, (input) => input.finalize),
    atApiServer(addonCoredns, (input) => input.coredns),
    atApiServer(addonKubeProxy, (input) => input.kubeProxy),
    atApiServer(showJoinCommand, (input) => input.show),
  ],
  prepare: prepareInitControlPlane,
};

const PHASES = (): readonly string[] => initControlPlaneWorkflow.phases.map(({ name }) => name);

/**
 * The API server, where it runs already.
 * @returns lockedOut: why nobody can log in, which is to be told where the certificates on the host do not tell it better
 */
async function findRunning(
  context: PhaseContext,
  given: Cluster | null,
  { superApi, api }: Pick<ApiServerRoutes, 'superApi' | 'api'>,
): Promise<{ readonly running: Cluster | null; readonly lockedOut: AppError | null }> {
  try {
    return { running: given ?? (await superApi.reach(context)) ?? (await api.reach(context)), lockedOut: null };
  } catch (error) {
    if (isAppError(error, 'CLUSTER_UNAUTHORIZED')) return { running: null, lockedOut: error };
    throw error;
  }
}

async function prepareInitControlPlane(context: PhaseContext, options: InitControlPlaneOptions): Promise<Prepared<InitControlPlaneInput>> {
  const node = await observeNode(context, options);
  const { etcd } = applyClusterDefaults(options.cluster);
  const observed = await observeControlPlane(context, advertised(options, node), { etcd, phases: PHASES() });
  const { localAPIEndpoint } = observed;
  const routes = await apiServerRoutes(context, options, localAPIEndpoint);
  const { running, lockedOut } = await findRunning(context, options.given, routes);
  const existing = { ...context, cluster: running };
  const found = running === null ? NO_SETTINGS : await readClusterConfiguration(running);
  const settled = await settleCluster({
    found: found.model ?? {},
    declared: options.cluster,
    bindPort: localAPIEndpoint.bindPort,
    kubelet: node.facts.kubelet,
    releaseOf: options.releaseOf,
    skips: options.skips,
  });
  const { cluster } = settled;
  const prepared = await prepareControlPlane(context, options, {
    node,
    observed,
    cluster,
    kubeconfigs: KUBECONFIGS,
    makes: { certificate: (name) => options.selects(`certs/${name}`), kubeconfig: (name) => options.selects(`kubeconfig/${name}`) },
    manifestPhase: (name) => `control-plane/${name.slice('kube-'.length)}`,
  });
  if (lockedOut !== null)
    throw prepared.refusals.length === 0 ? lockedOut : new AppError(prepared.refusals, { exitCode: 3, cause: lockedOut });
  routes.use(prepared.pki.textAt);
  const minor = Math.min(parseMinor(releaseOfVersion(cluster.kubernetesVersion)) ?? NEWEST_MINOR, NEWEST_MINOR);
  const { design, upload, warnings, refusals } = await designFirstNode(context, options, {
    node,
    cluster,
    controlPlaneMinor: minor,
    running,
    findings: prepared.findings,
  });
  const caPem = prepared.pki.textAt(pkiPath(cluster.certificatesDir, 'ca', 'crt'));
  const apiServer = caPem === null ? null : { server: controlPlaneServer(prepared.node), caPem: revealText(caPem) };
  const tokens = await settleTokens(existing, { ...options, apiServer });
  const start = kubeletStartInput(design, options);
  const shared = options.uploadCerts
    ? await prepareUpload(existing, {
        cluster,
        pki: prepared.pki,
        issuer: options.issuer,
        certificateKey: options.certificateKey,
        freshToken: options.certsToken,
        now: context.clock.now(),
        assumeEmptyCluster: options.dryRun,
        show: options.showCertificateKey,
      })
    : null;
  const assumeEmptyCluster = options.dryRun;
  const marked = await identifyToMark(context, options, node.registration.name);
  const proxy = cluster.proxy.disabled === true ? { objects: null, warnings: [] } : kubeProxyObjects(prepared.node);
  return {
    input: {
      api: routes.api,
      superApi: routes.superApi,
      assumeEmptyCluster,
      staged: options.staged,
      admins: { reachAsAdmin: routes.reachAsAdmin, timeoutMs: goDurationMs(prepared.timeouts.kubernetesAPICall) },
      pull: prepared.pull,
      pki: prepared.pki,
      manifests: prepared.manifests,
      kubeletStart: { ...start, directories: [...start.directories, { path: KUBERNETES_DIR, mode: 0o755 }] },
      save: { memory: nodeSettingsOf(node, options), mayChown: start.mayChown },
      wait: prepared.wait,
      uploadKubeadm: {
        clusterConfiguration: encodeClusterConfiguration(cluster),
        understood: found.model && encodeClusterConfiguration(applyClusterDefaults(found.model)),
        assumeEmptyCluster,
      },
      upload: {
        ...upload,
        forceUpload: options.forceUpload,
        assumeEmptyCluster,
      },
      bootstrapToken: {
        tokens: tokens.desired,
        apiServer,
        replaceAddress: options.forceUpload || cluster.controlPlaneEndpoint !== undefined,
        assumeEmptyCluster,
        now: context.clock.now(),
      },
      uploadCerts: shared?.input ?? null,
      mark: {
        nodeName: node.registration.name,
        taints: prepared.node.taints,
        timeoutMs: goDurationMs(prepared.timeouts.kubernetesAPICall),
        assumeEmptyCluster,
        check: null,
      },
      coredns: {
        objects: cluster.dns.disabled === true ? null : corednsObjects(prepared.node),
        forceUpload: options.forceUpload,
        assumeEmptyCluster,
      },
      kubeProxy: { ...proxy, forceUpload: options.forceUpload, assumeEmptyCluster },
      finalize: {
        certDir: argValue(node.registration.kubeletExtraArgs, 'cert-dir') ?? KUBELET_PKI_DIR,
        rotates:
          (argValue(node.registration.kubeletExtraArgs, 'rotate-certificates') ?? String(design.layered.config.rotateCertificates)) ===
          'true',
        health: start.health,
      },
      show: {
        tokens: tokens.joining,
        apiServer,
        withhold: options.withholdToken,
        controlPlane:
          cluster.controlPlaneEndpoint === undefined
            ? null
            : () => ({ certificateKey: options.withholdCertificateKey ? null : (shared?.input.key ?? null) }),
        show: options.showJoinCommand,
      },
    },
    warnings: [...found.warnings, ...settled.warnings, ...warnings, ...prepared.warnings],
    refusals: [...refusals, ...prepared.refusals, ...(shared?.problems ?? []), ...marked],
    node: { nodeName: node.registration.name, isProven: false, machineId: null },
    origins: design.origins,
  };
}

/** What speaks against marking the Node with credentials that are not those of the host: another host may have its name. */
async function identifyToMark(
  context: PhaseContext,
  { given, trust, selects, nodeRegistration }: InitControlPlaneOptions,
  nodeName: string,
): Promise<readonly Problem[]> {
  if (given === null || trust === null || !selects(markControlPlane.name)) return [];
  const desired = { trust, named: nodeRegistration.name ?? null, expected: nodeName };
  return (await identifyNode({ ...context, cluster: given }, desired)).refusals;
}

interface ApiServerRoutes {
  /** As an administrator. */
  readonly api: ApiAccess;
  /** As one who needs no RBAC. */
  readonly superApi: ApiAccess;
  /** By admin.conf, whether the API server knows it for an administrator's or not. */
  readonly reachAsAdmin: ApiAccess['reach'];
  /** From now on kubeconfigs are those that are there once all is done. */
  use(textAt: (path: string) => SensitiveText | null): void;
}

/** With credentials that were given there is one way; else one by each of the kubeconfigs of the host. */
async function apiServerRoutes(
  context: PhaseContext,
  { connect, given, opened }: InitControlPlaneOptions,
  endpoint: Parameters<typeof localServer>[0],
): Promise<ApiServerRoutes> {
  if (given !== null) {
    const access: ApiAccess = { reach: async () => given, close: async () => undefined };
    return { api: access, superApi: access, reachAsAdmin: access.reach, use: () => undefined };
  }
  const files = await observe(context.host, fileFacts([ADMIN_CONF, SUPER_ADMIN_CONF]), context.signal);
  let textAt = (path: string): SensitiveText | null => {
    const text = files.get(path)?.content;
    return text === undefined ? null : new SensitiveText([new Secret(text)]);
  };
  const route = (...paths: readonly string[]): ApiAccess => {
    const kubeconfig = () => {
      const path = paths.find((each) => textAt(each) !== null);
      const text = path === undefined ? null : textAt(path);
      return path === undefined || text === null ? null : { path, text };
    };
    const access = apiAccess({ connect, local: { server: localServer(endpoint), port: endpoint.bindPort }, kubeconfig });
    opened(access);
    return access;
  };
  const [admin, superApi] = [route(ADMIN_CONF), route(SUPER_ADMIN_CONF, ADMIN_CONF)];
  return {
    api: onceAdministrator(admin, superApi),
    superApi,
    reachAsAdmin: admin.reach,
    use: (next) => {
      textAt = next;
    },
  };
}
