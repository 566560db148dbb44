import type { Cluster } from '../kube/cluster.ts';
import { type NodeTrust, nodeTrust } from '../kubeadm/workflows/identify-node.ts';
import type { OpenedCluster } from './open-cluster.ts';
import type { Services } from './services.ts';

/** By which the Nodes of hosts are told, with the operator's credentials for a cluster that was opened. */
export function trustOf(
  { newId }: Services,
  { cluster, apiServer }: Pick<OpenedCluster, 'cluster' | 'apiServer'>,
  nameHint = 'name its Node with --node-name',
): NodeTrust {
  return nodeTrust({ cluster: cluster as Cluster, caPem: apiServer?.caPem ?? null, newId, nameHint });
}
