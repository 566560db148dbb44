import { isJsonObject } from '../../base/json.ts';
import { isNodeReady, nodeIssues, readyHeartbeat } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type Minor, NEWEST_MINOR, nearestKnownMinor } from '../../kubelet/catalogue.ts';
import type { Observation } from './health.ts';

/** What the Node says of its kubelet, as far as it is about the one that runs now. */
export type NodeReport = Pick<Observation, 'ready' | 'pressures'>;

/**
 * Reads what a Node says of the kubelet that runs; what it said of the one before is old.
 * @param node null: the API server does not answer
 * @param startedAt when the kubelet was started, in milliseconds since 1970
 */
export function readNodeReport(node: KubeObject | null, startedAt: number): NodeReport {
  if (node === null) return { ready: null, pressures: [] };
  const issues = nodeIssues(node);
  const heartbeat = Date.parse(readyHeartbeat(node) ?? '');
  // Heartbeats have whole seconds.
  const isFresh = Number.isNaN(heartbeat) ? false : heartbeat >= Math.floor(startedAt / 1000) * 1000;
  const pressures = issues.flatMap((text) => /^(\w+Pressure) is True/.exec(text)?.[1] ?? []);
  if (isNodeReady(node)) return { ready: isFresh ? { is: true, why: '' } : null, pressures };
  const why = issues.find((text) => text.startsWith('Ready ')) ?? 'it does not say why';
  // Unknown is the word of the node controller: the kubelet says nothing.
  return { ready: isFresh || why.startsWith('Ready is Unknown') ? { is: false, why } : null, pressures };
}

/** The minor of the catalogue nearest to that of the kubelet that registered a Node; the newest known where the Node names none. */
export function minorOfNode(node: KubeObject | null): Minor {
  const info = isJsonObject(node?.status) && isJsonObject(node.status.nodeInfo) ? node.status.nodeInfo.kubeletVersion : undefined;
  return nearestKnownMinor(Number(/^v1\.(\d+)/.exec(String(info ?? ''))?.[1] ?? NEWEST_MINOR));
}
