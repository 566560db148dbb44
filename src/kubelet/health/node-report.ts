import { isJsonObject } from '../../base/json.ts';
import { isNodeReady, nodeIssues, readyHeartbeat } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { DEFAULT_MINOR, type Minor, nearestKnownMinor } from '../catalogue/catalogue.ts';
import type { Observation } from './assess.ts';

/** State reported by the Node, as far as it concerns the running kubelet. */
export type NodeReport = Pick<Observation, 'ready' | 'pressures'>;

/**
 * Reads the state of a Node, ignoring reports of a previous kubelet process.
 * @param node null: the API server is unreachable
 * @param startedAt start time of the kubelet, in milliseconds since 1970
 */
export function readNodeReport(node: KubeObject | null, startedAt: number): NodeReport {
  if (node === null) return { ready: null, pressures: [] };
  const issues = nodeIssues(node);
  const heartbeat = Date.parse(readyHeartbeat(node) ?? '');
  // Heartbeats are rounded to seconds.
  const isFresh = Number.isNaN(heartbeat) ? false : heartbeat >= Math.floor(startedAt / 1000) * 1000;
  const pressures = pressuresOf(node);
  if (isNodeReady(node)) return { ready: isFresh ? { is: true, why: '' } : null, pressures };
  const why = issues.find((text) => text.startsWith('Ready ')) ?? 'no reason reported';
  // The node controller sets Unknown when the kubelet reports nothing.
  return { ready: isFresh || why.startsWith('Ready is Unknown') ? { is: false, why } : null, pressures };
}

/** The minor of the catalogue nearest to the kubelet of a Node; the default if the Node has none. */
export function minorOfNode(node: KubeObject | null): Minor {
  const info = isJsonObject(node?.status) && isJsonObject(node.status.nodeInfo) ? node.status.nodeInfo.kubeletVersion : undefined;
  return nearestKnownMinor(Number(/^v1\.(\d+)/.exec(String(info ?? ''))?.[1] ?? DEFAULT_MINOR));
}

/** The pressure conditions of a Node that are True. */
export function pressuresOf(node: KubeObject): readonly string[] {
  return nodeIssues(node).flatMap((text) => /^(\w+Pressure) is True/.exec(text)?.[1] ?? []);
}
