import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import { commitRecord } from '../../host/commit/record.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FactQueries } from '../../host/facts/query.ts';
import { type ClusterContext, type PhaseContext, withCluster } from '../../host/phase.ts';
import type { Workflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { hasPermissionOrUnknown, REQUEST_CERTIFICATE } from '../../kube/has-permission.ts';
import { findMarksRecord } from '../../kube/mark-node.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import { hasMarks, type NodeMarks } from '../../kube/node-marks.ts';
import { isRecorded, type MarksRecord } from '../../kube/node-marks-record.ts';
import type { KubeObject } from '../../kube/object.ts';
import { BOOTSTRAP_CONF, FLAGS_ENV, INSTANCE_CONFIG, KUBELET_CONFIG_FILE, KUBELET_DIR, KUBERNETES_DIR } from '../../kube/well-known.ts';
import { hostFacts } from '../../kubelet/facts/host-facts.ts';
import { machineEvidence } from '../../kubelet/facts/node-evidence.ts';
import { CONFIG_DROP_IN_NAMES } from '../../kubelet/facts/own-config-drop-ins.ts';
import { isReservedLabel } from '../../kubelet/flags/node-labels.ts';
import { kubeletHealth } from '../../kubelet/health/observe.ts';
import { managerStatePaths } from '../../kubelet/workload/manager-states.ts';
import type { BootstrapCredentials } from '../config/bootstrap-credentials.ts';
import { withScheme } from '../config/defaults.ts';
import { validateClaim } from '../node-identity/node-identity.ts';
import { decodeNodeSettings, NODE_SETTINGS_PATH } from '../node-settings/node-settings.ts';
import { kubeletStart } from '../phases/kubelet-start.ts';
import { kubeletWaitBootstrap } from '../phases/kubelet-wait-bootstrap.ts';
import type { OwnNodeCheck } from '../phases/mark-node.ts';
import { isPending, markNode } from '../phases/mark-node.ts';
import { saveStartedNodeSettings } from '../phases/save-node-settings.ts';
import { waitNode } from '../phases/wait-node.ts';
import { findRunningKubelet, joinPreflightFindings } from './join-preflight-findings.ts';
import { type ApiServerTarget, bootstrapFiles, hasIdentity } from './node/bootstrap-files.ts';
import { type ClusterBaseline, readClusterBaseline, unlessForbidden } from './node/cluster-baseline.ts';
import { designObservedNode } from './node/design-observed-node.ts';
import { identifyNode, type NodeTrust, ownNodeCheck } from './node/identify-node.ts';
import type { NodeOptions } from './node/node-options.ts';
import { type ObservedNode, observeNode } from './node/observe-node.ts';
import { NODE_SOURCE_FACTS } from './node/observe-node-source.ts';

export interface JoinOptions extends NodeOptions {
  /** The API server, as soon as it is discovered. */
  readonly apiServer: () => Promise<ApiServerTarget>;
  /** Bootstrap credentials; called only for a host without a usable client certificate. */
  readonly credentials: () => Promise<BootstrapCredentials>;
  /** Cluster-wide settings, if they were read before. */
  readonly baseline?: ClusterBaseline;
  readonly caCertPath: string;
  readonly controlPlane: boolean;
  readonly tlsBootstrapMs: number;
  /** The name of an existing Node that is not Ready may be reused. */
  readonly takeOver: boolean;
  /** Applied labels and taints are recorded in the cluster, and recorded ones no longer declared are removed (fleet). */
  readonly removesMarks?: boolean;
  /** Timeout for the Node to become Ready; null: do not wait. */
  readonly waitReadyMs: number | null;
  /** Connected with an administrator's credentials, if given. */
  readonly admin: Cluster | null;
  /** Identifies the Nodes of hosts with the administrator's credentials; null: none were given. */
  readonly trust: NodeTrust | null;
}

export type JoinInput = Awaited<ReturnType<typeof prepareJoin>>['input'];

/** Phases of a control plane, which a configuration or a command line for kubeadm may skip. @see kubeadm 1.36 join --help */
const CONTROL_PLANE_PHASES = [
  'control-plane-prepare',
  ...['download-certs', 'certs', 'kubeconfig', 'control-plane'].map((name) => `control-plane-prepare/${name}`),
  'check-etcd',
  'etcd-join',
  'control-plane-join',
  'control-plane-join/etcd',
  'control-plane-join/mark-control-plane',
  'wait-control-plane',
];

/** Joins a worker: reads the cluster's configuration with the given credentials, then configures and starts the kubelet. */
export const joinWorkflow: Workflow<JoinOptions, JoinInput> = {
  name: 'join',
  absentPhases: CONTROL_PLANE_PHASES,
  phases: [
    kubeletStart.select((input) => input.kubeletStart),
    saveStartedNodeSettings.select((input) => input.save),
    kubeletWaitBootstrap.select((input) => input.waitBootstrap),
    waitNode.select((input) => input.waitNode),
    markNode.select((input) => input.markNode),
  ],
  queries: joinQueries,
  prepare: withCluster((context, options: JoinOptions) => prepareJoin(context, options)),
};

/** Facts that only these phases query. */
const JOIN_FILES = [KUBERNETES_DIR, BOOTSTRAP_CONF, KUBELET_DIR, KUBELET_CONFIG_FILE, INSTANCE_CONFIG, FLAGS_ENV, NODE_SETTINGS_PATH];
/** The kubelet's default healthz endpoint. */
const USUAL_HEALTHZ = 'http://127.0.0.1:10248/healthz';
const JOIN_FACTS = combineFacts({
  files: fileFacts(JOIN_FILES),
  configDropIns: CONFIG_DROP_IN_NAMES,
  health: kubeletHealth(USUAL_HEALTHZ),
  commit: commitRecord,
  states: fileFacts(managerStatePaths(KUBELET_DIR)),
});

/** The queries that every join needs, for the first round trip. */
export function joinQueries({ nodeRegistration: { criSocket }, caCertPath, groups }: JoinOptions): FactQueries {
  return groups.queriesOf(['join', criSocket, caCertPath], () => {
    const { queries } = hostFacts(criSocket === undefined ? null : withScheme(criSocket));
    return { ...queries, ...JOIN_FACTS.queries, ...NODE_SOURCE_FACTS.queries, ...fileFacts([caCertPath]).queries };
  });
}

/**
 * Computes the input of all phases of a joining node; changes nothing.
 * @param observed the host, if it was observed before; with the options of `withoutReservedLabels`
 * @throws AppError as `designObservedNode` and `readClusterBaseline`
 */
export async function prepareJoin(context: ClusterContext, options: JoinOptions, observed?: ObservedNode) {
  const { cluster } = context;
  const { options: own, labels } = withoutReservedLabels(options);
  const [node, { baseline, apiServer, mayBootstrap }] = await Promise.all([
    observed ?? observeNode(context, own),
    readCluster(cluster, options),
  ]);
  const nodeOfSameName = await findNodeOfSameName(node, cluster);
  const otherHost = hasIdentity(node.facts) ? null : await otherHostOf(context, options.admin ?? cluster, node, nodeOfSameName);
  const { design, start, save, warnings, refusals } = await designObservedNode(context, own, {
    node,
    cluster: baseline.layered,
    clusterIsDeclared: false,
    controlPlaneMinor: baseline.controlPlaneMinor,
    registerWithTaints: options.controlPlane ? [] : (node.registration.taints ?? []),
    serviceSubnets: baseline.serviceSubnets,
    featureGates: baseline.featureGates,
    imageRepository: baseline.imageRepository,
    podsOf: options.admin ?? cluster,
    drainedBy: cluster,
    written: [options.caCertPath],
    checksClock: !options.controlPlane && !hasIdentity(node.facts),
    findings: joinPreflightFindings(node, {
      ...apiServer,
      mayBootstrap,
      caCertPath: options.caCertPath,
      nodeOfSameName,
      otherHost,
      nameHint: nameHintOf(options),
      takeOver: options.takeOver,
    }),
  });
  const { name: nodeName } = node.registration;
  const marked = await observeMarks(context, options, { node, nodeOfSameName, labels });
  const token = hasIdentity(node.facts) ? null : await options.credentials();
  const target = { ...apiServer, clusterName: baseline.clusterName, caPath: options.caCertPath, token };
  return {
    input: {
      kubeletStart: { ...start, credentials: bootstrapFiles(options.templates, target) },
      save,
      waitBootstrap: { timeoutMs: options.tlsBootstrapMs, nodeName },
      waitNode: {
        nodeName,
        timeoutMs: options.tlsBootstrapMs,
        readyMs: options.waitReadyMs,
        probeImage: start.verification?.probeImage,
        admin: options.admin,
      },
      markNode: { nodeName, ...marked.input, admin: options.admin },
    },
    warnings: [...baseline.warnings, ...warnings],
    refusals: [...refusals, ...marked.refusals],
    node: { nodeName, isProven: false, machineId: null },
    isDown: nodeOfSameName !== null && !isNodeReady(nodeOfSameName),
    origins: design.origins,
    own: ownWords(node),
  };
}

/** How to give a host another name. Only a run over a fleet file removes marks. */
function nameHintOf({ removesMarks = false }: JoinOptions): string {
  return removesMarks ? 'set nodeName of the host in the fleet file' : 'give the host another name with --node-name';
}

/**
 * The labels and taints that an administrator sets on the Node, and those that are removed.
 * @param observed.labels the reserved ones
 */
async function observeMarks(
  context: PhaseContext,
  options: JoinOptions,
  { labels, ...observed }: Pick<IdentifyToMark, 'node' | 'nodeOfSameName'> & { readonly labels: NodeMarks['labels'] },
) {
  const { controlPlane, removesMarks = false } = options;
  const { taints = [], kubeletExtraArgs } = observed.node.registration;
  // A flag replaces the taints, with a warning of the configuration: the Node never gets them.
  const hasFlag = kubeletExtraArgs.some(({ name }) => name === 'register-with-taints');
  const marks = { labels, taints: controlPlane || hasFlag ? [] : taints };
  const removal = removesMarks && !controlPlane ? await findRemoval(context, options, { ...observed, marks }) : null;
  const { check, refusals } = await identifyToMark(context, options, { ...observed, marks, removal });
  return { input: { ...marks, saved: removal?.saved ?? null, check }, refusals };
}

/**
 * Why a Node is of another host, or may be; null: it is of this host, or does not exist. The host itself reports its
 * machine-id and addresses, so the kubelet of a Ready Node must have stopped too.
 */
async function otherHostOf(
  context: ClusterContext,
  reader: Cluster,
  { facts }: ObservedNode,
  node: KubeObject | null,
): Promise<string | null> {
  if (node === null) return null;
  const { host, signal } = context;
  const evidence = await observe(host, machineEvidence, signal);
  const claim = { nodeName: node.metadata.name, isProven: false, machineId: evidence.machineId };
  const [mismatch] = validateClaim(host.name, { claim, evidence, node, needsAddresses: true });
  if (mismatch !== undefined || facts.identity.state !== 'missing' || !isNodeReady(node)) return mismatch?.message ?? null;
  return findRunningKubelet(context, reader, node);
}

/** The facts of the cluster that do not depend on the host. */
async function readCluster(
  cluster: Cluster,
  options: JoinOptions,
): Promise<{ readonly apiServer: ApiServerTarget; readonly baseline: ClusterBaseline; readonly mayBootstrap: boolean }> {
  const apiServer = await options.apiServer();
  const baseline = options.baseline ?? (await readClusterBaseline(cluster, options.catalogue).catch(explainForbidden));
  const mayBootstrap = options.staged || (await hasPermissionOrUnknown(cluster, REQUEST_CERTIFICATE));
  return { apiServer, baseline, mayBootstrap };
}

/** The bootstrap token may read the ConfigMap after `init` has created its RBAC rules. */
function explainForbidden(error: unknown): never {
  if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
  const hint =
    'If neither kubeadm nor kubeletadm has initialized this cluster, run kubeletadm cluster adopt --kubeconfig admin.conf first. Otherwise create a token with kubeletadm token create';
  throw new AppError(
    error.problems.map((problem) => ({ ...problem, hint })),
    { exitCode: error.exitCode, cause: error },
  );
}

/**
 * Identifies the Node before an administrator's labels and taints are applied to it: now for a host that has joined,
 * otherwise after the kubelet has got its certificate in this run.
 */
async function identifyToMark(
  context: PhaseContext,
  { admin, trust, nodeRegistration }: JoinOptions,
  { node, nodeOfSameName, marks, removal }: IdentifyToMark,
): Promise<{ readonly check: OwnNodeCheck | null; readonly refusals: readonly Problem[] }> {
  if (admin === null || trust === null) return { check: null, refusals: [] };
  const { name } = node.registration;
  const desired = { trust, named: nodeRegistration.name ?? null, expected: name };
  const later = { check: ownNodeCheck(desired), refusals: [] };
  if ((!hasMarks(marks) && removal === null) || !hasIdentity(node.facts)) return later;
  const found = admin === context.cluster ? nodeOfSameName : await unlessForbidden(admin.get({ apiVersion: 'v1', kind: 'Node', name }));
  if (found === null || !isPending({ node: found, record: removal?.record ?? null }, marks)) return later;
  const { refusals } = await identifyNode({ ...context, cluster: admin }, desired);
  return { check: null, refusals };
}

interface IdentifyToMark {
  readonly node: ObservedNode;
  readonly nodeOfSameName: KubeObject | null;
  readonly marks: NodeMarks;
  /** Null: labels and taints are only added. */
  readonly removal: Removal | null;
}

/** Labels and taints that earlier runs applied. */
interface Removal {
  /** Recorded in the cluster; null: the Node does not exist, or no administrator's credentials were given. */
  readonly record: MarksRecord | null;
  /** Saved on the host; used in warnings only. */
  readonly saved: NodeMarks;
}

/**
 * Finds the labels and taints that earlier runs applied to a Node.
 * @returns null: none are declared or known, so the Node need not be read again
 */
async function findRemoval(
  { host, signal }: PhaseContext,
  { admin }: JoinOptions,
  { nodeOfSameName, marks }: Pick<IdentifyToMark, 'nodeOfSameName' | 'marks'>,
): Promise<Removal | null> {
  const text = (await observe(host, fileFacts([NODE_SETTINGS_PATH]), signal)).get(NODE_SETTINGS_PATH)?.content ?? null;
  const saved = text === null ? NO_MARKS : marksIn(text);
  const record = admin === null || nodeOfSameName === null ? null : await unlessForbidden(findMarksRecord(admin, nodeOfSameName));
  const isKnown = hasMarks(marks) || hasMarks(saved) || (record !== null && !isRecorded(record, NO_MARKS));
  return isKnown ? { record, saved } : null;
}

const NO_MARKS: NodeMarks = { labels: {}, taints: [] };

/** Treats an invalid settings file as empty: this run writes it again. */
function marksIn(nodeSettings: string): NodeMarks {
  try {
    const { kubeletExtraArgs = [], taints = [] } = decodeNodeSettings(nodeSettings).nodeRegistration;
    return { labels: labelsOf(kubeletExtraArgs), taints };
  } catch (error) {
    if (isAppError(error, 'NODE_MEMORY_INVALID')) return NO_MARKS;
    throw error;
  }
}

function ownWords({ registration }: ObservedNode): Readonly<Record<string, string>> {
  const nodeIP = registration.kubeletExtraArgs.findLast(({ name }) => name === 'node-ip')?.value;
  return { node: registration.name, ...(nodeIP === undefined ? {} : { 'node-ip': nodeIP }) };
}

/**
 * Separates reserved labels: an administrator sets them on the Node, and they are removed from the kubelet's flags
 * because the kubelet would not start with them. Without an administrator they stay and preflight refuses them.
 */
export function withoutReservedLabels(options: JoinOptions): {
  readonly options: JoinOptions;
  readonly labels: Readonly<Record<string, string>>;
} {
  const { kubeletExtraArgs = [] } = options.nodeRegistration;
  const labels = labelsOf(kubeletExtraArgs);
  if (options.admin === null) return { options, labels };
  const flags = kubeletExtraArgs.flatMap((arg) => {
    if (arg.name !== 'node-labels') return [arg];
    const own = labelPairs(arg.value).filter((pair) => !isReservedLabel(pair.slice(0, pair.indexOf('='))));
    return own.length === 0 ? [] : [{ ...arg, value: own.join(',') }];
  });
  return { options: { ...options, nodeRegistration: { ...options.nodeRegistration, kubeletExtraArgs: flags } }, labels };
}

function labelsOf(args: readonly { readonly name: string; readonly value: string }[]): Readonly<Record<string, string>> {
  const declared = args.filter(({ name }) => name === 'node-labels').flatMap(({ value }) => labelPairs(value));
  return Object.fromEntries(declared.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}

function labelPairs(value: string): readonly string[] {
  return value.split(',').filter((pair) => pair.includes('='));
}

/** The existing Node of the same name; null if the credentials may not read Nodes (kubeadm's bootstrap tokens may). */
async function findNodeOfSameName({ registration }: ObservedNode, cluster: Cluster): Promise<KubeObject | null> {
  return unlessForbidden(cluster.get({ apiVersion: 'v1', kind: 'Node', name: registration.name }));
}
