import { releaseOfVersion } from '../../../base/kubernetes-version.ts';
import { goDurationMs } from '../../../base/text/go-duration.ts';
import { revealText } from '../../../base/text/secret.ts';
import type { ClusterContext, Phase, PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import { type DesiredFile, diffFile } from '../../../host/plan/diff-file.ts';
import type { Prepared, Workflow } from '../../../host/run-workflow.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { ETCD_DATA_DIR, KUBE_SYSTEM, KUBELET_CONF } from '../../../kube/well-known.ts';
import type { PlannedPatch } from '../../../kubelet/layers/patch-files.ts';
import type { CertificateIssuer } from '../../../x509/certificate-issuer.ts';
import { corednsObjects } from '../../addons/coredns.ts';
import { KUBE_PROXY_CONFIG_KEY, kubeProxyObjects } from '../../addons/kube-proxy.ts';
import { isGenerated } from '../../cluster-objects/kubelet-config-map.ts';
import { applyClusterDefaults, DEFAULT_TIMEOUTS } from '../../config/defaults.ts';
import type { EnvVar, PullPolicy, Timeouts } from '../../config/model.ts';
import { CONTROLLER_CONF } from '../../control-plane/controller-unit.ts';
import { etcdDataDirOf, readEtcdManifest } from '../../control-plane/etcd-manifest.ts';
import { controlPlaneImages, versionTag } from '../../control-plane/images.ts';
import { manifestFile, staticPodNames } from '../../control-plane/manifests.ts';
import { type ControlPlaneNode, controlPlaneServer, hasLocalEtcd, localServer } from '../../control-plane/model.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { addonCoredns, addonKubeProxy } from '../../phases/addons.ts';
import { upgradeKubeletConfig } from '../../phases/kubelet-start.ts';
import { removeSocketAnnotation } from '../../phases/mark-node.ts';
import { pullImages } from '../../phases/pull-images.ts';
import { runController } from '../../phases/run-controller.ts';
import { saveUpgradedNodeSettings } from '../../phases/save-node-settings.ts';
import { backupControlPlane, completeControlPlane } from '../../phases/upgrade/backup-control-plane.ts';
import { type KubeletServerInput, kubeletServer, withLocalServer } from '../../phases/upgrade/kubelet-server.ts';
import { postUpgrade } from '../../phases/upgrade/post-upgrade.ts';
import { type ReplaceStaticPodInput, replaceStaticPod } from '../../phases/upgrade/replace-static-pod.ts';
import { ETCD_HEALTH_MS, restoreEtcdData } from '../../phases/upgrade/restore-etcd-data.ts';
import { otherControlPlanes, skipUntilAllUpgraded } from '../../phases/upgrade/skip-until-all-upgraded.ts';
import { type WriteFilesInput, writeFilesPhase } from '../../phases/write-files.ts';
import { isIgnored, validateFindings } from '../../preflight/check.ts';
import { componentArguments } from '../../preflight/component-arguments.ts';
import { etcdTagOf, isOlderTag, proxyVariablesOf, readManifest, versionUrl } from '../../upgrade/static-pod-state.ts';
import { backupTimestamp, upgradeBackup } from '../../upgrade/upgrade-record.ts';
import { type ApiAccess, deferUntilApiServer } from '../control-plane/api-access.ts';
import type { ConnectEtcd } from '../control-plane/etcd-access.ts';
import { keepStarted } from '../control-plane/prepare-control-plane.ts';
import { readConfigMapDocument, type UpgradedDocuments } from '../node/cluster-baseline.ts';
import { toWarning } from '../node/design-observed-node.ts';
import { type ControlPlaneHostFacts, observeControlPlaneHost, readAdminCluster } from './control-plane-host.ts';
import { etcdHealthCheck } from './etcd-health.ts';
import { COMPONENT_CERTIFICATES, OTHER_KUBECONFIGS, renewedCertificates } from './renewed-certificates.ts';
import { prepareUpgrade, type UpgradeNodeInput, type UpgradeNodeOptions } from './upgrade-node.ts';

/** Options for the static Pods of a control plane, of `upgrade apply` and `upgrade node`. */
export interface ControlPlaneUpgradeOptions extends UpgradeNodeOptions {
  /** Patches of all targets except the KubeletConfiguration. */
  readonly staticPodPatches: readonly PlannedPatch[];
  /** Renews the certificates of each component that is replaced. */
  readonly certificateRenewal: boolean;
  readonly etcdUpgrade: boolean;
  readonly imagePullPolicy: PullPolicy;
  readonly timeouts: Timeouts;
  /** Proxy variables of the static Pods; null: those of the existing manifests. */
  readonly proxyEnvironment: readonly EnvVar[] | null;
  readonly issuer: CertificateIssuer;
  readonly connectEtcd: ConnectEtcd;
  /** Access to the API server as an administrator. */
  readonly api: ApiAccess;
  /** Whether the user left a phase in the run, by its name (`--skip-phases`). */
  readonly selects: (phase: string) => boolean;
}

type ControlPlaneUpgradeInput = ReturnType<typeof inputOf>;

const renewAdminKubeconfigs = writeFilesPhase(
  'control-plane/kubeconfig',
  'Renew the certificates of admin.conf, super-admin.conf and kubeletadm-controller.conf',
  'the kubeconfigs are unchanged',
);

const restartController = runController(
  'control-plane/kubeletadm-controller',
  'Restart the controller of rollouts, if it runs on the host',
);

type UpgradePhase = Phase<ControlPlaneUpgradeInput>;

const COMPONENT_PHASES: Readonly<Record<StaticPodName, string>> = {
  etcd: 'control-plane/etcd',
  'kube-apiserver': 'control-plane/apiserver',
  'kube-controller-manager': 'control-plane/controller-manager',
  'kube-scheduler': 'control-plane/scheduler',
};

const replacement = (component: StaticPodName): UpgradePhase =>
  deferUntilApiServer(
    replaceStaticPod(COMPONENT_PHASES[component], component),
    (input: ControlPlaneUpgradeInput) => input.components[component],
  );

/** The static Pods, with a backup before and the kubeconfigs of administrators after them. */
export const upgradeControlPlanePhases: readonly UpgradePhase[] = [
  pullImages.select((input) => input.pull),
  deferUntilApiServer(backupControlPlane, (input) => input.backup),
  replacement('etcd'),
  replacement('kube-apiserver'),
  replacement('kube-controller-manager'),
  replacement('kube-scheduler'),
  // One phase at a time: the kubeconfigs are renewed after all static Pods run.
  { ...renewAdminKubeconfigs.select((input: ControlPlaneUpgradeInput) => input.kubeconfigs), writesFilesOnly: false },
  restartController.select(({ kubeconfigs }: ControlPlaneUpgradeInput) => ({
    unit: null,
    isRenewed: kubeconfigs.files.some(({ path }) => path === CONTROLLER_CONF),
  })),
  completeControlPlane.select((input: ControlPlaneUpgradeInput) => input.backup),
];

export const kubeconfigPhase: UpgradePhase = kubeletServer.select((input) => input.kubeletServer);

export const kubeletConfigPhases: readonly UpgradePhase[] = [
  upgradeKubeletConfig.select((input) => input.node.kubeletConfig),
  saveUpgradedNodeSettings.select((input) => input.node.save),
  deferUntilApiServer(removeSocketAnnotation, (input) => input.node.annotation),
];

export const addonPhases: readonly UpgradePhase[] = [
  skipUntilAllUpgraded(
    deferUntilApiServer(addonCoredns, (input: ControlPlaneUpgradeInput) => input.coredns),
    ({ coredns, others }) => (coredns.objects === null ? null : others),
  ),
  skipUntilAllUpgraded(
    deferUntilApiServer(addonKubeProxy, (input: ControlPlaneUpgradeInput) => input.kubeProxy),
    ({ kubeProxy, others }) => (kubeProxy.objects === null ? null : others),
  ),
];

export const postUpgradePhase: UpgradePhase = deferUntilApiServer(postUpgrade, (input) => input.result);

/**
 * Prepares the upgrade of a control plane host: the manifests of the target version, renewed certificates, the kubelet's
 * configuration and the add-ons. Changes nothing.
 * @throws AppError CONTROL_PLANE_MISSING, exit code 3, if the host runs no API server; errors of patches and certificates
 */
export async function prepareControlPlaneUpgrade(
  context: ClusterContext,
  options: ControlPlaneUpgradeOptions,
  target: UpgradedDocuments,
): Promise<Prepared<ControlPlaneUpgradeInput>> {
  const now = context.clock.now();
  const host = await observeControlPlaneHost(context);
  const { input: node, ...prepared } = await prepareUpgrade(context, options, { upgraded: target });
  const endpoint = host.endpoint;
  const cluster = applyClusterDefaults({ ...target.cluster, kubernetesVersion: target.version }, endpoint.bindPort);
  const certificates = await renewedCertificates(context, { ...options, cluster });
  const plane: ControlPlaneNode = {
    ...{ cluster, nodeName: node.annotation.nodeName, localAPIEndpoint: endpoint },
    timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    patches: options.staticPodPatches,
    caDirectories: host.caDirectories,
    etcdMembers: null,
    externalCA: certificates.externalCA,
    proxyEnvironment: options.proxyEnvironment ?? proxyVariablesOf(host.textOf('kube-apiserver')),
    kubeProxy: await writtenKubeProxy(context.cluster),
  };
  const manifests = manifestsOf(plane, host, options);
  const newDir = etcdDataDirOf(textOf(fileOf(manifests.get('etcd'))));
  const findings = options.skipPreflight || options.singlePhase ? [] : await componentArguments(cluster);
  const checked = validateFindings(findings, [options.run], context.host.name);
  const usedDir = etcdDataDirOf(host.textOf('etcd'));
  return {
    ...prepared,
    input: inputOf({ now, version: target.version, host, node, plane, certificates, manifests }, options),
    warnings: [...prepared.warnings, ...certificates.warnings, ...dataDirWarnings(usedDir, newDir), ...checked.warnings.map(toWarning)],
    refusals: [...prepared.refusals, ...certificates.problems, ...checked.errors],
  };
}

interface DesignedUpgrade {
  readonly now: Date;
  readonly version: string;
  readonly host: ControlPlaneHostFacts;
  readonly node: UpgradeNodeInput;
  readonly plane: ControlPlaneNode;
  readonly certificates: Awaited<ReturnType<typeof renewedCertificates>>;
  readonly manifests: ReadonlyMap<StaticPodName, PlannedManifest>;
}

function inputOf(upgrade: DesignedUpgrade, options: ControlPlaneUpgradeOptions) {
  const { host, node, plane, certificates, manifests } = upgrade;
  const { cluster, nodeName } = plane;
  const { criSocket } = node;
  const version = releaseOfVersion(upgrade.version);
  const files = new Map(
    [...manifests].flatMap(([name, planned]) =>
      'file' in planned && options.selects(COMPONENT_PHASES[name]) ? [[name, planned.file] as const] : [],
    ),
  );
  const imageOf = (name: StaticPodName): string => readManifest(textOf(fileOf(manifests.get(name))), name).image ?? '';
  const proxy = cluster.proxy.disabled === true ? { objects: null, warnings: [] } : kubeProxyObjects(plane);
  const ignored = isIgnored('ImagePull', [options.run]);
  const dataDir = etcdDataDirOf(host.textOf('etcd')) ?? cluster.etcd.local?.dataDir ?? ETCD_DATA_DIR;
  const etcdDataDir = hasLocalEtcd(cluster) && options.etcdUpgrade ? dataDir : null;
  const isUpgraded = host.isInterrupted || [...files.values()].some((file) => isReplaced(file, host));
  const copiesConfig = [...manifests.values()].some((planned) => isReplaced(fileOf(planned), host));
  return {
    ...{ api: options.api, assumeEmptyCluster: false, staged: false },
    pull: { images: controlPlaneImages(cluster), criSocket, policy: options.imagePullPolicy, ignored },
    backup: { version, nodeName, criSocket, manifests: files, backup: upgradeBackup(upgrade.now), etcdDataDir },
    components: componentsOf(upgrade, options),
    kubeconfigs: adminKubeconfigs(certificates.of(OTHER_KUBECONFIGS), isUpgraded),
    kubeletServer: kubeletServerInput(plane, host),
    node: { ...node, kubeletConfig: { ...node.kubeletConfig, copiesConfig } },
    others: otherControlPlanes({ nodeName, image: imageOf('kube-apiserver'), timeoutMs: timeoutMsOf(plane) }),
    coredns: { forceUpload: false, objects: cluster.dns.disabled === true ? null : corednsObjects(plane) },
    kubeProxy: { forceUpload: false, ...proxy },
    result: {
      ...{ nodeName, version },
      images: new Map([...files.keys()].map((name) => [name, imageOf(name)])),
      versionUrl: versionUrl(host.textOf('kube-apiserver')),
      checksVersion: files.has('kube-apiserver') && imageOf('kube-apiserver').endsWith(`:${versionTag(upgrade.version)}`),
    },
  };
}

function componentsOf(
  { now, host, node, plane, certificates, manifests }: DesignedUpgrade,
  options: ControlPlaneUpgradeOptions,
): Readonly<Record<StaticPodName, ReplaceStaticPodInput>> {
  const timeoutMs = timeoutMsOf(plane);
  const etcd = fileOf(manifests.get('etcd'));
  const of = (component: StaticPodName): ReplaceStaticPodInput => {
    const planned = manifests.get(component);
    return {
      ...{ nodeName: plane.nodeName, criSocket: node.criSocket, timeoutMs },
      manifest: fileOf(planned),
      skipped: planned !== undefined && 'skipped' in planned ? planned.skipped : 'etcd is external',
      renewals: certificates.of(COMPONENT_CERTIFICATES[component]),
      ...{ renewedWith: null, checkBefore: null, restore: null },
    };
  };
  return {
    etcd: {
      ...of('etcd'),
      renewedWith: fileOf(manifests.get('kube-apiserver')),
      checkBefore: etcdHealthCheck({
        ...{ ...options, certificatesDir: plane.cluster.certificatesDir, textAt: certificates.textAt },
        isReplaced: isReplaced(etcd, host),
        localPeerURL: readEtcdManifest(host.textOf('etcd')).peerURL,
      }),
      restore: restoreEtcdData({ phase: COMPONENT_PHASES.etcd, timeoutMs, timestamp: backupTimestamp(now), healthMs: ETCD_HEALTH_MS }),
    },
    'kube-apiserver': of('kube-apiserver'),
    'kube-controller-manager': of('kube-controller-manager'),
    'kube-scheduler': of('kube-scheduler'),
  };
}

function timeoutMsOf({ timeouts }: ControlPlaneNode): number {
  return goDurationMs(timeouts.upgradeManifests);
}

function isReplaced(file: DesiredFile | null, host: ControlPlaneHostFacts): boolean {
  return file !== null && diffFile(host.fileAt(file.path), file) !== null;
}

/** An etcd with another data directory starts as a new, empty cluster, unless the administrator has moved the data. */
function dataDirWarnings(used: string | null, planned: string | null): readonly Warning[] {
  if (used === null || planned === null || used === planned) return [];
  const message = `etcd has its data in ${used}, but the upgraded etcd would use ${planned} and start without data. Set etcd.local.dataDir in ConfigMap kube-system/kubeadm-config to ${used}, or move the data`;
  return [{ code: 'ETCD_DATA_DIR_DIFFERS', message }];
}

type PlannedManifest = { readonly file: DesiredFile } | { readonly skipped: string };

/** The new manifest of each component, or why it is not upgraded. */
function manifestsOf(
  plane: ControlPlaneNode,
  host: ControlPlaneHostFacts,
  { etcdUpgrade }: ControlPlaneUpgradeOptions,
): ReadonlyMap<StaticPodName, PlannedManifest> {
  return new Map(
    staticPodNames(plane).map((name): readonly [StaticPodName, PlannedManifest] => {
      const file = manifestFile(plane, name);
      if (name !== 'etcd') return [name, { file }];
      if (!etcdUpgrade) return [name, { skipped: 'skipped: --etcd-upgrade=false' }];
      const [before, after] = [etcdTagOf(host.textOf('etcd')), etcdTagOf(textOf(file))];
      if (isOlderTag(after, before)) return [name, { skipped: `etcd ${before} is newer than ${after}, the version of the upgrade` }];
      return [name, { file: keepStarted(file, host.fileAt(manifestPath('etcd'))?.content) }];
    }),
  );
}

function textOf(file: DesiredFile | null): string {
  return file === null ? '' : revealText(file.content);
}

function fileOf(planned: PlannedManifest | undefined): DesiredFile | null {
  return planned !== undefined && 'file' in planned ? planned.file : null;
}

/**
 * The kubeconfigs of administrators are renewed if a component is, also after an interruption. kubeadm 1.36 renews them
 * with every run; here a second run plans no changes.
 */
function adminKubeconfigs(renewed: readonly DesiredFile[], isUpgraded: boolean): WriteFilesInput {
  const none = { directories: [], mayChown: true };
  return isUpgraded ? { ...none, files: renewed } : { ...none, files: [], skipped: 'the static Pod manifests are unchanged' };
}

/** The user's KubeProxyConfiguration in the cluster; null: kubeadm's defaults. */
async function writtenKubeProxy(cluster: Cluster): Promise<ControlPlaneNode['kubeProxy']> {
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: 'kube-proxy' });
  return found === null || isGenerated(found) ? null : readConfigMapDocument(found, KUBE_PROXY_CONFIG_KEY);
}

function kubeletServerInput(plane: ControlPlaneNode, { fileAt }: ControlPlaneHostFacts): KubeletServerInput {
  const noop = 'kubelet.conf names the API server of this host, or a server that was set by hand';
  const found = fileAt(KUBELET_CONF);
  const servers = { endpoint: controlPlaneServer(plane), local: localServer(plane.localAPIEndpoint) };
  const content = found?.content === undefined ? null : withLocalServer(found.content, servers);
  if (found === null || content === null) return { kubeconfig: null, noop };
  return { noop, kubeconfig: { path: KUBELET_CONF, content, mode: 0o600, owner: found.owner } };
}

/**
 * Upgrades another control plane to the version of the cluster, after `upgrade apply` on the first one. Phases in the
 * order of kubeadm 1.36.
 */
export const upgradeControlPlaneNodeWorkflow: Workflow<ControlPlaneUpgradeOptions, ControlPlaneUpgradeInput> = {
  name: 'upgrade node',
  phases: [...upgradeControlPlanePhases, kubeconfigPhase, ...kubeletConfigPhases, ...addonPhases, postUpgradePhase],
  prepare: prepareUpgradeNode,
};

async function prepareUpgradeNode(context: PhaseContext, options: ControlPlaneUpgradeOptions): Promise<Prepared<ControlPlaneUpgradeInput>> {
  const { cluster, model, warnings } = await readAdminCluster(context, options.api);
  const { kubernetesVersion } = applyClusterDefaults(model);
  const target = { version: kubernetesVersion, cluster: model, kubelet: null };
  const prepared = await prepareControlPlaneUpgrade({ ...context, cluster }, options, target);
  return { ...prepared, warnings: [...warnings, ...prepared.warnings] };
}
