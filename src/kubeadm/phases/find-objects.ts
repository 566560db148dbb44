import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { refOf } from '../../kube/object-ref.ts';

/** The objects of a cluster that have the kinds and names of these, in their order; null for one that is not there. */
export function findObjects(cluster: Cluster, desired: readonly KubeObject[]): Promise<readonly (KubeObject | null)[]> {
  return Promise.all(desired.map((object) => cluster.get(refOf(object))));
}
