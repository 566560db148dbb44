import type { KubeObject } from '../core/kubernetes/object.ts';
import { refOf } from '../core/kubernetes/object-ref.ts';
import type { Cluster } from '../ports/cluster.ts';

/** The objects of a cluster that have the kinds and names of these, in their order; null for one that is not there. */
export function findObjects(cluster: Cluster, wanted: readonly KubeObject[]): Promise<readonly (KubeObject | null)[]> {
  return Promise.all(wanted.map((object) => cluster.get(refOf(object))));
}
