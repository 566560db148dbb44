import { AppError, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { revealText } from '../../base/text/secret.ts';
import type { Host } from '../../host/host.ts';
import type { Warning } from '../../host/plan/change.ts';
import { formatClusterName } from '../../host/plan/document.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type Kubeconfig, type KubeconfigCluster, type KubeconfigTarget, parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { readOperatorKubeconfig } from '../../kube/operator-kubeconfig.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import type { ClusterConnections, SecretSource } from '../ports.ts';
import { type NodeTrust, nodeTrust } from '../workflows/identify-node.ts';

/** Address and authority of an API server. */
export interface ApiServerAddress {
  readonly server: string;
  readonly caPem: string;
}

/** What opening a cluster needs. */
export type OpenClusterPorts = Pick<LocalFiles, 'env' | 'homeDirectory' | 'input'> & Pick<ClusterConnections, 'connectCluster'>;

/** Which kubeconfig of the operator, and which context of it. */
export interface KubeconfigRequest {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/**
 * Whether `--kubeconfig` selects a cluster, for commands that use no other kubeconfig.
 * @throws AppError USAGE (exit code 2) for `--context` alone
 */
export function isKubeconfigGiven({ kubeconfig, context }: KubeconfigRequest): boolean {
  if (kubeconfig !== undefined) return true;
  if (context === undefined) return false;
  throw usageError('--context is of a kubeconfig, and none was given', 'Add --kubeconfig');
}

export interface OpenedCluster {
  /** Null: there is no API server to talk to. */
  readonly cluster: Cluster | null;
  readonly apiServer: ApiServerAddress | null;
  /** The name by which the kubeconfig verifies the API server, where it gives one. */
  readonly tlsServerName?: string | undefined;
  readonly warnings: readonly Warning[];
}

export interface OpenClusterRun {
  readonly dryRun: boolean;
  readonly staged: boolean;
  readonly from?: Host;
  /** For a command that changes the cluster, or plans to: reports context and server URL. Null: the command only reads. */
  readonly writes: Reporter | null;
}

const NO_CLUSTER: OpenedCluster = { cluster: null, apiServer: null, warnings: [] };

/**
 * Connects with an administrator's kubeconfig: `--kubeconfig`, then KUBECONFIG (several files are merged), `~/.kube/config`, `/etc/kubernetes/admin.conf`. Files staged into a directory
 * belong to no cluster unless one is named.
 * @param run.from opens the connections in place of this machine
 * @param run.writes names the cluster before the command changes it
 * @throws AppError NO_API_SERVER (exit code 2) when a real run finds none; CLUSTER_UNVERIFIED (exit code 2) with `run.from`, for a server that is not
 * verified; what the kubeconfig and the server say
 */
export async function openCluster(services: OpenClusterPorts, request: KubeconfigRequest, run: OpenClusterRun): Promise<OpenedCluster> {
  const found = await findKubeconfig(services, request.kubeconfig, run.staged);
  if (found === null) {
    if (run.dryRun || run.staged) return NO_CLUSTER;
    throw new AppError(
      {
        code: 'NO_API_SERVER',
        message: 'no API server was given',
        hint: "Give an administrator's kubeconfig with --kubeconfig or KUBECONFIG",
      },
      { exitCode: 2 },
    );
  }
  const kubeconfig = parseKubeconfig(revealText(found.text), found.file);
  const { context } = request;
  const target = resolveContext(kubeconfig, context);
  if (run.from?.dial !== undefined) requireVerified(kubeconfig.file, target, run.from);
  if (run.writes !== null) {
    const message = `cluster: ${formatClusterName({ context: target.context, server: target.cluster.server })} (${kubeconfig.file})`;
    run.writes.report({ level: 'info', code: 'CLUSTER', message });
  }
  const from = run.from === undefined ? {} : { from: run.from };
  const cluster = await services.connectCluster({ kubeconfig: found, ...from, ...(context === undefined ? {} : { context }) });
  const apiServer = await addressOf(services, target.cluster, kubeconfig);
  if (!run.dryRun) return { cluster, apiServer, tlsServerName: target.cluster.tlsServerName, warnings: [] };
  return cluster.version().then(
    () => ({ cluster, apiServer, warnings: [] }),
    async (error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'CLUSTER_UNREACHABLE') throw error;
      await cluster.close();
      const message = `${error.problems[0]?.message ?? ''}: the cluster counts as empty`;
      return { cluster: null, apiServer, warnings: [{ code: 'CLUSTER_UNREACHABLE', message }] };
    },
  );
}

async function findKubeconfig({ input, env, homeDirectory }: OpenClusterPorts, given: string | undefined, staged: boolean) {
  if (given !== undefined) return readOperatorKubeconfig(input, [given]);
  if (staged) return null;
  const named = env.KUBECONFIG?.split(':').filter(Boolean) ?? [];
  const found: string[] = [];
  for (const file of named) if (await input.exists(file)) found.push(file);
  const [first, ...more] = found;
  if (first !== undefined) return readOperatorKubeconfig(input, [first, ...more]);
  if (named.length > 0) throw noSuchKubeconfig(named);
  for (const file of [`${homeDirectory}/.kube/config`, ADMIN_CONF])
    if (await input.exists(file)) return readOperatorKubeconfig(input, [file]);
  return null;
}

/** The operator's credentials never go through a host to a server that is not verified: the host could answer in its place. */
function requireVerified(file: string, { cluster }: KubeconfigTarget, host: Host): void {
  const { server, insecureSkipTlsVerify } = cluster;
  if (!insecureSkipTlsVerify && server.startsWith('https://')) return;
  const why = insecureSkipTlsVerify ? 'insecure-skip-tls-verify' : 'no TLS';
  const message = `${file}: ${server} is only reached over the connection to ${host.name}, which could receive your credentials: ${why}`;
  const hint = 'Give a kubeconfig with the certificate authority of the API server';
  throw new AppError({ code: 'CLUSTER_UNVERIFIED', message, hint }, { exitCode: 2 });
}

function noSuchKubeconfig(named: readonly string[]): AppError {
  const message = `KUBECONFIG names ${named.join(' and ')}, and there is no such file`;
  return new AppError({ code: 'INPUT_UNREADABLE', message, hint: 'Give another with --kubeconfig' }, { exitCode: 2 });
}

/** A path of a kubeconfig: relative ones count from its folder. */
export function besideKubeconfig(file: string, path: string): string {
  return path.startsWith('/') ? path : `${file.slice(0, file.lastIndexOf('/') + 1)}${path}`;
}

/** The authority as PEM, wherever the kubeconfig has it. Null when it has none (public CAs, or no verification). */
export async function addressOf(
  { input }: Pick<LocalFiles, 'input'>,
  cluster: KubeconfigCluster,
  { file }: Kubeconfig,
): Promise<ApiServerAddress | null> {
  if (cluster.caData !== undefined) return { server: cluster.server, caPem: Buffer.from(cluster.caData, 'base64').toString('utf8') };
  if (cluster.caFile === undefined) return null;
  return { server: cluster.server, caPem: await input.readText(besideKubeconfig(file, cluster.caFile)) };
}

/** By which the Nodes of hosts are told, with the operator's credentials for a cluster that was opened. */
export function trustOf(
  { newId }: Pick<SecretSource, 'newId'>,
  { cluster, apiServer }: Pick<OpenedCluster, 'cluster' | 'apiServer'>,
  nameHint = 'name its Node with --node-name',
): NodeTrust {
  return nodeTrust({ cluster: cluster as Cluster, caPem: apiServer?.caPem ?? null, newId, nameHint });
}
