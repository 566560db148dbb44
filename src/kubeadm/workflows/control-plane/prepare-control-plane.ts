import { type Problem, withHostInErrors } from '../../../base/errors.ts';
import { goDurationMs } from '../../../base/text/go-duration.ts';
import type { SensitiveText } from '../../../base/text/secret.ts';
import type { SourceDocument } from '../../../codec/source.ts';
import { observe } from '../../../host/access/observe.ts';
import type { DefaultRoute } from '../../../host/facts/default-route.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FactQueries } from '../../../host/facts/query.ts';
import type { Phase, PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import { phaseSelection } from '../../../host/run-workflow.ts';
import { KUBERNETES_DIR } from '../../../kube/well-known.ts';
import type { PlannedPatch } from '../../../kubelet/layers/patch-files.ts';
import type { CertificateIssuer } from '../../../x509/certificate-issuer.ts';
import { applyEndpointDefaults, CONTROL_PLANE_TAINT, DEFAULT_TIMEOUTS, type DefaultedCluster } from '../../config/defaults.ts';
import { type ApiEndpoint, argValue, type EnvVar, type Timeouts } from '../../config/model.ts';
import type { Origins } from '../../config/origins.ts';
import { releaseFacts } from '../../config/releases.ts';
import { adviseControlPlane } from '../../control-plane/advise.ts';
import { controlPlaneImages } from '../../control-plane/images.ts';
import { listenAddresses } from '../../control-plane/listen-addresses.ts';
import { staticPodNames, staticPodOf } from '../../control-plane/manifests.ts';
import { type ControlPlaneNode, type EtcdMember, hasLocalEtcd } from '../../control-plane/model.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { type ControlPlaneHost, controlPlaneHost } from '../../facts/control-plane-host.ts';
import type { MarkControlPlaneInput } from '../../phases/mark-control-plane.ts';
import type { PullImagesInput } from '../../phases/pull-images.ts';
import { staticPodsInput } from '../../phases/static-pods.ts';
import type { WaitControlPlaneInput } from '../../phases/wait-control-plane.ts';
import type { WriteFilesInput } from '../../phases/write-files.ts';
import type { KubeconfigDefinition } from '../../pki/kubeconfig-list.ts';
import { pkiPaths } from '../../pki/validate-pki.ts';
import { type Finding, isIgnored, type PreflightVerdict } from '../../preflight/check.ts';
import { componentArguments } from '../../preflight/component-arguments.ts';
import { controlPlaneFindings } from '../../preflight/control-plane-checks.ts';
import { proxyOfSubnets } from '../../preflight/http-proxy.ts';
import { type PreparedPki, preparePki } from '../certificates/prepare-pki.ts';
import type { NodeOptions } from '../node/node-options.ts';
import { preflightVerdict } from '../node/node-preflight.ts';
import type { ObservedNode } from '../node/observe-node.ts';

/** Options of a control plane node, for init and join. */
export interface ControlPlaneOptions extends NodeOptions {
  readonly localAPIEndpoint: ApiEndpoint;
  /** Advertises the API server at the node IP. Default: at the address of the default route, as in kubeadm. */
  readonly advertisesNodeIP?: boolean;
  readonly timeouts: Timeouts;
  /** Patches of all targets except the KubeletConfiguration. */
  readonly staticPodPatches: readonly PlannedPatch[];
  readonly kubeProxy: SourceDocument | null;
  /** Proxy variables for the static Pods (names ending in `_proxy`). */
  readonly proxyEnvironment: readonly EnvVar[];
  readonly issuer: CertificateIssuer;
  /** Directory of the kubeconfigs. Default: /etc/kubernetes */
  readonly kubeconfigDir?: string | undefined;
  /** Positions of the configuration file. */
  readonly configOrigins?: Origins;
  /** Default route of the local host, for files staged into a directory. */
  readonly localDefaultRoute: DefaultRoute;
  /** CA directories of the local host, for a staging directory without an operating system. */
  readonly localCaDirectories?: readonly string[];
}

/** Control plane facts of a host, and the endpoint of its API server. */
export interface ObservedControlPlane {
  readonly host: ControlPlaneHost;
  readonly warnings: readonly Warning[];
  readonly localAPIEndpoint: Required<ApiEndpoint>;
}

/**
 * The queries that every control plane with these settings needs, for the first round trip.
 * @param kubeconfigs those of the workflow, in `kubernetesDir`
 */
export function controlPlaneQueries(
  cluster: DefaultedCluster,
  { kubernetesDir, kubeconfigs }: { readonly kubernetesDir: string; readonly kubeconfigs: readonly KubeconfigDefinition[] },
): FactQueries {
  const { external, local } = cluster.etcd;
  const host = controlPlaneHost(external === undefined ? (local?.dataDir ?? null) : null, []);
  return { ...host.queries, ...fileFacts(pkiPaths({ node: { cluster }, kubernetesDir, kubeconfigs })).queries };
}

/**
 * Observes a future control plane host.
 * @param phases the workflow's phases; without an address only the phases that need none can run
 * @throws AppError CONFIG_NO_ADDRESS
 */
export async function observeControlPlane(
  context: PhaseContext,
  options: ControlPlaneOptions,
  { etcd, phases }: { readonly etcd: DefaultedCluster['etcd']; readonly phases: readonly Pick<Phase<never>, 'name' | 'needsNoAddress'>[] },
): Promise<ObservedControlPlane> {
  const { external, local } = etcd;
  const files = [external?.caFile, external?.certFile, external?.keyFile].filter((path) => path !== undefined && path !== '');
  const facts = controlPlaneHost(external === undefined ? (local?.dataDir ?? null) : null, files as readonly string[]);
  const host = await observe(context.host, facts, context.signal);
  const isSelected = phaseSelection(options.run);
  const isNeeded = phases.some(({ name, needsNoAddress }) => isSelected(name) && !needsNoAddress);
  const known = options.staged ? options.localDefaultRoute : host.route;
  const defaultRoute = isNeeded || known.ipv4 !== undefined ? known : { ...known, ipv4: '127.0.0.1' };
  const localAPIEndpoint = withHostInErrors(context.host.name, () => applyEndpointDefaults(options.localAPIEndpoint, { defaultRoute }));
  const isGuessed = isNeeded && options.staged && options.localAPIEndpoint.advertiseAddress === undefined;
  const { advertiseAddress } = localAPIEndpoint;
  const message = `the API server will be advertised at ${advertiseAddress}, which is an address of the local host. Set the address of the new host with --apiserver-advertise-address`;
  return { host, localAPIEndpoint, warnings: isGuessed ? [{ code: 'AdvertiseAddress', message }] : [] };
}

/** Sets the advertise address to the declared node IP if requested and no advertise address is declared. */
export function withAdvertiseAddress<Options extends ControlPlaneOptions>(options: Options, { registration }: ObservedNode): Options {
  const [nodeIP] = (argValue(registration.kubeletExtraArgs, 'node-ip') ?? '').split(',');
  const { localAPIEndpoint } = options;
  if (options.advertisesNodeIP !== true || !nodeIP || localAPIEndpoint.advertiseAddress !== undefined) return options;
  return { ...options, localAPIEndpoint: { ...localAPIEndpoint, advertiseAddress: nodeIP } };
}

interface PrepareControlPlaneInput {
  readonly node: ObservedNode;
  readonly observed: ObservedControlPlane;
  readonly cluster: DefaultedCluster;
  readonly kubeconfigs: readonly KubeconfigDefinition[];
  /** Whether the phase that generates the file runs. */
  readonly generates: { readonly certificate: (name: string) => boolean; readonly kubeconfig: (name: string) => boolean };
  /** The host joins an existing cluster. */
  readonly joins?: boolean | undefined;
  /** Files that an earlier phase writes, by path. */
  readonly given?: ReadonlyMap<string, string | SensitiveText>;
  /** Further preflight findings of the workflow. */
  readonly findings?: readonly Finding[];
}

/** The CA directories of the host; those of the local host if the target is a directory without an operating system. */
function caDirectoriesFor(
  { host: { caDirectories } }: ObservedControlPlane,
  { staged, localCaDirectories }: ControlPlaneOptions,
  os: ObservedNode['facts']['os'],
): readonly string[] {
  const isSystem = !staged || os.prettyName !== null || caDirectories.length > 0;
  return isSystem ? caDirectories : (localCaDirectories ?? []);
}

/** The files and checks of a control plane node. */
export interface PreparedControlPlane {
  readonly node: ControlPlaneNode;
  readonly pki: PreparedPki;
  /** Manifest of each component; that of etcd is for the first member of a cluster. */
  readonly manifests: Readonly<Record<StaticPodName, WriteFilesInput>>;
  /** Manifest of a joining etcd member; `members` includes it. The existing manifest of a started member is kept. */
  readonly joiningEtcd: (members: readonly EtcdMember[], hasStarted: boolean) => WriteFilesInput;
  readonly pull: PullImagesInput;
  readonly wait: WaitControlPlaneInput;
  readonly mark: MarkControlPlaneInput;
  readonly timeouts: Required<Timeouts>;
  /** Result of the preflight checks of a control plane. */
  readonly preflight: PreflightVerdict;
  /** Problems of the certificates. */
  readonly refusals: readonly Problem[];
  readonly warnings: readonly Warning[];
}

/**
 * Computes the control plane part of a node: certificates, kubeconfigs, manifests, preflight. Changes nothing.
 * @throws AppError for a patch that cannot be applied; the errors of `preparePki`
 */
export async function prepareControlPlane(
  context: PhaseContext,
  options: ControlPlaneOptions,
  { node: observedNode, observed, cluster, kubeconfigs, generates, given, joins, findings: more = [] }: PrepareControlPlaneInput,
): Promise<PreparedControlPlane> {
  const { registration, facts } = observedNode;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const identity = { cluster, nodeName: registration.name, localAPIEndpoint: observed.localAPIEndpoint };
  const pki = await preparePki(context, {
    joins,
    node: identity,
    kubernetesDir: options.kubeconfigDir ?? KUBERNETES_DIR,
    kubeconfigs,
    generates,
    issuer: options.issuer,
    mayChown: !options.staged,
    given,
  });
  const node: ControlPlaneNode = {
    ...identity,
    timeouts,
    patches: options.staticPodPatches,
    caDirectories: caDirectoriesFor(observed, options, facts.os),
    etcdMembers: null,
    externalCA: pki.externalCA,
    proxyEnvironment: options.proxyEnvironment,
    kubeProxy: options.kubeProxy,
  };
  const inputOf = (name: StaticPodName, etcdMembers: ControlPlaneNode['etcdMembers'] = null): WriteFilesInput =>
    staticPodsInput({ ...node, etcdMembers }, [name], { mayChown: !options.staged });
  const manifests = {
    etcd: startedManifest(inputOf('etcd'), observed),
    'kube-apiserver': inputOf('kube-apiserver'),
    'kube-controller-manager': inputOf('kube-controller-manager'),
    'kube-scheduler': inputOf('kube-scheduler'),
  };
  const findings = options.singlePhase
    ? []
    : controlPlaneFindings({
        host: observed.host,
        ports: facts.ports,
        listenAddresses: listenAddressesOf(node),
        addresses: facts.addresses,
        advertiseAddress: observed.localAPIEndpoint.advertiseAddress,
        bindPort: observed.localAPIEndpoint.bindPort,
        etcdDataDir: hasLocalEtcd(cluster) ? (cluster.etcd.local?.dataDir ?? null) : null,
        manifests: staticPodNames(node).flatMap((name) => manifests[name].files),
        // Downloaded files need not exist yet.
        etcdClientFiles: [...observed.host.files.keys()].filter((path) => given?.has(path) !== true),
        now: context.clock.now().getTime(),
      });
  const args = options.singlePhase ? [] : await componentArguments(cluster, options.configOrigins);
  const { serviceSubnet, podSubnet } = cluster.networking;
  const proxied = options.singlePhase ? [] : proxyOfSubnets([serviceSubnet, podSubnet], options.proxyEnvironment);
  return {
    node,
    pki,
    manifests,
    joiningEtcd: (members, hasStarted) => (hasStarted ? startedManifest(inputOf('etcd', members), observed) : inputOf('etcd', members)),
    pull: {
      images: controlPlaneImages(cluster),
      criSocket: registration.criSocket,
      policy: registration.imagePullPolicy,
      ignored: isIgnored('ImagePull', [options.run, registration]),
    },
    wait: { criSocket: registration.criSocket, timeoutMs: goDurationMs(timeouts.controlPlaneComponentHealthCheck) },
    mark: {
      nodeName: registration.name,
      taints: registration.taints ?? [CONTROL_PLANE_TAINT],
      timeoutMs: goDurationMs(timeouts.kubernetesAPICall),
    },
    timeouts,
    preflight: preflightVerdict(context, options, observedNode, [...findings, ...args, ...proxied, ...more]),
    refusals: pki.problems,
    warnings: [...observed.warnings, ...pki.warnings, ...adviseControlPlane(node)],
  };
}

/** Empty: the release checks its ports on all addresses. */
function listenAddressesOf(node: ControlPlaneNode): ReturnType<typeof listenAddresses> {
  if (releaseFacts(node.cluster.kubernetesVersion).portCheck === 'all-addresses') return new Map();
  const pods = new Map(staticPodNames(node).map((name) => [name, staticPodOf(node, name)]));
  return listenAddresses(pods, node.localAPIEndpoint.bindPort);
}

const ONLY_AT_FIRST = ['--initial-cluster=', '--initial-cluster-state='];

/** The existing manifest, if it differs only in flags that matter at the first start of a member. */
function startedManifest(desired: WriteFilesInput, { host }: ObservedControlPlane): WriteFilesInput {
  const [file] = desired.files;
  return file === undefined ? desired : { ...desired, files: [keepStarted(file, host.manifests.get(manifestPath('etcd'))?.content)] };
}

/**
 * The manifest of an etcd member, with the existing text if it differs only in flags that matter at the first start of a
 * member.
 * @param existing the manifest on the host; undefined: no manifest
 */
export function keepStarted(desired: DesiredFile, existing: string | undefined): DesiredFile {
  if (existing === undefined || typeof desired.content !== 'string') return desired;
  const lasting = (text: string): string =>
    text
      .split('\n')
      .filter((line) => !ONLY_AT_FIRST.some((flag) => line.includes(flag)))
      .join('\n');
  return lasting(existing) === lasting(desired.content) ? { ...desired, content: existing } : desired;
}
