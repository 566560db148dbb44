import { AppError, isAppError } from '../../../base/errors.ts';
import { Secret, SensitiveText } from '../../../base/text/secret.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import { listeningPorts } from '../../../host/facts/listening-ports.ts';
import { type DefinedPhase, type ObservedPhase, type Phase, type PhaseContext, planOnly } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { isAdministrator } from '../../../kube/has-permission.ts';
import type { HostKubeconfig } from '../../../kube/host-kubeconfig.ts';
import type { ClusterServer } from '../../../kube/kubeconfig-render.ts';
import { ADMIN_CONF, SUPER_ADMIN_CONF } from '../../../kube/well-known.ts';
import { localServer } from '../../control-plane/model.ts';
import { readHostKubeconfig } from '../../read-host-kubeconfig.ts';

/** Connects to the API server of a control plane from its host. */
export type ConnectControlPlane = (options: {
  readonly kubeconfig: HostKubeconfig;
  /** `https://ADDRESS:PORT` of this control plane, overrides the kubeconfig; null: the server of the kubeconfig. */
  readonly server: string | null;
  readonly host: Host;
}) => Promise<Cluster>;

/** Access to the API server of a control plane that may not run yet. */
export interface ApiAccess {
  /** Null while nothing listens on the port or no credentials are accepted. Connects once. */
  reach(context: PhaseContext): Promise<Cluster | null>;
  close(): Promise<void>;
}

/** No access, for runs that must not connect. */
export const NO_ACCESS: ApiAccess = { reach: async () => null, close: async () => undefined };

/**
 * Creates the access. If nothing listens on the host's port, no connection is tried, because it would fail slowly over
 * SSH.
 * @throws (reach) the errors of `readHostKubeconfig`, and those of `Cluster.version` except CLUSTER_UNREACHABLE and
 * CLUSTER_FORBIDDEN
 */
export function apiAccess({
  connect,
  local,
  kubeconfig,
}: {
  readonly connect: ConnectControlPlane;
  /** The local API endpoint; null: the server of the kubeconfig, which may be another host. */
  readonly local: { readonly server: string; readonly port: number } | null;
  /** An existing or planned kubeconfig of the host; null: none. */
  readonly kubeconfig: () => { readonly path: string; readonly text: SensitiveText } | null;
}): ApiAccess {
  let connected: Cluster | null = null;
  return {
    reach: async (context) => {
      if (connected !== null) return connected;
      const found = kubeconfig();
      if (found === null) return null;
      if (local !== null && (await observe(context.host, listeningPorts, context.signal))?.has(local.port) !== true) return null;
      const ofHost = await readHostKubeconfig(context.host, { ...found, hint: adminConfHint(found.path), signal: context.signal });
      const cluster = await connect({ kubeconfig: ofHost, server: local?.server ?? null, host: context.host });
      try {
        await cluster.version();
      } catch (error) {
        // Credentials without a role may not even read the version.
        if (!isAppError(error, 'CLUSTER_FORBIDDEN')) {
          await cluster.close();
          if (isAppError(error, 'CLUSTER_UNREACHABLE')) return null;
          throw error;
        }
      }
      connected = cluster;
      return cluster;
    },
    close: async () => {
      await connected?.close();
      connected = null;
    },
  };
}

/** Access with admin.conf, to the server that it names. */
export function adminConfAccess(connect: ConnectControlPlane, textAt: (path: string) => SensitiveText | null): ApiAccess {
  const kubeconfig = () => {
    const text = textAt(ADMIN_CONF);
    return text === null ? null : { path: ADMIN_CONF, text };
  };
  return apiAccess({ connect, local: null, kubeconfig });
}

/** Hint for a refused admin kubeconfig of a control plane. */
export function adminConfHint(path: string): string {
  const name = path.replace(/^.*\/|\.conf$/g, '');
  return `Fix the file. Or delete the file, then run kubeletadm init phase kubeconfig ${name}`;
}

/**
 * Uses the administrator's access once its user is bound to cluster-admin, until then the fallback: an interrupted run
 * may not have created the binding yet.
 * @param admin authenticates, but may still lack all permissions
 */
export function adminAccessWithFallback(admin: ApiAccess, meanwhile: ApiAccess): ApiAccess {
  let known = false;
  return {
    reach: async (context) => {
      const cluster = await admin.reach(context);
      known ||= cluster !== null && (await isAdministrator(cluster));
      return known ? cluster : meanwhile.reach(context);
    },
    close: async () => {
      await Promise.all([admin.close(), meanwhile.close()]);
    },
  };
}

/** Input of a workflow that starts its own API server, for the phases that use it. */
export interface ApiServerBootstrapInput {
  readonly api: ApiAccess;
  /** While the API server is not running, the phases are planned for an empty cluster (`--dry-run`) instead of deferred. */
  readonly assumeEmptyCluster: boolean;
  /** Files are written to a directory; nothing runs in it. */
  readonly staged: boolean;
}

/** The plan of a phase whose API server does not run yet. */
export const API_SERVER_PENDING: ObservedPhase = planOnly({
  changes: [],
  deferred: 'needs the API server, which starts in phase wait-control-plane',
});

/**
 * Adapts a phase to a workflow that starts its own API server. The phase is deferred until the API server is up, and
 * fails if it is still down when the phase is run.
 * @param accessOf another access than `api`
 * @throws (ready) AppError API_SERVER_NOT_UP
 */
export function deferUntilApiServer<Whole extends ApiServerBootstrapInput, Part>(
  phase: DefinedPhase<Part>,
  select: (input: Whole) => Part,
  accessOf: (input: Whole) => ApiAccess = ({ api }) => api,
): Phase<Whole> {
  const selected = phase.select(select);
  return {
    ...selected,
    contextFor: async (context, input) => ({ ...context, cluster: await accessOf(input).reach(context) }),
    ready: async (context, input) => {
      if (context.cluster === null && !input.staged) throw apiServerNotUp(context.host.name);
      await selected.ready(context, input);
    },
    inspect: async (context, input) =>
      context.cluster === null && !input.assumeEmptyCluster ? API_SERVER_PENDING : selected.inspect(context, input),
  };
}

/** Adapts a phase that can do without the API server to a workflow that starts its own: the phase uses it if it is up. */
export function withApiServer<Whole extends ApiServerBootstrapInput, Part>(
  phase: DefinedPhase<Part>,
  select: (input: Whole) => Part,
): Phase<Whole> {
  const ifUp = async (context: PhaseContext, api: ApiAccess): Promise<Cluster | null> => {
    try {
      return await api.reach(context);
    } catch (error) {
      if (isAppError(error)) return null;
      throw error;
    }
  };
  return { ...phase.select(select), contextFor: async (context, { api }) => ({ ...context, cluster: await ifUp(context, api) }) };
}

/** The error for an unreachable API server, or unreachable etcd members that the API server lists. */
export function apiServerNotUp(host: string): AppError {
  const message = 'the API server of this control plane is unreachable, or admin.conf does not exist on the host';
  const hint = 'Run the earlier phases first, or pass a kubeconfig with --kubeconfig';
  return new AppError({ host, code: 'API_SERVER_NOT_UP', message, hint });
}

/** Options for reaching the API server of a host. */
export interface ApiServerRouteOptions {
  readonly connect: ConnectControlPlane;
  /** The given kubeconfig, for single phases; null: the credentials on the host are used. */
  readonly given: {
    /** Null: its API server is unreachable, in a dry run. */
    readonly cluster: Cluster | null;
    /** URL and CA, for joining nodes; null: it contains no CA. */
    readonly apiServer: ClusterServer | null;
  } | null;
  /** Receives each opened connection, so that the caller can close it. */
  readonly opened: (access: ApiAccess) => void;
}
export interface ApiServerRoutes {
  /** With admin.conf once its user is bound to cluster-admin, until then with `superApi`. */
  readonly api: ApiAccess;
  /** With super-admin.conf, which needs no RBAC; else with admin.conf. */
  readonly superApi: ApiAccess;
  /** With admin.conf, even if its user is not bound to cluster-admin yet. */
  readonly reachAsAdmin: ApiAccess['reach'];
  /** Switches to the planned kubeconfigs of this run. */
  use(textAt: (path: string) => SensitiveText | null): void;
}

/** Given credentials replace all routes; otherwise each kubeconfig of the host has its own route. */
export async function apiServerRoutes(
  context: PhaseContext,
  { connect, given, opened }: ApiServerRouteOptions,
  endpoint: Parameters<typeof localServer>[0],
): Promise<ApiServerRoutes> {
  if (given !== null) {
    const access: ApiAccess = { reach: async () => given.cluster, close: async () => undefined };
    return { api: access, superApi: access, reachAsAdmin: access.reach, use: () => undefined };
  }
  const files = await observe(context.host, fileFacts([ADMIN_CONF, SUPER_ADMIN_CONF]), context.signal);
  let textAt = (path: string): SensitiveText | null => {
    const text = files.get(path)?.content;
    return text === undefined ? null : new SensitiveText([new Secret(text)]);
  };
  const route = (...paths: readonly string[]): ApiAccess => {
    const kubeconfig = () => {
      const path = paths.find((each) => textAt(each) !== null);
      const text = path === undefined ? null : textAt(path);
      return path === undefined || text === null ? null : { path, text };
    };
    const access = apiAccess({ connect, local: { server: localServer(endpoint), port: endpoint.bindPort }, kubeconfig });
    opened(access);
    return access;
  };
  const [admin, superApi] = [route(ADMIN_CONF), route(SUPER_ADMIN_CONF, ADMIN_CONF)];
  return {
    api: adminAccessWithFallback(admin, superApi),
    superApi,
    reachAsAdmin: admin.reach,
    use: (next) => {
      textAt = next;
    },
  };
}

/**
 * Connects to the API server if it is running.
 * @returns lockedOut: the API server rejects the credentials; reported if the host's certificates show no better reason
 */
export async function findRunning(
  context: PhaseContext,
  { superApi, api }: Pick<ApiServerRoutes, 'superApi' | 'api'>,
): Promise<{ readonly running: Cluster | null; readonly lockedOut: AppError | null }> {
  try {
    return { running: (await superApi.reach(context)) ?? (await api.reach(context)), lockedOut: null };
  } catch (error) {
    if (isAppError(error, 'CLUSTER_UNAUTHORIZED')) return { running: null, lockedOut: error };
    throw error;
  }
}
