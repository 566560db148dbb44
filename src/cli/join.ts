import { type ExitCode, usageError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import type { Host } from '../host/host.ts';
import type { Warning } from '../host/plan/change.ts';
import type { Cluster } from '../kube/cluster.ts';
import { DEFAULT_CA_CERT_PATH } from '../kubeadm/config/defaults.ts';
import { mergeJoinFlags } from '../kubeadm/config/flags.ts';
import type { JoinConfiguration, NodeRegistration } from '../kubeadm/config/model.ts';
import { httpProxyWarning } from '../kubeadm/preflight/http-proxy.ts';
import type { DiscoveredCluster } from '../kubeadm/workflows/discovery/discover-cluster.ts';
import type { NodeTrust } from '../kubeadm/workflows/identify-node.ts';
import { type JoinOptions, joinWorkflow } from '../kubeadm/workflows/join.ts';
import type { CommandOptions } from './command.ts';
import { discover, serverToJoin } from './discover.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { hostNearApiServer } from './near-api-server.ts';
import { durationMs, readNodeOptions } from './node-options.ts';
import { type OpenedCluster, openCluster } from './open-cluster.ts';
import { phaseName } from './phase-name.ts';
import { flagText, isKubeconfigGiven, kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { trustOf } from './trust-of.ts';

/** `join [ADDRESS:PORT]`. */
export async function runJoin(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  return join(services, args[0], options);
}

/** `join phase NAME... [ADDRESS:PORT]`. No phase has a colon in its name, and no address is without. */
export async function runJoinPhase(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const last = args.at(-1);
  const endpoint = last?.includes(':') ? last : undefined;
  return join(services, endpoint, options, phaseName(args.slice(0, endpoint === undefined ? undefined : -1)) ?? '');
}

async function join(services: Services, endpoint: string | undefined, options: CommandOptions, onlyPhase?: string): Promise<ExitCode> {
  const loaded = await loadConfigFile(services, options, ['JoinConfiguration', 'KubeletConfiguration']);
  const caCert = flagText(options, 'caCert');
  if (caCert !== undefined && flagText(options, 'discoveryFile') !== undefined)
    throw usageError('--ca-cert and --discovery-file exclude each other', 'A discovery file has the CA in it: leave --ca-cert out');
  // The CA itself says more than a pin of it.
  const trust = caCert === undefined ? {} : { 'discovery-token-unsafe-skip-ca-verification': true };
  const config = mergeJoinFlags(loaded, {
    ...kubeadmFlags(options),
    ...trust,
    ...(endpoint === undefined ? {} : { 'api-server-endpoint': endpoint }),
  });
  const warnings = requireValid(config);
  const document = config.join ?? {};
  const targets = await readHostTargets(services, options);
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const node = await readNodeOptions(services, { config, kind: 'join', options, reporter });
  if (targets.length > 1) refuseOneNodesOwn(node.nodeRegistration);
  const access = await openAccess(services, { document, options, caFile: caCert, targets, reporter });
  const { cluster, apiServer, credentials, admin, proxied } = access;
  const workflowOptions: JoinOptions = {
    ...node,
    apiServer,
    credentials: async () => credentials,
    caCertPath: document.caCertPath ?? DEFAULT_CA_CERT_PATH,
    controlPlane: document.controlPlane !== undefined,
    tlsBootstrapMs: durationMs(document.timeouts?.tlsBootstrap, 300_000),
    takeOver: options.takeOver === true,
    waitReadyMs: waitReadyMs(options),
    admin,
    trust: access.trust,
  };
  const run = {
    targets,
    cluster,
    options,
    reporter,
    warnings: [...warnings, ...(proxied === null ? [] : [proxied])],
    dryRun: node.dryRun,
    skipPhases: document.skipPhases ?? [],
    oneHostPerNode: true,
    ...(onlyPhase === undefined ? {} : { onlyPhase }),
  };
  try {
    if (document.controlPlane === undefined) return await runOnHosts(services, { ...run, workflow: joinWorkflow, workflowOptions });
    const { runJoinControlPlane } = await import('./join-control-plane.ts');
    return await runJoinControlPlane(services, { ...run, node, workflowOptions, document, onlyPhase });
  } finally {
    await access.close();
  }
}

/** The cluster to join, and who else is asked of it. */
interface JoinAccess extends DiscoveredCluster {
  readonly admin: Cluster | null;
  /** Tells with his credentials which Node a host is. */
  readonly trust: NodeTrust | null;
  /** The API server is asked through a proxy of the environment. */
  readonly proxied: Warning | null;
  close(): Promise<void>;
}

interface JoinAccessInput {
  readonly document: JoinConfiguration;
  readonly options: CommandOptions;
  readonly caFile: string | undefined;
  readonly targets: readonly HostTarget[];
  readonly reporter: Reporter;
}

/** Finds the cluster from here, or over the connection to a host that reaches it where nobody does from here. */
async function openAccess(services: Services, { document, options, caFile, targets, reporter }: JoinAccessInput): Promise<JoinAccess> {
  const forOthers = targets.some(({ address }) => address !== undefined);
  const server = await serverToJoin(services, document);
  const question = server === null ? null : { server, trust: { kind: 'unverified' } as const };
  const from = question && (await hostNearApiServer(services, { question, targets, reporter }));
  const opened: { close(): Promise<void> }[] = from === null ? [] : [from];
  const close = async (): Promise<void> => {
    for (const each of opened.splice(0).reverse()) await each.close();
  };
  try {
    const named = await openAdmin(services, { options, from, reporter });
    const admin = named?.cluster ?? null;
    if (admin !== null) opened.push(admin);
    const trust = named === null ? null : trustOf(services, named);
    const found = await discover(services, { join: document, caFile, forOthers, from, reporter });
    opened.push(found.cluster);
    return { ...found, admin, trust, proxied: server === null || from !== null ? null : httpProxyWarning(server, services.env), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** An administrator, only where one is named: who joins a node seldom means the cluster that KUBECONFIG happens to name. */
async function openAdmin(
  services: Services,
  { options, from, reporter }: { readonly options: CommandOptions; readonly from: Host | null; readonly reporter: Reporter },
): Promise<OpenedCluster | null> {
  if (!isKubeconfigGiven(options)) return null;
  return openCluster(services, options, { dryRun: false, staged: false, writes: reporter, ...(from === null ? {} : { from }) });
}

const WAIT_READY_MS = 300_000;

/** `--wait-ready` alone is five minutes. */
function waitReadyMs({ waitReady }: CommandOptions): number | null {
  if (waitReady === true) return WAIT_READY_MS;
  if (typeof waitReady !== 'string') return null;
  const nanoseconds = parseGoDuration(waitReady);
  if (nanoseconds === null || nanoseconds <= 0n)
    throw usageError(`--wait-ready: invalid duration "${waitReady}"`, 'Write it like --wait-ready=90s or 5m');
  return Number(nanoseconds / 1_000_000n);
}

/** What only one node can have: two nodes of one name would fight over it. */
function refuseOneNodesOwn({ name, kubeletExtraArgs = [] }: NodeRegistration): void {
  const own = [
    ...(name === undefined ? [] : ['a node name (nodeRegistration.name, --node-name)']),
    ...(kubeletExtraArgs.some((arg) => arg.name === 'node-ip') ? ['a node IP (node-ip, --node-ip)'] : []),
    ...(kubeletExtraArgs.some((arg) => arg.name === 'hostname-override') ? ['hostname-override'] : []),
  ];
  if (own.length === 0) return;
  throw usageError(`${own.join(' and ')} is for one host, and several were given`, 'Join the hosts one by one, or leave it out');
}
