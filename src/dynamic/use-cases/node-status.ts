import type { RunTime } from '../../base/clock.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import type { AgentHostPort } from '../ports.ts';
import type { AssignmentRecord } from '../status/assignment-history.ts';
import type { ConfigHistoryEntry } from '../status/config-event.ts';
import type { Backend } from '../status/node-config.ts';
import { watchNodes } from '../workflows/follow-nodes.ts';
import { type AssessedNode, assessNodes, readConfigHistory, readNodes } from '../workflows/read-nodes.ts';

export interface NodeStatusRequest {
  /** Empty: all Nodes. */
  readonly names: readonly string[];
  /** Only Nodes with these labels. */
  readonly selector?: LabelSelector | undefined;
  /** Undefined: detected from each Node. */
  readonly backend: Backend | undefined;
  readonly cluster: KubeconfigRequest;
}

export interface NodeStatus {
  readonly nodes: readonly AssessedNode[];
  readonly now: Date;
}

/**
 * Reads the dynamic configuration of Nodes.
 * @throws AppError for an unknown Node; the errors of the cluster
 */
export async function readNodeStatus(
  services: OpenClusterPorts & RunTime,
  { names, selector, backend, cluster: named }: NodeStatusRequest,
): Promise<NodeStatus> {
  return withCluster(services, named, async (cluster) => {
    const now = services.clock.now();
    return { nodes: await assessNodes(cluster, names, { now, backend, labelSelector: selector?.text }), now };
  });
}

/**
 * Watches the dynamic configuration of Nodes until the run is interrupted. Failed requests are reported and repeated.
 * @throws AppError for an unknown Node; the reason of the interruption
 */
export async function watchNodeStatus(
  services: OpenClusterPorts & RunTime & Pick<AgentHostPort, 'random'>,
  { names, selector, backend, cluster: named }: NodeStatusRequest,
  { reporter, changed }: { readonly reporter: Reporter; readonly changed: (status: NodeStatus) => void },
): Promise<never> {
  const { clock, signal } = services;
  return withCluster(services, named, async (cluster) => {
    // Rejects an invalid name before any request.
    await readNodes(cluster, names, { labelSelector: selector?.text });
    const random = (): number => services.random();
    const onIssue = (error: unknown): void => {
      const message = error instanceof Error ? error.message : String(error);
      reporter.report({ level: 'warning', code: 'NOT_FOLLOWED', message: `${message}: retrying` });
    };
    const options = { cluster, clock, signal, backend, labelSelector: selector?.text, random, onIssue };
    await watchNodes(names, options, (nodes) => changed({ nodes, now: clock.now() }));
    throw signal.reason;
  });
}

/**
 * The changes of a Node's dynamic configuration, from Events, and its last assignments by kubeletadm; the oldest first.
 * @throws AppError for an unknown Node; the errors of the cluster
 */
export async function readNodeHistory(
  services: OpenClusterPorts,
  { node, cluster: named }: { readonly node: string; readonly cluster: KubeconfigRequest },
): Promise<{ readonly events: readonly ConfigHistoryEntry[]; readonly assignments: readonly AssignmentRecord[] }> {
  return withCluster(services, named, async (cluster) => {
    const [found] = await readNodes(cluster, [node]);
    return { events: await readConfigHistory(cluster, node), assignments: found?.history ?? [] };
  });
}
