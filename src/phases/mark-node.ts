import { isAppError } from '../core/errors.ts';
import { diffNodeMarks, type NodeMarks } from '../core/kubernetes/node-marks.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { PhasePlan, Warning } from '../core/plan/change.ts';
import { definePhase, type PhaseContext } from '../engine/phase.ts';
import type { Cluster } from '../ports/cluster.ts';
import { isUnchecked, type OwnNodeCheck, waitsForCheck } from './own-node.ts';

export interface MarkNodeInput extends NodeMarks {
  readonly nodeName: string;
  /** An administrator's: a node may change neither. */
  readonly admin: Cluster | null;
  /** Null: the Node was known for the host's own when the run was planned. */
  readonly check: OwnNodeCheck | null;
}

/**
 * Gives the Node the labels and taints that were declared for it and that its kubelet may not give it: those of kubernetes.io at any time, and any at all once
 * the Node is there. kubeadm leaves workers without.
 */
export const markNode = definePhase<MarkNodeInput, KubeObject | null>({
  name: 'mark-node',
  short: 'Give the Node its labels and taints (with --kubeconfig)',
  cluster: ({ admin }) => admin,
  ready: async (context, input) => {
    if (input.admin === null || input.check === null || input.check.isDone) return;
    const node = await observeNode(context, input);
    if (node !== null && diffNodeMarks(node, input) !== null) await input.check.run(context);
  },
  observe: observeNode,
  plan: planMarks,
});

async function observeNode({ cluster }: PhaseContext, { nodeName, labels, taints }: MarkNodeInput): Promise<KubeObject | null> {
  if (Object.keys(labels).length + taints.length === 0) return null;
  try {
    return (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? null;
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return null;
    throw error;
  }
}

function planMarks(node: KubeObject | null, input: MarkNodeInput): PhasePlan {
  const { nodeName, admin } = input;
  const declared = Object.keys(input.labels).length + input.taints.length;
  if (declared === 0) return { changes: [], noop: 'no labels or taints were declared' };
  if (node === null)
    return admin === null
      ? { changes: [], noop: 'the kubelet registers with its labels and taints' }
      : { changes: [], deferred: `gives Node ${nodeName} its labels and taints once it is there` };
  const diff = diffNodeMarks(node, input);
  if (diff === null) return { changes: [], noop: `Node ${nodeName} has its labels and taints` };
  const { patch, missing } = diff;
  if (admin === null) return { changes: [], noop: `Node ${nodeName} is left as it is`, warnings: [unmarked(nodeName, missing)] };
  if (isUnchecked(input.check)) return { changes: [], deferred: waitsForCheck(nodeName) };
  return {
    changes: [{ kind: 'patch-object', ref: { apiVersion: 'v1', kind: 'Node', name: nodeName }, patch, because: `${missing} is missing` }],
  };
}

function unmarked(nodeName: string, missing: string): Warning {
  const message = `Node ${nodeName} has no ${missing}: its kubelet cannot add it to the registered Node. Give the credentials of an administrator with --kubeconfig`;
  return { code: 'NODE_NOT_MARKED', message };
}
