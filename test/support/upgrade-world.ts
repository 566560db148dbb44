import { createHash } from 'node:crypto';
import { AppError } from '../../src/base/errors.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { PhaseContext } from '../../src/host/phase.ts';
import { planWorkflow, runWorkflow, type WorkflowRun } from '../../src/host/run-workflow.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../src/kube/object.ts';
import { manifestVersion } from '../../src/kubeadm/control-plane/manifest-version.ts';
import { NodeGroups } from '../../src/kubeadm/render/node-groups.ts';
import { readManifest } from '../../src/kubeadm/upgrade/static-pod-state.ts';
import type { ApiAccess } from '../../src/kubeadm/workflows/control-plane/api-access.ts';
import { initControlPlaneWorkflow } from '../../src/kubeadm/workflows/init-control-plane.ts';
import type { ControlPlaneUpgradeOptions } from '../../src/kubeadm/workflows/upgrade/control-plane-upgrade.ts';
import { type UpgradeApplyOptions, upgradeApplyWorkflow } from '../../src/kubeadm/workflows/upgrade/upgrade-apply.ts';
import { upgradeControlPlaneNodeWorkflow } from '../../src/kubeadm/workflows/upgrade/upgrade-control-plane-node.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue.ts';
import { loadTemplates } from '../../src/template-files.ts';
import { fakeClock } from './fake-clock.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';
import { type FakeEtcd, fakeEtcd } from './fake-etcd.ts';
import { type FakeHost, fakeHost } from './fake-host.ts';
import { fakeUnit, runs } from './fake-units.ts';
import { issuerOfOneKey } from './issuer-of-one-key.ts';
import { recordingReporter } from './recording-reporter.ts';

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
  /** Pods that are not those of this host. */
  readonly otherPods: KubeObject[];
  apply(options?: Partial<UpgradeApplyOptions>, run?: Partial<WorkflowRun>): ReturnType<typeof runWorkflow>;
  plan(options?: Partial<UpgradeApplyOptions>): ReturnType<typeof planWorkflow>;
  node(options?: Partial<ControlPlaneUpgradeOptions>): ReturnType<typeof runWorkflow>;
}

/** @param version of the control plane, which `init` creates */
export async function upgradeWorld(version = 'v1.35.6'): Promise<UpgradeWorld> {
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
    },
    commands: {
      ...COMMANDS,
      kubelet: { stdout: `Kubernetes ${version}\n` },
      date: () => ({ stdout: `${Math.floor(clock.now().getTime() / 1000)}\n` }),
      sh: (argv) =>
        argv.includes('/var/lib/etcd') || argv.includes('/var/lib/etcd/member')
          ? copy(host, argv)
          : { exitCode: argv.at(-1)?.includes('command -v systemctl') ? 0 : 1 },
    },
    http: (url) => {
      if (kubelet.state.activeState !== 'active') return { error: 'connection refused' };
      const component = COMPONENTS.find((name) => healthOf(host, name) === url);
      return component === undefined || runsWell(world, component) ? { status: 200, body: 'ok' } : { error: 'connection refused' };
    },
  });
  kubelet.onStart = (unit) => {
    runs(unit);
    if (!host.files.has(manifestOf('kube-apiserver'))) return;
    host.files.set('/proc/net/tcp', regular(LISTENING));
    if (!host.files.has(PEM)) host.files.set(PEM, regular('pem\n'));
    if (!host.files.has('/var/lib/etcd/member')) host.files.set('/var/lib/etcd/member', regular('data'));
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
      return manifestVersion(host.text(manifestOf('kube-apiserver')), 'kube-apiserver') ?? '';
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
    forget: false,
    ignorePreflightErrors: ['all'],
    skipPreflight: false,
    podLoss: 'warn',
    dryRun: false,
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
    issuer: issuerOfOneKey(),
    connectEtcd: async () => etcd,
    api,
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
    ...{ host, cluster: store, etcd, api, context, reporter, otherPods: [] },
    crashes: () => false,
    apply: (options = {}, run = {}) =>
      runWorkflow(upgradeApplyWorkflow, context, { ...applyOptions, ...options }, { dryRun: false, skipPhases: [], ...run }),
    plan: (options = {}) =>
      planWorkflow(upgradeApplyWorkflow, context, { ...applyOptions, ...options, dryRun: true }, { dryRun: true, skipPhases: [] }),
    node: (options = {}) =>
      runWorkflow(upgradeControlPlaneNodeWorkflow, context, { ...node, ...options }, { dryRun: false, skipPhases: [] }),
  };
  await runWorkflow(
    initControlPlaneWorkflow,
    context,
    {
      ...node,
      ...{ nodeRegistration: {}, overlays: [], settings: [], patches: [] },
      localAPIEndpoint: { advertiseAddress: '10.0.0.1' },
      timeouts: {},
      kubeProxy: null,
      proxyEnvironment: [],
      routeHere: {},
      selects: () => true,
      skips: () => false,
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

const COMMANDS = {
  id: { stdout: '0\n' },
  uname: (argv: readonly string[]) => ({ stdout: argv.includes('-r') ? '6.12.0\n' : argv.includes('-n') ? 'cp-1\n' : 'x86_64\n' }),
  stat: { stdout: 'cgroup2fs\n' },
  nproc: { stdout: '4\n' },
  hostname: { stdout: '10.0.0.1\n' },
  ip: { exitCode: 127 },
  timeout: { exitCode: 127 },
  crio: { exitCode: 127 },
  containerd: { exitCode: 127 },
  docker: { exitCode: 127 },
  getent: { exitCode: 2 },
};

/** Performs the copy of a directory with one file, `member`. */
function copy(host: FakeHost, argv: readonly string[]) {
  const [from = '', to = ''] = argv.slice(-2);
  if (host.files.has(to)) return { exitCode: 0 };
  for (const [path, file] of [...host.files])
    if (path === from || path.startsWith(`${from}/`)) host.files.set(`${to}${path.slice(from.length)}`, file);
  return { exitCode: 0 };
}

function healthOf(host: FakeHost, component: Component): string | null {
  const content = host.files.get(manifestOf(component))?.content;
  return content === undefined ? null : readManifest(content, component).healthUrl;
}

function runsWell(world: UpgradeWorld, component: Component): boolean {
  const content = world.host.files.get(manifestOf(component))?.content;
  return content !== undefined && !world.crashes(component, content);
}

/** The API server needs its own Pod and etcd. */
function requireApi(world: UpgradeWorld): void {
  if (runsWell(world, 'etcd') && runsWell(world, 'kube-apiserver')) return;
  throw new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'https://10.0.0.1:6443: connection refused' });
}

/** The mirror Pod of the manifest on the host. */
function podOf(world: UpgradeWorld, { name }: ObjectRef): KubeObject | null {
  const component = COMPONENTS.find((each) => name === `${each}-cp-1`);
  const content = component === undefined ? undefined : world.host.files.get(manifestOf(component))?.content;
  if (component === undefined || content === undefined) return null;
  const { image } = readManifest(content, component);
  const isWell = runsWell(world, component);
  const hash = createHash('md5').update(content).digest('hex');
  const waiting = { waiting: { reason: 'CrashLoopBackOff' } };
  const url = component === 'etcd' ? { 'kubeadm.kubernetes.io/etcd.advertise-client-urls': 'https://10.0.0.1:2379' } : {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'kube-system', annotations: { 'kubernetes.io/config.hash': hash, ...url } },
    spec: { nodeName: 'cp-1', containers: [{ name: component, image: image ?? '' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: isWell ? 'True' : 'False' }],
      containerStatuses: [{ name: component, ready: isWell, restartCount: isWell ? 0 : 3, state: isWell ? { running: {} } : waiting }],
    },
  };
}
