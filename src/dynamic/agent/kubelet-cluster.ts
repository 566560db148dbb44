import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';

interface KubeletClusterOptions {
  /** Reads the kubeconfig; a changed text causes a new connection. */
  readonly read: () => Promise<{ readonly text: string; readonly connect: () => Promise<Cluster> }>;
  readonly clock: Clock;
  /** Called when the kubeconfig cannot be used. */
  readonly onIssue: (message: string) => void;
}

/** Interval at which the kubeconfig is read again. */
const REFRESH_MS = 30_000;

/**
 * Connects to the API server with the kubelet's own kubeconfig. The kubeconfig is read before a request if
 * the last read is older than half a minute. A change causes a new connection and ends the watches of the
 * previous one. While the file cannot be read, the last connection is used.
 * @throws from each call, the errors of reading and connecting, until a first connection succeeded
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
      onIssue(`the agent keeps its last connection, because it cannot use the kubeconfig of the kubelet: ${messageOf(error)}`);
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
