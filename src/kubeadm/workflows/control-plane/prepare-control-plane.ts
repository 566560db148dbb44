import { aboutHost, type Problem } from '../../../base/errors.ts';
import { goDurationMs } from '../../../base/text/go-duration.ts';
import type { SensitiveText } from '../../../base/text/secret.ts';
import type { SourceDocument } from '../../../codec/source.ts';
import type { DefaultRoute } from '../../../host/facts/default-route.ts';
import { observe } from '../../../host/observe.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import { KUBERNETES_DIR } from '../../../kube/well-known.ts';
import type { PlannedPatch } from '../../../kubelet/patch-files.ts';
import type { CertificateIssuer } from '../../../x509/certificate-issuer.ts';
import { applyEndpointDefaults, CONTROL_PLANE_TAINT, DEFAULT_TIMEOUTS, type DefaultedCluster } from '../../config/defaults.ts';
import { type ApiEndpoint, argValue, type EnvVar, type Timeouts } from '../../config/model.ts';
import { adviseControlPlane } from '../../control-plane/advise.ts';
import { type ComponentEndpoint, componentEndpoints } from '../../control-plane/component-endpoints.ts';
import { controlPlaneImages } from '../../control-plane/images.ts';
import { staticPodNames, staticPodOf } from '../../control-plane/manifests.ts';
import { type ControlPlaneNode, type EtcdMember, hasLocalEtcd } from '../../control-plane/model.ts';
import { type HostCaDirectory, manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { type ControlPlaneHost, controlPlaneHost } from '../../facts/control-plane-host.ts';
import type { PullImagesInput } from '../../phases/pull-images.ts';
import { staticPodsInput } from '../../phases/static-pods.ts';
import type { WaitControlPlaneInput } from '../../phases/wait-control-plane.ts';
import type { WriteFilesInput } from '../../phases/write-files.ts';
import type { KubeconfigDefinition } from '../../pki/kubeconfig-list.ts';
import type { Finding } from '../../preflight/check.ts';
import { controlPlaneFindings } from '../../preflight/control-plane-checks.ts';
import type { NodeOptions } from '../node-options.ts';
import type { ObservedNode } from '../observe-node.ts';
import { type PreparedPki, preparePki } from '../prepare-pki.ts';

/** What is declared for a control-plane node, by init and join alike. */
export interface ControlPlaneOptions extends NodeOptions {
  readonly localAPIEndpoint: ApiEndpoint;
  /** The API server is advertised at the node's IP. Default: at the address of the default route, as with kubeadm. */
  readonly advertisesNodeIP?: boolean;
  readonly timeouts: Timeouts;
  /** Of all targets but the kubelet's configuration. */
  readonly staticPodPatches: readonly PlannedPatch[];
  /** The KubeProxyConfiguration, when the user gave one. */
  readonly kubeProxy: SourceDocument | null;
  /** Variables whose names end in `_proxy` that the components are to have. */
  readonly proxyEnvironment: readonly EnvVar[];
  readonly issuer: CertificateIssuer;
  /** Taken where files are staged into a directory, whose routes nobody knows: those of this machine. */
  readonly routeHere: DefaultRoute;
  /** The directories of authorities of this machine: a directory that is no system tree gets what it has. */
  readonly caDirectoriesHere?: readonly HostCaDirectory[];
  /** Whether a phase is going to run. */
  readonly selects: (phase: string) => boolean;
}

/** The host as a control plane, and where its API server listens. */
export interface ObservedControlPlane {
  readonly host: ControlPlaneHost;
  readonly warnings: readonly Warning[];
  readonly localAPIEndpoint: Required<ApiEndpoint>;
}

/** Phases that need no address of the API server. */
const KUBELET_PHASES = /^(?:preflight|kubelet-start)(?:\/|$)/;

/**
 * Looks at a host that is to be a control plane.
 * @param phases of the workflow, by name: with those of the kubelet alone an address may be undecided
 * @throws AppError CONFIG_NO_ADDRESS
 */
export async function observeControlPlane(
  context: PhaseContext,
  options: ControlPlaneOptions,
  { etcd, phases }: { readonly etcd: DefaultedCluster['etcd']; readonly phases: readonly string[] },
): Promise<ObservedControlPlane> {
  const { external, local } = etcd;
  const files = [external?.caFile, external?.certFile, external?.keyFile].filter((path) => path !== undefined && path !== '');
  const facts = controlPlaneHost(external === undefined ? (local?.dataDir ?? null) : null, files as readonly string[]);
  const host = await observe(context.host, facts, context.signal);
  const isNeeded = phases.some((phase) => options.selects(phase) && !KUBELET_PHASES.test(phase));
  const known = options.staged ? options.routeHere : host.route;
  const defaultRoute = isNeeded || known.ipv4 !== undefined ? known : { ...known, ipv4: '127.0.0.1' };
  const localAPIEndpoint = aboutHost(context.host.name, () => applyEndpointDefaults(options.localAPIEndpoint, { defaultRoute }));
  const isGuessed = isNeeded && options.staged && options.localAPIEndpoint.advertiseAddress === undefined;
  const { advertiseAddress } = localAPIEndpoint;
  const message = `the API server is to be advertised at ${advertiseAddress}, an address of this machine: no other was given (--apiserver-advertise-address)`;
  return { host, localAPIEndpoint, warnings: isGuessed ? [{ code: 'AdvertiseAddress', message }] : [] };
}

/** With the IP that was declared for the node as the address of its API server, where that is wanted and no other was declared. */
export function advertised<Options extends ControlPlaneOptions>(options: Options, { registration }: ObservedNode): Options {
  const [nodeIP] = (argValue(registration.kubeletExtraArgs, 'node-ip') ?? '').split(',');
  const { localAPIEndpoint } = options;
  if (options.advertisesNodeIP !== true || !nodeIP || localAPIEndpoint.advertiseAddress !== undefined) return options;
  return { ...options, localAPIEndpoint: { ...localAPIEndpoint, advertiseAddress: nodeIP } };
}

export interface PrepareControlPlaneInput {
  readonly node: ObservedNode;
  readonly observed: ObservedControlPlane;
  readonly cluster: DefaultedCluster;
  readonly kubeconfigs: readonly KubeconfigDefinition[];
  /** Whether the phase that makes it runs. */
  readonly makes: { readonly certificate: (name: string) => boolean; readonly kubeconfig: (name: string) => boolean };
  /** It is one more of a cluster that is there. */
  readonly joins?: boolean;
  /** Files that will be there before, by path. */
  readonly given?: ReadonlyMap<string, string | SensitiveText>;
  /** The phase that writes the manifest of a component. */
  readonly manifestPhase: (name: ComponentEndpoint['name']) => string;
}

/** Files for a host nobody can look at are made for one like this machine. */
function caDirectoriesFor(
  { host: { caDirectories } }: ObservedControlPlane,
  { staged, caDirectoriesHere }: ControlPlaneOptions,
  os: ObservedNode['facts']['os'],
): readonly HostCaDirectory[] {
  const isSystem = !staged || os.prettyName !== null || caDirectories.length > 0;
  return isSystem ? caDirectories : (caDirectoriesHere ?? []);
}

/** A control-plane node with everything decided. */
export interface PreparedControlPlane {
  readonly node: ControlPlaneNode;
  readonly pki: PreparedPki;
  /** Of each component; that of etcd is one of a cluster's first member. */
  readonly manifests: Readonly<Record<StaticPodName, WriteFilesInput>>;
  /** Of a member of etcd that joins: with it these are all. Of one that has started what is there is kept. */
  readonly joiningEtcd: (members: readonly EtcdMember[], hasStarted: boolean) => WriteFilesInput;
  readonly pull: PullImagesInput;
  readonly wait: WaitControlPlaneInput;
  readonly timeouts: Required<Timeouts>;
  readonly findings: readonly Finding[];
  readonly refusals: readonly Problem[];
  readonly warnings: readonly Warning[];
}

/**
 * Decides everything that is to be on a control-plane node besides what any node has; changes nothing.
 * @throws AppError: a patch that does not apply, what `preparePki` throws
 */
export async function prepareControlPlane(
  context: PhaseContext,
  options: ControlPlaneOptions,
  { node: observedNode, observed, cluster, kubeconfigs, makes, given, manifestPhase, joins }: PrepareControlPlaneInput,
): Promise<PreparedControlPlane> {
  const { registration, facts } = observedNode;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const identity = { cluster, nodeName: registration.name, localAPIEndpoint: observed.localAPIEndpoint };
  const pki = await preparePki(context, {
    ...(joins === undefined ? {} : { joins }),
    node: identity,
    kubernetesDir: KUBERNETES_DIR,
    kubeconfigs,
    makes,
    issuer: options.issuer,
    mayChown: !options.staged,
    ...(given === undefined ? {} : { given }),
  });
  const node: ControlPlaneNode = {
    ...identity,
    taints: registration.taints ?? [CONTROL_PLANE_TAINT],
    imagePullPolicy: registration.imagePullPolicy,
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
  const dataDir = hasLocalEtcd(cluster) ? (cluster.etcd.local?.dataDir ?? null) : null;
  return {
    node,
    pki,
    manifests,
    joiningEtcd: (members, hasStarted) => (hasStarted ? startedManifest(inputOf('etcd', members), observed) : inputOf('etcd', members)),
    pull: {
      images: controlPlaneImages(cluster),
      criSocket: registration.criSocket,
      policy: registration.imagePullPolicy,
      ignored: [...options.ignorePreflightErrors, ...registration.ignorePreflightErrors].some((id) => /^(?:ImagePull|all)$/i.test(id)),
    },
    wait: {
      // What nobody starts is not waited for.
      components: endpointsOf(node).filter(
        ({ name }) => options.selects(manifestPhase(name)) || (observed.host.manifests.get(manifestPath(name)) ?? null) !== null,
      ),
      criSocket: registration.criSocket,
      timeoutMs: goDurationMs(timeouts.controlPlaneComponentHealthCheck),
    },
    timeouts,
    findings: controlPlaneFindings({
      host: observed.host,
      ports: facts.ports,
      addresses: facts.addresses,
      advertiseAddress: observed.localAPIEndpoint.advertiseAddress,
      bindPort: observed.localAPIEndpoint.bindPort,
      etcdDataDir: dataDir,
      manifests: staticPodNames(node).flatMap((name) => manifests[name].files),
      // What is downloaded need not be there yet.
      etcdClientFiles: [...observed.host.files.keys()].filter((path) => given?.has(path) !== true),
      now: context.clock.now().getTime(),
    }),
    refusals: pki.problems,
    warnings: [...observed.warnings, ...pki.warnings, ...adviseControlPlane(node)],
  };
}

function endpointsOf(node: ControlPlaneNode): readonly ComponentEndpoint[] {
  return componentEndpoints((name) => staticPodOf(node, name), node.localAPIEndpoint.advertiseAddress);
}

const ONLY_AT_FIRST = ['--initial-cluster=', '--initial-cluster-state='];

/** The manifest as it is on the host, where it differs in nothing but what counts at the very first start of a member. */
function startedManifest(desired: WriteFilesInput, { host }: ObservedControlPlane): WriteFilesInput {
  const [file] = desired.files;
  const existing = host.manifests.get(manifestPath('etcd'))?.content;
  if (file === undefined || existing === undefined || typeof file.content !== 'string') return desired;
  const lasting = (text: string): string =>
    text
      .split('\n')
      .filter((line) => !ONLY_AT_FIRST.some((flag) => line.includes(flag)))
      .join('\n');
  return lasting(existing) === lasting(file.content) ? { ...desired, files: [{ ...file, content: existing }] } : desired;
}
