import { AppError, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { revealText } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import type { Warning } from '../../host/plan/change.ts';
import { formatClusterName } from '../../host/plan/document.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type Kubeconfig, type KubeconfigCluster, type KubeconfigTarget, parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import type { ClusterServer } from '../../kube/kubeconfig-render.ts';
import { readOperatorKubeconfig } from '../../kube/operator-kubeconfig.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import type { ClusterConnections, SecretSource } from '../ports.ts';
import { type NodeTrust, nodeTrust } from '../workflows/node/identify-node.ts';

export type OpenClusterPorts = Pick<LocalFiles, 'env' | 'homeDirectory' | 'input'> & Pick<ClusterConnections, 'connectCluster'>;

export interface KubeconfigRequest {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** Source of the path for messages. Default: `--kubeconfig`. */
  readonly origin?: string | undefined;
}

/**
 * Whether `--kubeconfig` selects a cluster, for commands that use no other kubeconfig.
 * @throws AppError USAGE (exit code 2) for `--context` alone
 */
export function isKubeconfigGiven({ kubeconfig, context }: KubeconfigRequest): boolean {
  if (kubeconfig !== undefined) return true;
  if (context === undefined) return false;
  throw usageError('--context requires --kubeconfig', 'Add --kubeconfig');
}

export interface OpenedCluster {
  /** Null: no API server is configured or, in a dry run, reachable. */
  readonly cluster: Cluster | null;
  readonly apiServer: ClusterServer | null;
  /** tls-server-name of the kubeconfig. */
  readonly tlsServerName?: string | undefined;
  readonly warnings: readonly Warning[];
}

const NO_CLUSTER: OpenedCluster = { cluster: null, apiServer: null, warnings: [] };

/**
 * Connects with an administrator's kubeconfig: `--kubeconfig`, then KUBECONFIG (several files are merged),
 * `~/.kube/config`, `/etc/kubernetes/admin.conf`. A staged run uses `--kubeconfig` only.
 * @param run.dryRun an API server that is not configured or reachable is no error
 * @param run.staged the run writes files to a directory
 * @param run.from the host that opens the connections; default: the local host
 * @param run.writes reports context and server URL before the command changes the cluster; null: it only reads
 * @throws AppError NO_API_SERVER (exit code 2) when a real run finds no kubeconfig; CLUSTER_UNVERIFIED (exit code 2)
 * when `run.from` is set and the kubeconfig does not verify the server; the errors of the kubeconfig and the API server
 */
export async function openCluster(
  services: OpenClusterPorts,
  request: KubeconfigRequest,
  run: { readonly dryRun?: boolean; readonly staged?: boolean; readonly from?: Host | undefined; readonly writes: Reporter | null },
): Promise<OpenedCluster> {
  const found = await findKubeconfig(services, request, run.staged === true);
  if (found === null) {
    if (run.dryRun || run.staged) return NO_CLUSTER;
    throw new AppError(
      {
        code: 'NO_API_SERVER',
        message: 'no API server is configured',
        hint: "Pass an administrator's kubeconfig with --kubeconfig or KUBECONFIG",
      },
      { exitCode: 2 },
    );
  }
  const kubeconfig = parseKubeconfig(revealText(found.text), found.file);
  const { context } = request;
  const target = resolveContext(kubeconfig, context);
  if (run.from?.dial !== undefined) requireVerified(kubeconfig.file, target, run.from);
  if (run.writes !== null) {
    const name = { context: target.context, server: target.cluster.server };
    const message = `cluster: ${formatClusterName(name)} (${kubeconfig.file})`;
    run.writes.report({ level: 'info', code: 'CLUSTER', message, data: name });
  }
  const cluster = await services.connectCluster({ kubeconfig: found, from: run.from, context });
  const apiServer = await apiServerAddressOf(services, target.cluster, kubeconfig);
  if (!run.dryRun) return { cluster, apiServer, tlsServerName: target.cluster.tlsServerName, warnings: [] };
  return cluster.version().then(
    () => ({ cluster, apiServer, warnings: [] }),
    async (error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'CLUSTER_UNREACHABLE') throw error;
      await cluster.close();
      const message = `${error.problems[0]?.message ?? ''}. The plan assumes an empty cluster`;
      return { cluster: null, apiServer, warnings: [{ code: 'CLUSTER_UNREACHABLE', message }] };
    },
  );
}

async function findKubeconfig(
  { input, env, homeDirectory }: OpenClusterPorts,
  { kubeconfig: given, origin = '--kubeconfig' }: KubeconfigRequest,
  staged: boolean,
) {
  if (given !== undefined) return readOperatorKubeconfig(input, [given], origin);
  if (staged) return null;
  const named = env.KUBECONFIG?.split(':').filter(Boolean) ?? [];
  const found: string[] = [];
  for (const file of named) if (await input.exists(file)) found.push(file);
  const [first, ...more] = found;
  if (first !== undefined) return readOperatorKubeconfig(input, [first, ...more], 'KUBECONFIG');
  if (named.length > 0) throw noSuchKubeconfig(named);
  for (const file of [`${homeDirectory}/.kube/config`, ADMIN_CONF])
    if (await input.exists(file)) return readOperatorKubeconfig(input, [file], 'the default path');
  return null;
}

/** Refuses to send the operator's credentials through a host to an unverified server: the host could impersonate it. */
function requireVerified(file: string, { cluster }: KubeconfigTarget, host: Host): void {
  const { server, insecureSkipTlsVerify } = cluster;
  if (!insecureSkipTlsVerify && server.startsWith('https://')) return;
  const why = insecureSkipTlsVerify ? 'has insecure-skip-tls-verify' : 'has a server address without TLS';
  const message = `${file}: the kubeconfig ${why}, and ${server} is reachable only through ${host.name}, which could therefore capture your credentials`;
  const hint = 'Pass a kubeconfig that contains the CA of the API server';
  throw new AppError({ code: 'CLUSTER_UNVERIFIED', message, hint }, { exitCode: 2 });
}

function noSuchKubeconfig(named: readonly string[]): AppError {
  const message = `no file named in KUBECONFIG exists: ${named.join(', ')}`;
  return new AppError({ code: 'INPUT_UNREADABLE', message, hint: 'Pass an existing kubeconfig with --kubeconfig' }, { exitCode: 2 });
}

/** Resolves a path in a kubeconfig relative to the folder of that kubeconfig. */
export function resolveKubeconfigPath(file: string, path: string): string {
  return path.startsWith('/') ? path : `${file.slice(0, file.lastIndexOf('/') + 1)}${path}`;
}

/** Server and CA (PEM) of a kubeconfig's cluster. Null when the kubeconfig has no CA (public CAs, or no verification). */
async function apiServerAddressOf(
  { input }: Pick<LocalFiles, 'input'>,
  cluster: KubeconfigCluster,
  { file }: Kubeconfig,
): Promise<OpenedCluster['apiServer']> {
  if (cluster.caData !== undefined) return { server: cluster.server, caPem: Buffer.from(cluster.caData, 'base64').toString('utf8') };
  if (cluster.caFile === undefined) return null;
  return { server: cluster.server, caPem: await input.readText(resolveKubeconfigPath(file, cluster.caFile)) };
}

/** Identifies the Nodes of hosts with the operator's credentials for an opened cluster. */
export function operatorNodeTrust(
  { newId }: Pick<SecretSource, 'newId'>,
  { cluster, apiServer }: Pick<OpenedCluster, 'cluster' | 'apiServer'>,
  nameHint = 'name its Node with --node-name',
): NodeTrust {
  return nodeTrust({ cluster: cluster as Cluster, caPem: apiServer?.caPem ?? null, newId, nameHint });
}
