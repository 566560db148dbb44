import { usageError } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import type { Warning } from '../../host/plan/change.ts';
import { isSinglePhase } from '../../host/run-settings.ts';
import { type PlanOnHost, planWorkflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { clusterWhenFound } from '../../kube/cluster-when-found.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import { DEFAULT_CA_CERT_PATH } from '../../kubeadm/config/defaults.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeJoinFlags } from '../../kubeadm/config/flags.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import type { JoinConfiguration, NodeRegistration } from '../../kubeadm/config/model.ts';
import { httpProxyWarning } from '../../kubeadm/preflight/http-proxy.ts';
import { findHostWithApiServerAccess } from '../../kubeadm/use-cases/api-server-access.ts';
import { discover, serverToJoin } from '../../kubeadm/use-cases/discover.ts';
import { checksOf } from '../../kubeadm/use-cases/init-phases.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { durationMs, type NodeRequest, readNodeOptions } from '../../kubeadm/use-cases/node-options.ts';
import {
  isKubeconfigGiven,
  type KubeconfigRequest,
  type OpenedCluster,
  openCluster,
  operatorNodeTrust,
} from '../../kubeadm/use-cases/open-cluster.ts';
import type { DiscoveredCluster } from '../../kubeadm/workflows/discovery/discover-cluster.ts';
import { type JoinOptions, joinWorkflow } from '../../kubeadm/workflows/join.ts';
import type { NodeTrust } from '../../kubeadm/workflows/node/identify-node.ts';
import { joinWaitWorkflow, onlyWaits, WAIT_PHASES } from '../../kubeadm/workflows/wait-on-host.ts';
import type { HostTarget } from '../host-target.ts';
import { connectionsTo, type NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface JoinRequest extends HostsSettings {
  /** `ADDRESS:PORT` of the API server. */
  readonly endpoint: string | undefined;
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the document of the file. */
  readonly flags: Flags;
  /** The file of `--ca-cert`. */
  readonly caFile: string | undefined;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
  readonly node: NodeRequest;
  readonly takeOver: boolean;
  /** How long to wait for the Node to be Ready; null: not at all. */
  readonly waitReadyMs: number | null;
}

/**
 * Prepares `join` and `join phase NAME...`.
 * @throws AppError: problems of the configuration, all at once (exit code 2); errors of the discovery
 */
export async function openJoin(
  services: NodeCommandPorts,
  request: JoinRequest,
  scope: CommandScope,
): Promise<HostsCommand & { readonly joins: 'worker' | 'control-plane' }> {
  const { hosts } = request;
  const { reporter } = scope;
  const config = await readJoinConfig(services, request);
  const warnings = requireValid(config);
  const document = config.join ?? {};
  const targets = await readHostTargets(services, hosts);
  const node = await readNodeOptions(services, {
    config,
    kind: 'join',
    node: request.node,
    run: request.run,
    staged: hosts.rootDir !== undefined,
    reporter,
  });
  if (targets.length > 1) rejectNodeSpecificSettings(node.nodeRegistration);
  const { run } = node;
  if (onlyWaits(request.run)) {
    const { timeouts = {} } = document;
    const planHost: PlanOnHost = (context, own) => planWorkflow(joinWaitWorkflow, context, { ...node, timeouts }, own);
    return { targets, run, cluster: null, planHost, warnings, joins: 'worker' };
  }
  const { discovered, cluster, admin, trust, proxied } = await openAccess(services, { ...request, document, targets, scope });
  const workflowOptions: JoinOptions = {
    ...node,
    ...checksOf(joinWorkflow, run),
    apiServer: async () => (await discovered).apiServer,
    credentials: async () => (await discovered).credentials,
    caCertPath: document.caCertPath ?? DEFAULT_CA_CERT_PATH,
    controlPlane: document.controlPlane !== undefined,
    tlsBootstrapMs: durationMs(document.timeouts?.tlsBootstrap, 300_000),
    takeOver: request.takeOver,
    waitReadyMs: request.waitReadyMs,
    admin,
    trust,
  };
  const command = { targets, run, cluster, inspectsFirst: true, warnings: [...warnings, ...(proxied === null ? [] : [proxied])] };
  if (document.controlPlane === undefined)
    return { ...command, planHost: (context, own) => planWorkflow(joinWorkflow, context, workflowOptions, own), joins: 'worker' };
  const { joinControlPlanePlanner } = await import('./open-join-control-plane.ts');
  const input = { node, targets, document, join: workflowOptions };
  return { ...command, planHost: await joinControlPlanePlanner(services, input, scope.opened), joins: 'control-plane' };
}

/** Phases for which kubeadm has no options of discovery: it reads the cluster with the host's admin.conf. */
const ADMIN_PHASES = ['control-plane-prepare/control-plane', 'etcd-join', 'control-plane-join', ...WAIT_PHASES];

/**
 * The configuration of a join. A phase of a control plane on the local host uses its admin.conf, as in kubeadm, unless
 * discovery is configured.
 */
async function readJoinConfig(services: NodeCommandPorts, request: JoinRequest): Promise<LoadedConfig> {
  const { endpoint, caFile, flags, hosts } = request;
  const loaded = await loadConfigFile(services, request.config, ['JoinConfiguration', 'KubeletConfiguration']);
  const isDeclared = loaded.join?.discovery !== undefined || endpoint !== undefined || 'discovery-file' in flags;
  const isLocal = hosts.addresses.length === 0 || onlyWaits(request.run);
  const usesAdminConf = !isDeclared && isLocal && isSinglePhase(request.run, ADMIN_PHASES);
  return mergeJoinFlags(loaded, {
    ...flags,
    // The CA certificate makes a pin redundant.
    ...(caFile === undefined ? {} : { 'discovery-token-unsafe-skip-ca-verification': true }),
    ...(endpoint === undefined ? {} : { 'api-server-endpoint': endpoint }),
    ...(usesAdminConf ? { 'discovery-file': ADMIN_CONF } : {}),
  });
}

/** The cluster to join, and further connections to it. */
interface JoinAccess {
  /** For one host, the host is inspected while the cluster is discovered. */
  readonly discovered: Promise<DiscoveredCluster>;
  /** Its requests wait for the discovery. */
  readonly cluster: Cluster;
  readonly admin: Cluster | null;
  /** Maps a host to its Node, with the administrator's credentials. */
  readonly trust: NodeTrust | null;
  /** The proxy of the environment for requests to the API server. */
  readonly proxied: Warning | null;
}

interface JoinAccessInput extends Pick<JoinRequest, 'cluster' | 'caFile'> {
  readonly document: JoinConfiguration;
  readonly targets: readonly HostTarget[];
  readonly scope: CommandScope;
}

/**
 * Discovers the cluster from the local host, or through a joining host that reaches it when the local host
 * does not. With several hosts, no host is connected before the cluster was discovered.
 */
async function openAccess(
  services: NodeCommandPorts,
  { document, cluster, caFile, targets, scope: { reporter, opened } }: JoinAccessInput,
): Promise<JoinAccess> {
  const forOthers = targets.some(({ address, member }) => address !== undefined || member !== undefined);
  const server = await serverToJoin(services, document);
  const probe = server === null ? null : { server, trust: { kind: 'unverified' } as const };
  const from = probe && (await findHostWithApiServerAccess(services, { probe, hosts: connectionsTo(services, targets), reporter }));
  if (from !== null) opened(from);
  const named = await openAdmin(services, { request: cluster, from, reporter });
  const admin = named?.cluster ?? null;
  if (admin !== null) opened(admin);
  const trust = named === null ? null : operatorNodeTrust(services, named);
  const stop = new AbortController();
  const ports = { ...services, signal: AbortSignal.any([services.signal, stop.signal]) };
  const discovered = discover(ports, { join: document, caFile, forOthers, from, reporter });
  const found = discovered.then(({ cluster }) => cluster);
  opened({
    close: async () => {
      stop.abort();
      const joined = await found.catch(() => null);
      await joined?.close();
    },
  });
  if (targets.length > 1) await discovered;
  const proxied = server === null || from !== null ? null : httpProxyWarning(server, services.env);
  return { discovered, cluster: clusterWhenFound(server ?? '', found), admin, trust, proxied };
}

/**
 * Administrator credentials, only when configured explicitly: KUBECONFIG often names a cluster other than the
 * one to join.
 */
async function openAdmin(
  services: NodeCommandPorts,
  { request, from, reporter }: { readonly request: KubeconfigRequest; readonly from: Host | null } & Pick<CommandScope, 'reporter'>,
): Promise<OpenedCluster | null> {
  if (!isKubeconfigGiven(request)) return null;
  return openCluster(services, request, { writes: reporter, from: from ?? undefined });
}

/** Settings that are unique to one node: two nodes with the same name would overwrite each other's Node. */
function rejectNodeSpecificSettings({ name, kubeletExtraArgs = [] }: NodeRegistration): void {
  const own = [
    ...(name === undefined ? [] : ['node name (nodeRegistration.name, --node-name)']),
    ...(kubeletExtraArgs.some((arg) => arg.name === 'node-ip') ? ['node IP (node-ip, --node-ip)'] : []),
    ...(kubeletExtraArgs.some((arg) => arg.name === 'hostname-override') ? ['hostname-override'] : []),
  ];
  if (own.length === 0) return;
  throw usageError(`several hosts cannot have the same ${own.join(' and ')}`, 'Join the hosts one by one, or omit the setting');
}
