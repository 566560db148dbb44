import { readNodeConfig } from '../../dynamic/status/node-config.ts';
import { matchesLabels } from '../../kube/match-labels.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { sameSource } from '../../kubelet/layers/config-source.ts';
import type { Rollout } from '../api/rollout.ts';
import type { ListedNode } from '../api/schema.ts';
import { amountOf } from './reconcile.ts';

/** A node of a rollout for people, from the status of the rollout. */
export interface RolloutNode extends Pick<ListedNode, 'name' | 'state' | 'since' | 'message'> {
  readonly isReady: boolean;
  readonly isCanary: boolean;
}

/**
 * The state of each node of a rollout. `status.nodes` lists a part of the nodes that are not updated; if others are omitted, the
 * assignment of a node decides between `Pending` and `Updated`.
 * @param nodes the selected Nodes
 */
export function rolloutNodes(rollout: Rollout, nodes: readonly KubeObject[]): readonly RolloutNode[] {
  const { status, spec } = rollout;
  const listed = new Map((status.nodes ?? []).map((node) => [node.name, node]));
  const isListComplete = status.counts?.selected === nodes.length && (status.omittedNodes ?? 0) === 0;
  const { count, nodeSelector } = spec.strategy.canary;
  // Without a selector, the canaries are the nodes that are changed while the others wait.
  const isCanaryPhase = (status.counts?.updated ?? 0) < amountOf(count, nodes.length);
  return nodes.map((node) => {
    const { name, labels = {} } = node.metadata;
    const { state, since, message } = listed.get(name) ?? { state: isListComplete || hasTarget(rollout, node) ? 'Updated' : 'Pending' };
    const isStarted = state === 'InProgress' || state === 'Failed' || state === 'Unreachable';
    const isCanary = nodeSelector === undefined ? isCanaryPhase && isStarted : matchesLabels(nodeSelector, labels);
    return { name, state, since, message, isReady: isNodeReady(node), isCanary };
  });
}

/** Whether an unlisted node has what it should have: the update revision, or another configuration while that one is reverted or reset. */
function hasTarget(rollout: Rollout, node: KubeObject): boolean {
  const { updateConfigMap } = rollout.status;
  if (updateConfigMap === undefined) return false;
  return sameSource(readNodeConfig(node).source.source, updateConfigMap) !== returnsNodes(rollout);
}

/** Whether the nodes return to another configuration: a node without an entry in the status has it, and is not updated. */
export function returnsNodes({ status, isDeleted }: Rollout): boolean {
  return isDeleted || (status.failedRevision !== undefined && status.failedRevision === status.updateRevision);
}
