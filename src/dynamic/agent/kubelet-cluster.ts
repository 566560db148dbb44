import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';

export interface KubeletClusterOptions {
  /** Reads the kubeconfig; another text is connected with again. */
  readonly read: () => Promise<{ readonly text: string; readonly connect: () => Promise<Cluster> }>;
  readonly clock: Clock;
  /** Called when the kubeconfig could not be used. */
  readonly onIssue: (message: string) => void;
}

/** The kubeconfig is read again after this. */
const REFRESH_MS = 30_000;

/**
 * The API server as the kubelet of a host reaches it, with the kubelet's own kubeconfig. The kubeconfig is read before a request when the last reading is half
 * a minute old; after a change the connection is made again, which ends the watches of the one before. While the file can't be read the last connection is used.
 * @throws from each call, what reading and connecting throw while no connection was ever made
 */
export function kubeletCluster({ read, clock, onIssue }: KubeletClusterOptions): Cluster {
  let current: { readonly text: string; readonly cluster: Cluster } | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<Cluster> | null = null;

  const refresh = async (): Promise<Cluster> => {
    try {
      const { text, connect } = await read();
      if (current?.text !== text) {
        const before = current;
        current = { text, cluster: await connect() };
        await before?.cluster.close();
      }
      readAt = clock.now().getTime();
      return current.cluster;
    } catch (error) {
      if (current === null) throw error;
      onIssue(`the kubeconfig of the kubelet can't be used, the last connection is kept: ${messageOf(error)}`);
      return current.cluster;
    }
  };
  const cluster = (): Promise<Cluster> => {
    if (current !== null && Math.abs(clock.now().getTime() - readAt) < REFRESH_MS) return Promise.resolve(current.cluster);
    refreshing ??= refresh().finally(() => {
      refreshing = null;
    });
    return refreshing;
  };

  return {
    get server() {
      return current?.cluster.server ?? '';
    },
    version: async () => (await cluster()).version(),
    get: async (ref) => (await cluster()).get(ref),
    list: async (kind, options) => (await cluster()).list(kind, options),
    create: async (object) => (await cluster()).create(object),
    update: async (object) => (await cluster()).update(object),
    patch: async (ref, type, patch, options) => (await cluster()).patch(ref, type, patch, options),
    delete: async (ref) => (await cluster()).delete(ref),
    getRaw: async (path) => (await cluster()).getRaw(path),
    watch: async function* (kind, options) {
      yield* (await cluster()).watch(kind, options);
    },
    close: async () => {
      await current?.cluster.close();
    },
  };
}
