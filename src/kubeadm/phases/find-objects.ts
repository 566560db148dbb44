import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { refOf } from '../../kube/object.ts';

/**
 * The objects in the cluster with the kinds and names of the given ones, in their order; null for an object
 * that does not exist.
 * @param cluster null: the cluster does not exist yet, and is planned as an empty one
 */
export function findObjects(cluster: Cluster | null, desired: readonly KubeObject[]): Promise<readonly (KubeObject | null)[]> {
  return Promise.all(desired.map((object) => (cluster === null ? null : cluster.get(refOf(object)))));
}
