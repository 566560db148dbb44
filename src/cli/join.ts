import { DEFAULT_CA_CERT_PATH } from '../core/config/defaults.ts';
import { mergeJoinFlags } from '../core/config/flags.ts';
import type { NodeRegistration } from '../core/config/model.ts';
import { type ExitCode, usageError } from '../core/errors.ts';
import { httpProxyWarning } from '../core/preflight/http-proxy.ts';
import { parseGoDuration } from '../core/text/go-duration.ts';
import type { Services } from '../ports/services.ts';
import { type JoinOptions, joinWorkflow } from '../workflows/join.ts';
import { discover } from './discover.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { durationMs, readNodeOptions } from './node-options.ts';
import { type OpenedCluster, openCluster } from './open-cluster.ts';
import { phaseName } from './phase-name.ts';
import type { CommandOptions } from './program.ts';
import { flagText, kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';

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
  const admin = await openAdmin(services, options);
  const forOthers = targets.some(({ address }) => address !== undefined);
  const server = document.discovery?.bootstrapToken?.apiServerEndpoint;
  const proxied = server === undefined ? null : httpProxyWarning(`https://${server}`, services.env);
  const { cluster, apiServer, credentials } = await discover(services, { join: document, caFile: caCert, forOthers, reporter });
  const workflowOptions: JoinOptions = {
    ...node,
    apiServer,
    credentials: async () => credentials,
    caCertPath: document.caCertPath ?? DEFAULT_CA_CERT_PATH,
    controlPlane: document.controlPlane !== undefined,
    tlsBootstrapMs: durationMs(document.timeouts?.tlsBootstrap, 300_000),
    takeOver: options.takeOver === true,
    waitReadyMs: waitReadyMs(options),
    admin: admin?.cluster ?? null,
  };
  const run = {
    targets,
    cluster,
    options,
    reporter,
    warnings: [...warnings, ...(proxied === null ? [] : [proxied])],
    dryRun: node.dryRun,
    skipPhases: document.skipPhases ?? [],
    ...(onlyPhase === undefined ? {} : { onlyPhase }),
  };
  try {
    if (document.controlPlane === undefined) return await runOnHosts(services, { ...run, workflow: joinWorkflow, workflowOptions });
    const { runJoinControlPlane } = await import('./join-control-plane.ts');
    return await runJoinControlPlane(services, { ...run, node, workflowOptions, document, onlyPhase });
  } finally {
    await cluster.close();
    await admin?.cluster?.close();
  }
}

/** An administrator, only where one is named: who joins a node seldom means the cluster that KUBECONFIG happens to name. */
async function openAdmin(services: Services, options: CommandOptions): Promise<OpenedCluster | null> {
  if (flagText(options, 'kubeconfig') !== undefined) return openCluster(services, options, { dryRun: false, staged: false });
  if (flagText(options, 'context') === undefined) return null;
  throw usageError('--context is of a kubeconfig, and none was given', 'Add --kubeconfig');
}

const WAIT_READY_MS = 300_000;

/** `--wait-ready` alone is five minutes. */
function waitReadyMs({ waitReady }: CommandOptions): number | null {
  if (waitReady === true) return WAIT_READY_MS;
  if (typeof waitReady !== 'string') return null;
  const nanoseconds = parseGoDuration(waitReady);
  if (nanoseconds === null || nanoseconds <= 0n)
    throw usageError(`--wait-ready ${waitReady}: no duration`, 'Write it like --wait-ready=90s or 5m');
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
