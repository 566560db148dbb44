import { type Cluster, pollClient, untilInterrupted } from './cluster.ts';

/**
 * A cluster that is still being discovered: requests wait for the result, and reject with its error. Does not
 * close it.
 * @param server the expected server, until the cluster is found
 */
export function clusterWhenFound(server: string, found: Promise<Cluster>): Cluster {
  let known: Cluster | null = null;
  found.then(
    (cluster) => {
      known = cluster;
    },
    () => undefined,
  );
  const clientOf = (select: (cluster: Cluster) => Cluster): Cluster => {
    const client = async (): Promise<Cluster> => select(await found);
    return {
      get server() {
        return known?.server ?? server;
      },
      get context() {
        return known?.context;
      },
      version: async () => (await client()).version(),
      get: async (ref) => (await client()).get(ref),
      list: async (kind, options) => (await client()).list(kind, options),
      create: async (object) => (await client()).create(object),
      update: async (object) => (await client()).update(object),
      patch: async (...words) => (await client()).patch(...words),
      delete: async (ref) => (await client()).delete(ref),
      evict: async (...words) => (await client()).evict(...words),
      getRaw: async (path) => (await client()).getRaw(path),
      async *watch(kind, options) {
        yield* (await client()).watch(kind, options);
      },
      close: async () => undefined,
    };
  };
  return Object.assign(
    clientOf((cluster) => cluster),
    { untilInterrupted: clientOf(untilInterrupted), forPolls: clientOf(pollClient) },
  );
}
