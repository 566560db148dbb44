import { unlessRefused } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isControlPlaneNode, zoneOfLabels } from '../../kube/node-place.ts';
import { labelsOfHost, nodesByFile, type Selectable } from '../file/select.ts';

/**
 * The place of each host in the order of a run, by the labels of its Node, otherwise by those of the fleet file. The Nodes
 * are read in one request.
 * @param cluster null: the cluster does not exist yet, or its Nodes cannot be read
 */
export async function hostPlaces(cluster: Cluster | null, hosts: readonly Selectable[]) {
  const list = cluster === null ? null : await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Node' }));
  const labels = new Map((list?.items ?? []).map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
  const nodeOf = nodesByFile(hosts);
  return (host: Selectable) => {
    const own = labels.get(nodeOf(host) ?? '') ?? {};
    return {
      zone: zoneOfLabels({ ...labelsOfHost(host), ...own }),
      /** Its Node is a control plane already. */
      isControlPlane: isControlPlaneNode(own),
    };
  };
}
