import { type AppError, isAppError } from '../../../base/errors.ts';
import { Secret, SensitiveText } from '../../../base/text/secret.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { ADMIN_CONF, SUPER_ADMIN_CONF } from '../../../kube/well-known.ts';
import { localServer } from '../../control-plane/model.ts';
import { type ApiAccess, adminAccessWithFallback, apiAccess, type ConnectControlPlane } from './api-access.ts';

/** Options for reaching the API server of a host. */
export interface ApiServerRouteOptions {
  readonly connect: ConnectControlPlane;
  /** Connected with given credentials, for single phases; null: the credentials on the host are used. */
  readonly given: Cluster | null;
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
    const access: ApiAccess = { reach: async () => given, close: async () => undefined };
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
  given: Cluster | null,
  { superApi, api }: Pick<ApiServerRoutes, 'superApi' | 'api'>,
): Promise<{ readonly running: Cluster | null; readonly lockedOut: AppError | null }> {
  try {
    return { running: given ?? (await superApi.reach(context)) ?? (await api.reach(context)), lockedOut: null };
  } catch (error) {
    if (isAppError(error, 'CLUSTER_UNAUTHORIZED')) return { running: null, lockedOut: error };
    throw error;
  }
}
