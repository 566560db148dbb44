import type { Cluster } from './cluster.ts';
import { removedObject } from './object.ts';
import { isReview } from './resources.ts';

/**
 * The cluster of a dry run. Reads, reviews and requests that the API server does not store are sent; other writes are not, and
 * appear to succeed.
 */
export function withoutWrites(cluster: Cluster): Cluster {
  const { untilInterrupted: _, forPolls: __, ...reads } = cluster;
  return {
    ...reads,
    create: async (object) => (isReview(object) ? cluster.create(object) : object),
    update: async (object) => object,
    patch: async (ref, type, patch, options) =>
      options?.dryRun === true ? cluster.patch(ref, type, patch, options) : removedObject(ref, undefined),
    delete: (ref) => cluster.get(ref),
    evict: async () => ({ kind: 'evicted' }),
  };
}
