import { AppError, usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { Secret } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import type { SecretSource } from '../../host/operation/install-model.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { partsOfToken } from '../../kube/bootstrap-token.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type BootstrapCredentials, tokenCredentials } from '../../kubeadm/config/bootstrap-credentials.ts';
import { isBootstrapToken, TOKEN_FORM } from '../../kubeadm/config/bootstrap-token.ts';
import { DEFAULT_TOKEN_GROUPS } from '../../kubeadm/config/defaults.ts';
import { tokenSecret } from '../../kubeadm/token/token-secret.ts';
import { type ApiServerRoute, findHostWithApiServerAccess } from '../../kubeadm/use-cases/api-server-access.ts';
import { discover } from '../../kubeadm/use-cases/discover.ts';
import { type KubeconfigRequest, type OpenedCluster, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { createTokens, deleteTokens } from '../../kubeadm/workflows/bootstrap-tokens.ts';
import type { ApiServerTarget } from '../../kubeadm/workflows/node/bootstrap-files.ts';
import type { NodeTrust } from '../../kubeadm/workflows/node/identify-node.ts';
import type { FleetCluster } from '../file/model.ts';
import type { HostTarget } from '../host-target.ts';
import type { FleetRunPorts } from '../ports.ts';
import { connectionsTo } from '../ports.ts';
import { resolveFleetPath } from './load-fleet.ts';

/** The cluster of a fleet, and the join data of its nodes. */
export interface FleetAccess {
  readonly cluster: Cluster;
  /** Null: only a bootstrap token was given. */
  readonly admin: Cluster | null;
  /** Maps a host to its Node, with the administrator's credentials. */
  readonly trust: NodeTrust | null;
  readonly apiServer: ApiServerTarget;
  /** Join tokens. A plan never uses them, so none are created for it. */
  credentials(): Promise<BootstrapCredentials>;
  close(): Promise<void>;
}

interface FleetAccessInput {
  readonly cluster: FleetCluster;
  /** The fleet file; relative paths are resolved against its directory. */
  readonly file: string;
  readonly reporter: Reporter;
  /** Whether the command changes the cluster, or plans to. If so, the name of the cluster is printed. */
  readonly writes: boolean;
  /**
   * Hosts of the fleet. If the API server is unreachable from the local host, requests use the connection to
   * one of them.
   */
  readonly through: readonly HostTarget[];
}

/**
 * Connects to the cluster of a fleet: with the kubeconfig of the command line or of the file, else with
 * endpoint and token as join does, else with the default kubeconfig.
 */
export async function openFleetCluster(
  services: FleetRunPorts,
  { cluster: request, run }: { readonly cluster: KubeconfigRequest; readonly run: RunSettings },
  input: FleetAccessInput,
): Promise<FleetAccess> {
  const { cluster, file } = input;
  const path = (text: string): string => resolveFleetPath(text, file, services.homeDirectory);
  const token = cluster.token === null ? null : await readToken(services, cluster.token, path);
  const kubeconfig = request.kubeconfig ?? (cluster.kubeconfig === null ? undefined : path(cluster.kubeconfig));
  if (kubeconfig === undefined && cluster.endpoint !== null && token !== null) return byToken(services, input, token);
  // The path is written in the fleet file, which a plain error of reading would not name.
  if (request.kubeconfig === undefined && kubeconfig !== undefined && !(await services.input.exists(kubeconfig)))
    throw kubeconfigMissing(cluster.kubeconfigSource ?? file, kubeconfig);
  const context = request.context ?? cluster.context ?? undefined;
  const origin = request.kubeconfig === undefined ? (cluster.kubeconfigSource ?? file) : undefined;
  const { cluster: admin, apiServer, from } = await openNear(services, { kubeconfig, context, origin }, input);
  if (admin === null) throw new Error('a real run has a cluster');
  const caPem = cluster.caFile === null ? apiServer?.caPem : await services.input.readText(path(cluster.caFile));
  if (caPem === undefined) throw usageError('the kubeconfig holds no CA certificate', 'Set cluster.caCert in the fleet file');
  const made = temporaryToken(services, admin, run, input.reporter);
  return {
    cluster: admin,
    admin,
    trust: operatorNodeTrust(services, { cluster: admin, apiServer: { server: admin.server, caPem } }, NAME_HINT),
    apiServer: { server: cluster.endpoint === null ? admin.server : `https://${cluster.endpoint}`, caPem },
    credentials: async () => tokenCredentials(token ?? (await made.get())),
    close: async () => {
      await made.remove();
      await admin.close();
      await from?.close();
    },
  };
}

function kubeconfigMissing(source: string, kubeconfig: string): AppError {
  const message = `${source} cluster.kubeconfig: ${kubeconfig} does not exist`;
  const hint = 'Correct the path in the file (a relative path is relative to its directory), or pass --kubeconfig';
  return new AppError({ code: 'KUBECONFIG_FILE_UNREADABLE', message, hint }, { exitCode: 2 });
}

/** The Node name of a fleet host. */
const NAME_HINT = 'set nodeName of the host in the fleet file';

/** Connects from the local host, or through a host of the fleet if the API server is unreachable locally. */
async function openNear(
  services: FleetRunPorts,
  request: KubeconfigRequest,
  input: FleetAccessInput,
): Promise<OpenedCluster & { readonly from: Host | null }> {
  const near = await openCluster(services, request, { writes: input.writes ? input.reporter : null });
  if (near.apiServer === null) return { ...near, from: null };
  const { server, caPem } = near.apiServer;
  const from = await hostOfFleet(services, { server, trust: { kind: 'ca', pem: caPem } }, input);
  if (from === null) return { ...near, from };
  await near.cluster?.close();
  return { ...(await orClose(from, openCluster(services, request, { from, writes: null }))), from };
}

function hostOfFleet(
  services: FleetRunPorts,
  probe: ApiServerRoute['probe'],
  { through, reporter }: FleetAccessInput,
): Promise<Host | null> {
  return findHostWithApiServerAccess(services, { probe, hosts: connectionsTo(services, through), reporter, verbosity: 1 });
}

/** Runs an action over a connection, and closes the connection if the action fails. */
async function orClose<T>(from: Host | null, done: Promise<T>): Promise<T> {
  try {
    return await done;
  } catch (error) {
    await from?.close();
    throw error;
  }
}

async function byToken(services: FleetRunPorts, input: FleetAccessInput, token: Secret): Promise<FleetAccess> {
  const { cluster, file, reporter } = input;
  const { endpoint, caFile, caCertHashes } = cluster;
  // The token is sent only after discovery has verified the API server.
  const from = await hostOfFleet(services, { server: `https://${endpoint}`, trust: { kind: 'unverified' } }, input);
  const discovered = discover(services, {
    join: {
      discovery: {
        bootstrapToken: { apiServerEndpoint: endpoint ?? '', token, caCertHashes: [...caCertHashes] },
        tlsBootstrapToken: token,
      },
    },
    caFile: caFile === null ? undefined : resolveFleetPath(caFile, file, services.homeDirectory),
    forOthers: true,
    from,
    reporter,
  });
  const found = await orClose(from, discovered);
  return {
    cluster: found.cluster,
    admin: null,
    trust: null,
    apiServer: found.apiServer,
    credentials: async () => found.credentials,
    close: async () => {
      await found.cluster.close();
      await from?.close();
    },
  };
}

/** Reads the bootstrap token from the source in the fleet file. */
async function readToken(services: FleetRunPorts, reference: SecretSource, path: (text: string) => string): Promise<Secret> {
  const where = 'env' in reference ? `the environment variable ${reference.env}` : path(reference.file);
  const text = 'env' in reference ? services.env[reference.env] : await services.input.readText(path(reference.file));
  const token = text?.trim() ?? '';
  if (text === undefined) throw usageError(`cluster.token: ${where} is not set`, 'Set it to a bootstrap token');
  if (token === '') throw usageError(`cluster.token: ${where} is empty`, 'Store a bootstrap token in it');
  if (!isBootstrapToken(token))
    throw usageError(`cluster.token: ${where} does not contain a bootstrap token`, `Expected form: ${TOKEN_FORM}`);
  return new Secret(token);
}

/** TTL as for a token of init. The run deletes the token at its end; the TTL covers killed runs. */
const TOKEN_TTL = '24h0m0s';
/** Placeholder in plans, which never contain secrets. */
const NO_TOKEN = new Secret('000000.0000000000000000');

/** A token for the hosts that join in this run: created when the first host needs it, deleted at the end. */
function temporaryToken(services: FleetRunPorts, admin: Cluster, { dryRun }: RunSettings, reporter: Reporter) {
  let made: Promise<Secret> | null = null;
  const make = async (): Promise<Secret> => {
    const token = await services.newToken();
    const description = 'For kubeletadm to join the hosts of a fleet';
    const secret = tokenSecret(
      { token, ttl: TOKEN_TTL, usages: ['authentication'], groups: DEFAULT_TOKEN_GROUPS, description },
      services.clock.now(),
    );
    await createTokens(admin, [secret]);
    return token;
  };
  return {
    get: (): Promise<Secret> => {
      if (dryRun) return Promise.resolve(NO_TOKEN);
      made ??= make();
      return made;
    },
    remove: async (): Promise<void> => {
      const token = await made?.catch(() => null);
      if (token === undefined || token === null) return;
      const id = partsOfToken(token)?.id ?? '';
      await deleteTokens(admin, [id]).catch((error: unknown) => {
        const message = `the bootstrap token ${id} of this run could not be deleted: ${error instanceof Error ? error.message : String(error)}. To delete the token, run kubeletadm token delete ${id}`;
        reporter.report({ level: 'warning', code: 'TOKEN_NOT_DELETED', message });
      });
    },
  };
}
