import { type AppError, isAppError } from '../../../base/errors.ts';
import { Secret, SensitiveText } from '../../../base/text/secret.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import { observe } from '../../../host/observe.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { ADMIN_CONF, SUPER_ADMIN_CONF } from '../../../kube/well-known.ts';
import { localServer } from '../../control-plane/model.ts';
import { type ApiAccess, apiAccess, type ConnectControlPlane, onceAdministrator } from './api-access.ts';

/** How the API server of a host is reached. */
export interface WayOptions {
  readonly connect: ConnectControlPlane;
  /** Credentials that were given for single phases, in place of those on the host. */
  readonly given: Cluster | null;
  /** Hears of each way to an API server that is opened, so that it can be closed. */
  readonly opened: (access: ApiAccess) => void;
}
export interface ApiServerRoutes {
  /** As an administrator. */
  readonly api: ApiAccess;
  /** As one who needs no RBAC. */
  readonly superApi: ApiAccess;
  /** By admin.conf, whether the API server knows it for an administrator's or not. */
  readonly reachAsAdmin: ApiAccess['reach'];
  /** From now on kubeconfigs are those that are there once all is done. */
  use(textAt: (path: string) => SensitiveText | null): void;
}

/** With credentials that were given there is one way; else one by each of the kubeconfigs of the host. */
export async function apiServerRoutes(
  context: PhaseContext,
  { connect, given, opened }: WayOptions,
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
    api: onceAdministrator(admin, superApi),
    superApi,
    reachAsAdmin: admin.reach,
    use: (next) => {
      textAt = next;
    },
  };
}

/**
 * The API server, where it runs already.
 * @returns lockedOut: why nobody can log in, which is to be told where the certificates on the host do not tell it better
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
