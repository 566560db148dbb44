import { createHash } from 'node:crypto';
import { AppError } from '../../src/base/errors.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { FileFact } from '../../src/host/facts/query.ts';
import type { PhaseContext } from '../../src/host/phase.ts';
import { phaseSelection, planWorkflow, type WorkflowRun } from '../../src/host/run-workflow.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../src/kube/object.ts';
import { NodeGroups } from '../../src/kubeadm/render/node-groups.ts';
import { type ManifestFacts, readManifest } from '../../src/kubeadm/upgrade/static-pod-state.ts';
import type { ApiAccess } from '../../src/kubeadm/workflows/control-plane/api-access.ts';
import { initWorkflow } from '../../src/kubeadm/workflows/init.ts';
import type { ControlPlaneUpgradeOptions } from '../../src/kubeadm/workflows/upgrade/control-plane-upgrade.ts';
import { upgradeControlPlaneNodeWorkflow } from '../../src/kubeadm/workflows/upgrade/control-plane-upgrade.ts';
import { planRecovery } from '../../src/kubeadm/workflows/upgrade/plan-recovery.ts';
import { type UpgradeApplyOptions, upgradeApplyWorkflow } from '../../src/kubeadm/workflows/upgrade/upgrade-apply.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../src/template-files.ts';
import { certificateIssuer } from '../../src/x509/adapters/certificate-issuer.ts';
import { type FakeClock, fakeClock } from './fake-clock.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';
import { type FakeEtcd, fakeEtcd } from './fake-etcd.ts';
import { type FakeHost, fakeHost } from './fake-host.ts';
import { fakeUnit, runs } from './fake-units.ts';
import { hostCommands } from './host-to-join.ts';
import { issuerOfOneKey } from './issuer-of-one-key.ts';
import { manifestVersion } from './manifest-version.ts';
import { recordingReporter } from './recording-reporter.ts';
import { runWorkflow } from './run-workflow.ts';
import { withRun } from './with-run.ts';

const ADMINS = { name: 'kubernetes-admin', groups: ['kubeadm:cluster-admins', 'system:authenticated'] };
const LISTENING = '   0: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n';
const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const regular = (content: string) => ({ type: 'file', mode: 0o644, owner: 'root:root', content }) as const;

export const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
export type Component = (typeof COMPONENTS)[number];

export const manifestOf = (component: Component): string => `/etc/kubernetes/manifests/${component}.yaml`;

/** A control plane in memory: a host whose kubelet runs the static Pods of its manifests, and their cluster. */
export interface UpgradeWorld {
  readonly host: FakeHost;
  readonly cluster: FakeCluster;
  readonly etcd: FakeEtcd;
  readonly api: ApiAccess;
  readonly context: PhaseContext;
  readonly reporter: ReturnType<typeof recordingReporter>;
  /** Whether a component crashes with a manifest. */
  crashes: (component: Component, manifest: string) => boolean;
  /** The manifest that the kubelet still runs, if it has not seen a newer one. */
  readonly stale: Map<Component, string>;
  /** Why the API server refuses the credentials; null: it accepts them. */
  refusal: AppError | null;
  /** Ids of the live containers of etcd; null: the container runtime does not answer. */
  liveEtcd: () => string | null;
  /** The backup of the etcd data cannot be copied back. */
  copyFails: boolean;
  readonly clock: FakeClock;
  /** Whether etcd has started without data, as a new, empty cluster. */
  readonly isEmptied: () => boolean;
  /** Replaces the version that the API server of the host reports. */
  hostVersion: string | null;
  /** Pods that are not those of this host. */
  readonly otherPods: KubeObject[];
  apply(options?: Partial<UpgradeApplyOptions>, run?: Partial<WorkflowRun>): ReturnType<typeof runWorkflow>;
  plan(options?: Partial<UpgradeApplyOptions>): ReturnType<typeof planWorkflow>;
  /** Plans the rollback of an interrupted upgrade; null: none is necessary. */
  recover(run?: Partial<WorkflowRun>): ReturnType<typeof planRecovery>;
  node(options?: Partial<ControlPlaneUpgradeOptions>): ReturnType<typeof runWorkflow>;
}

/**
 * A control plane whose upgrade was killed right after it wrote a file.
 * @param prepare changes the control plane before the upgrade
 */
export async function killedAfter(
  path: string,
  options: Partial<UpgradeApplyOptions> = {},
  prepare: (world: UpgradeWorld) => void = () => undefined,
): Promise<UpgradeWorld> {
  const straight = await upgradeWorld();
  prepare(straight);
  const started = straight.host.performed.length;
  await straight.apply(options);
  const at = straight.host.performed.slice(started).findIndex((one) => one.kind === 'write-file' && one.path === path);
  if (at < 0) throw new Error(`the upgrade does not write ${path}`);
  const world = await upgradeWorld();
  prepare(world);
  world.host.loseConnectionAfter(at);
  await world.apply(options).then(
    () => Promise.reject(new Error('the upgrade was not killed')),
    () => undefined,
  );
  return world;
}

type Files = Readonly<Record<string, FileFact>>;

/** The certificates, keys and kubeconfigs of all worlds: issuing them takes most of the time of `init`. */
let credentials: Promise<Files> | null = null;

/** Certificates that upgrades of all worlds renew; those of `init` are others. */
const UPGRADE_ISSUER = issuerOfOneKey();

async function issuedCredentials(): Promise<Files> {
  const { host } = await newWorld('v1.35.6', {});
  const isCredential = (path: string): boolean => /^\/etc\/kubernetes\/(?:pki|(?!kubelet\.)[a-z-]+\.conf$)/.test(path);
  return Object.fromEntries([...host.files].filter(([path]) => isCredential(path)));
}

/** @param version of the control plane, which `init` creates */
export async function upgradeWorld(version = 'v1.35.6'): Promise<UpgradeWorld> {
  credentials ??= issuedCredentials();
  return newWorld(version, await credentials);
}

async function newWorld(version: string, issued: Files): Promise<UpgradeWorld> {
  const [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
  const clock = fakeClock();
  const store = fakeCluster({ now: clock.now });
  const admin = fakeCluster({ sharedWith: store, user: ADMINS, now: clock.now });
  const kubelet = fakeUnit({ activeState: 'inactive' });
  const host: FakeHost = fakeHost({
    name: 'cp-1',
    units: { kubelet },
    files: {
      '/var/run/containerd/containerd.sock': { type: 'socket', mode: 0o660, owner: 'root:root' },
      '/usr/lib/systemd/system/kubelet.service': '[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n',
      '/proc/net/tcp': '',
      '/proc/meminfo': 'MemTotal:        8000000 kB\n',
      ...issued,
    },
    commands: {
      ...hostCommands('cp-1'),
      kubelet: { stdout: `Kubernetes ${version}\n` },
      date: () => ({ stdout: `${Math.floor(clock.now().getTime() / 1000)}\n` }),
      sh: (argv) => {
        const [from = '', to = '', kept = ''] = argv.slice(4);
        if (to === 'etcd-cp-1') {
          const live = world.liveEtcd();
          return live === null ? { exitCode: 1 } : { stdout: live };
        }
        if (to.startsWith(`${MEMBER}.restored-`) && kept === '')
          return world.copyFails ? { exitCode: 1, stderr: 'No space left on device\n' } : copyFiles(host, from, to);
        if (from.endsWith('/member') && to === '')
          return host.files.has(from) ? { exitCode: 0 } : { exitCode: 1, stderr: `${from} does not exist\n` };
        if (from === MEMBER) return swapFiles(host, { path: from, by: to, kept });
        if (from === DATA_DIR || from.startsWith(`${DATA_DIR}/`)) return copyFiles(host, from, to);
        return { exitCode: argv.at(-1)?.includes('command -v systemctl') ? 0 : 1 };
      },
    },
    http: (url) => {
      if (kubelet.state.activeState !== 'active') return { error: 'connection refused' };
      if (url.endsWith('/version')) return { status: 200, body: JSON.stringify({ gitVersion: world.hostVersion ?? apiVersion() }) };
      const component = COMPONENTS.find((name) => healthOf(host, name) === url);
      return component === undefined || isComponentHealthy(world, component)
        ? { status: 200, body: 'ok' }
        : { error: 'connection refused' };
    },
  });
  const apiVersion = (): string => manifestVersion(host.text(manifestOf('kube-apiserver')), 'kube-apiserver') ?? '';
  kubelet.onStart = (unit) => {
    runs(unit);
    if (!host.files.has(manifestOf('kube-apiserver'))) return;
    host.files.set('/proc/net/tcp', regular(LISTENING));
    if (!host.files.has(PEM)) host.files.set(PEM, regular('pem\n'));
    if (!host.files.has(MEMBER)) {
      host.files.set(MEMBER, { type: 'directory', mode: 0o700, owner: 'root:root' });
      host.files.set(ETCD_DB, regular('data'));
    }
    void store.create(NODE).catch(() => undefined);
  };
  const etcd = fakeEtcd([
    { name: 'cp-1', id: '1', peerURLs: ['https://10.0.0.1:2380'], clientURLs: ['https://10.0.0.1:2379'], isLearner: false },
  ]);
  const reporter = recordingReporter();
  const context: PhaseContext = { host, cluster: null, clock, reporter };
  const cluster: Cluster = {
    ...store,
    version: async () => {
      requireApi(world);
      return apiVersion();
    },
    get: async (ref) => {
      requireApi(world);
      return ref.kind === 'Pod' ? podOf(world, ref) : store.get(ref);
    },
    list: async (kind, options) => {
      requireApi(world);
      if (kind.kind !== 'Pod') return store.list(kind, options);
      const [, component] = /component=([a-z-]+)/.exec(options?.labelSelector ?? '') ?? [];
      const own = podOf(world, { apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system', name: `${component}-cp-1` });
      return { items: [...(own === null ? [] : [own]), ...world.otherPods], resourceVersion: '1' };
    },
  };
  const api: ApiAccess = { reach: async () => cluster, close: async () => undefined };
  const node = {
    templates,
    catalogue,
    groups: new NodeGroups(),
    overlays: null,
    declared: [],
    settings: null,
    patches: null,
    ignoreSavedSettings: false,
    ...withRun({ ignorePreflightErrors: ['all'], podLoss: 'warn' }),
    skipPreflight: false,
    staged: false,
    kubeletHealthCheckMs: 10_000,
    trust: null,
    nodeName: null,
    staticPodPatches: [],
    certificateRenewal: true,
    etcdUpgrade: true,
    imagePullPolicy: 'IfNotPresent',
    timeouts: { upgradeManifests: '1m0s' },
    proxyEnvironment: null,
    issuer: UPGRADE_ISSUER,
    connectEtcd: async () => etcd,
    api,
    selects: () => true,
  } as const;
  const applyOptions = {
    ...node,
    version: 'v1.36.2',
    allowExperimental: false,
    allowReleaseCandidates: false,
    force: false,
    showConfig: null,
    checks: false,
  };
  const world: UpgradeWorld = {
    ...{ host, cluster: store, etcd, api, context, reporter, clock, otherPods: [], stale: new Map() },
    crashes: () => false,
    refusal: null,
    copyFails: false,
    liveEtcd: () => (host.files.has(manifestOf('etcd')) ? '0123\n' : ''),
    isEmptied: () => emptied.has(host),
    hostVersion: null,
    apply: (options = {}, run = {}) => {
      const selects = phaseSelection({ skipPhases: run.skipPhases ?? [] });
      return runWorkflow(
        upgradeApplyWorkflow,
        context,
        { ...applyOptions, selects, ...options },
        { dryRun: false, skipPhases: [], ...run },
      );
    },
    plan: (options = {}) =>
      planWorkflow(
        upgradeApplyWorkflow,
        context,
        { ...applyOptions, ...options, run: { ...(options.run ?? applyOptions.run), dryRun: true } },
        { dryRun: true, skipPhases: [] },
      ),
    recover: (run = {}) => planRecovery(context, { dryRun: false, skipPhases: [], ...run }, { api, timeoutMs: 10_000 }),
    node: (options = {}) =>
      runWorkflow(upgradeControlPlaneNodeWorkflow, context, { ...node, ...options }, { dryRun: false, skipPhases: [] }),
  };
  await runWorkflow(
    initWorkflow,
    context,
    {
      ...node,
      issuer: certificateIssuer,
      ...{ nodeRegistration: {}, overlays: [], settings: [], patches: [] },
      localAPIEndpoint: { advertiseAddress: '10.0.0.1' },
      timeouts: {},
      kubeProxy: null,
      proxyEnvironment: [],
      localDefaultRoute: {},
      cluster: { kubernetesVersion: version, encryptionAlgorithm: 'ECDSA-P256', controlPlaneEndpoint: 'api.example:6443' },
      kubelet: null,
      connect: async ({ kubeconfig }) => (kubeconfig.file.endsWith('super-admin.conf') ? store : admin),
      given: null,
      releaseOf: async () => null,
      forceUpload: false,
      bootstrapTokens: [],
      freshTokens: [new Secret('abcdef.0123456789abcdef')],
      makesTokens: true,
      withholdToken: false,
      showJoinCommand: () => undefined,
      uploadCerts: false,
      certificateKey: null,
      certsToken: new Secret('certs0.0123456789abcdef'),
      showCertificateKey: () => undefined,
      withholdCertificateKey: false,
      opened: () => undefined,
    },
    { dryRun: false, skipPhases: [] },
  );
  return world;
}

const NODE: KubeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'cp-1', labels: { 'kubernetes.io/hostname': 'cp-1' } },
  status: { nodeInfo: { kubeletVersion: 'v1.35.6' } },
};

const DATA_DIR = '/var/lib/etcd';
const MEMBER = `${DATA_DIR}/member`;
/** The data of etcd. */
export const ETCD_DB = `${MEMBER}/db`;

function copyFiles(host: FakeHost, from: string, to: string) {
  if (host.files.has(to)) return { exitCode: 1, stderr: `${to} exists\n` };
  for (const [path, file] of [...host.files])
    if (path === from || path.startsWith(`${from}/`)) host.files.set(`${to}${path.slice(from.length)}`, file);
  return { exitCode: 0 };
}

function swapFiles(host: FakeHost, { path, by, kept }: { readonly path: string; readonly by: string; readonly kept: string }) {
  if (!host.files.has(by) || host.files.has(kept)) return { exitCode: 1, stderr: 'refused\n' };
  for (const [from, to] of [
    [path, kept],
    [by, path],
  ] as const) {
    if (!host.files.has(from)) continue;
    copyFiles(host, from, to);
    for (const name of [...host.files.keys()]) if (name === from || name.startsWith(`${from}/`)) host.files.delete(name);
  }
  return { exitCode: 0 };
}

/** Hosts whose etcd has started without data. */
const emptied = new WeakSet<FakeHost>();

/** Facts of manifests by their text: the fakes read the same few manifests for each probe of a wait. */
const manifestFacts = new Map<string, ManifestFacts>();

function factsOf(content: string, component: Component): ManifestFacts {
  const key = `${component}\n${content}`;
  const found = manifestFacts.get(key) ?? readManifest(content, component);
  manifestFacts.set(key, found);
  return found;
}

function healthOf(host: FakeHost, component: Component): string | null {
  const content = host.files.get(manifestOf(component))?.content;
  return content === undefined ? null : factsOf(content, component).healthUrl;
}

function isComponentHealthy(world: UpgradeWorld, component: Component): boolean {
  const content = world.host.files.get(manifestOf(component))?.content;
  if (content !== undefined && component === 'etcd' && !world.host.files.has(MEMBER)) emptied.add(world.host);
  return content !== undefined && !world.crashes(component, content);
}

/** The API server needs its own Pod and etcd. */
function requireApi(world: UpgradeWorld): void {
  if (world.refusal !== null) throw world.refusal;
  if (isComponentHealthy(world, 'etcd') && isComponentHealthy(world, 'kube-apiserver')) return;
  throw new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'https://10.0.0.1:6443: connection refused' });
}

/** The mirror Pod of the manifest on the host. */
function podOf(world: UpgradeWorld, { name }: ObjectRef): KubeObject | null {
  const component = COMPONENTS.find((each) => name === `${each}-cp-1`);
  const content = component === undefined ? undefined : world.host.files.get(manifestOf(component))?.content;
  if (component === undefined || content === undefined) return null;
  const { image } = factsOf(content, component);
  const isHealthy = isComponentHealthy(world, component);
  const hash = createHash('md5')
    .update(world.stale.get(component) ?? content)
    .digest('hex');
  const waiting = { waiting: { reason: 'CrashLoopBackOff' } };
  const url = component === 'etcd' ? { 'kubeadm.kubernetes.io/etcd.advertise-client-urls': 'https://10.0.0.1:2379' } : {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'kube-system', annotations: { 'kubernetes.io/config.hash': hash, ...url } },
    spec: { nodeName: 'cp-1', containers: [{ name: component, image: image ?? '' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: isHealthy ? 'True' : 'False' }],
      containerStatuses: [
        { name: component, ready: isHealthy, restartCount: isHealthy ? 0 : 3, state: isHealthy ? { running: {} } : waiting },
      ],
    },
  };
}
