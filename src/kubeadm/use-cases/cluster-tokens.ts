import type { RunTime } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Secret, SensitiveText } from '../../base/text/secret.ts';
import type { ObjectChange } from '../../host/plan/change.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { applyTokenDefaults, type DefaultedBootstrapToken } from '../config/defaults.ts';
import type { Flags } from '../config/flag-values.ts';
import { mergeTokenFlags } from '../config/flags.ts';
import { emptyConfig, type LoadedConfig, loadConfig } from '../config/load.ts';
import type { BootstrapToken } from '../config/model.ts';
import type { SecretSource } from '../ports.ts';
import { type JoinsAsControlPlane, joinCommand } from '../token/join-command.ts';
import { tokenSecret } from '../token/token-secret.ts';
import { createTokens, deleteTokens, listTokens, requireFreeIds } from '../workflows/bootstrap-tokens.ts';
import { requireValid } from './load-config-file.ts';
import { type KubeconfigRequest, type OpenClusterPorts, type OpenedCluster, openCluster } from './open-cluster.ts';

type TokenPorts = OpenClusterPorts &
  Pick<LocalFiles, 'input' | 'acceptsUnknownFields'> &
  Pick<RunTime, 'clock'> &
  Pick<SecretSource, 'newToken'>;

export interface CreateTokensRequest {
  readonly config: string | undefined;
  /** Without a file, what makes up the one token. */
  readonly flags: Flags;
  readonly printsJoinCommand: boolean;
  /** Print the join command of a control plane; null: of a worker. */
  readonly controlPlane: JoinsAsControlPlane | null;
  readonly cluster: KubeconfigRequest;
  readonly run: RunSettings;
}

/** The tokens of a cluster. A Secret that is not a valid token is listed as a problem. */
export function listClusterTokens(services: TokenPorts, request: KubeconfigRequest): ReturnType<typeof listTokens> {
  return withCluster(services, request, null, listTokens);
}

/**
 * Creates the tokens of a file, or one token. Every check runs before the first token is created.
 * @param use receives the changes, the cluster (null: a dry run without one) with warnings about it, and how to create the tokens,
 *   which gives the token or join command to print
 * @throws AppError: an invalid file, an existing token, or a kubeconfig without a CA (exit code 2)
 */
export async function createClusterTokens<Result>(
  services: TokenPorts,
  request: CreateTokensRequest,
  reporter: Reporter,
  use: (
    planned: Pick<OpenedCluster, 'cluster' | 'warnings'> & { readonly changes: readonly ObjectChange[] },
    create: () => Promise<Secret | SensitiveText>,
  ) => Promise<Result>,
): Promise<Result> {
  const config = await readTokens(services, request);
  for (const warning of requireValid(config)) reporter.report({ level: 'warning', ...warning });
  const tokens = await completeTokens(services, config.init?.bootstrapTokens ?? []);
  const first = tokens[0] as DefaultedBootstrapToken;
  const opened = await openCluster(services, request.cluster, { ...request.run, writes: reporter });
  try {
    const line = request.printsJoinCommand
      ? joinCommand(requireAuthority(opened.apiServer), first.token, request.controlPlane)
      : first.token;
    const secrets = tokens.map((token) => tokenSecret(token, services.clock.now()));
    if (opened.cluster !== null) await requireFreeIds(opened.cluster, tokens.map(idOf));
    const changes = secrets.map((object) => ({ kind: 'create-object', object, reason: 'new token' }) as const);
    return await use({ ...opened, changes }, async () => {
      await createTokens(opened.cluster as Cluster, secrets);
      return line;
    });
  } finally {
    await opened.cluster?.close();
  }
}

export interface DeleteTokensRequest {
  readonly ids: readonly string[];
  readonly cluster: KubeconfigRequest;
}

/**
 * Deletes tokens.
 * @param view.onDeleted called for each deleted token
 * @throws as `deleteTokens`
 */
export async function deleteClusterTokens(
  services: TokenPorts,
  { ids, cluster: request }: DeleteTokensRequest,
  { reporter, onDeleted }: { readonly reporter: Reporter; readonly onDeleted: (id: string) => void },
): Promise<void> {
  await withCluster(services, request, reporter, (cluster) => deleteTokens(cluster, ids, onDeleted));
}

async function withCluster<T>(
  services: TokenPorts,
  request: KubeconfigRequest,
  writes: Reporter | null,
  use: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const { cluster } = await openCluster(services, request, { writes });
  try {
    return await use(cluster as Cluster);
  } finally {
    await cluster?.close();
  }
}

async function readTokens(services: TokenPorts, { config: file, flags }: CreateTokensRequest): Promise<LoadedConfig> {
  if (file === undefined) return mergeTokenFlags(emptyConfig(), flags);
  return loadConfig(await services.input.readText(file), file, {
    kinds: ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration'],
    ignores: services.acceptsUnknownFields ? 'unknown-fields' : 'metadata',
  });
}

async function completeTokens(services: TokenPorts, written: readonly BootstrapToken[]): Promise<readonly DefaultedBootstrapToken[]> {
  const tokens = written.length === 0 ? [{}] : written;
  const fresh = await Promise.all(tokens.filter((each) => each.token === undefined).map(() => services.newToken()));
  return applyTokenDefaults(tokens, fresh);
}

function idOf({ token }: DefaultedBootstrapToken): string {
  return token.reveal().slice(0, 6);
}

function requireAuthority<T>(apiServer: T | null): T {
  if (apiServer !== null) return apiServer;
  const hint = 'Add certificate-authority-data to the kubeconfig: a node needs the CA to verify the cluster';
  throw new AppError({ code: 'KUBECONFIG_NO_CA', message: 'no CA certificates found in the kubeconfig', hint }, { exitCode: 2 });
}
