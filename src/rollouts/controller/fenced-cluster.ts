import { AppError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Leadership } from './lease.ts';

/**
 * A cluster that a process writes to only while it is the leader. The process may be stopped between this check and the request:
 * therefore every write that changes a node has the resourceVersion of an object that the next leader writes first.
 * Its writes throw LEASE_LOST.
 */
export function fencedCluster(cluster: Cluster, { isValid }: Leadership): Cluster {
  const fenced = <A extends readonly unknown[], R>(write: (...words: A) => Promise<R>) => {
    return async (...words: A): Promise<R> => {
      if (!isValid()) throw leaseLost();
      return write(...words);
    };
  };
  const { server, version, get, list, watch, getRaw } = cluster;
  return {
    server,
    version,
    get,
    list,
    watch,
    getRaw,
    create: fenced(cluster.create),
    update: fenced(cluster.update),
    patch: fenced(cluster.patch),
    delete: fenced(cluster.delete),
    evict: fenced(cluster.evict),
    close: async () => undefined,
  };
}

function leaseLost(): AppError {
  return new AppError({
    code: 'LEASE_LOST',
    message: 'this controller is not the leader any more, so that it changes nothing',
    hint: 'Another replica continues. If this repeats, check the connection to the API server',
  });
}
