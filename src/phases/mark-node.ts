import { isAppError } from '../core/errors.ts';
import { diffNodeMarks, hasMarks, lastAppliedMarks, type NodeMarks, type NodeMarksDiff } from '../core/kubernetes/node-marks.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { PhasePlan, Warning } from '../core/plan/change.ts';
import { definePhase, type PhaseContext } from '../engine/phase.ts';
import type { Cluster } from '../ports/cluster.ts';
import { isUnchecked, type OwnNodeCheck, waitsForCheck } from './own-node.ts';

export interface MarkNodeInput extends NodeMarks {
  readonly nodeName: string;
  /**
   * What the host remembers as declared before, for a Node without a record of what was applied; marks that are no longer declared are removed. Null: marks are only added.
   */
  readonly remembered: NodeMarks | null;
  /** An administrator's: a node may change neither. */
  readonly admin: Cluster | null;
  /** Null: the Node was known for the host's own when the run was planned. */
  readonly check: OwnNodeCheck | null;
}

/**
 * Gives the Node the labels and taints that were declared for it and that its kubelet may not give it: those of kubernetes.io at any time, and any at all once
 * the Node is there. In a fleet those that were applied and are no longer declared are removed; marks of others stay. kubeadm leaves workers without.
 */
export const markNode = definePhase<MarkNodeInput, KubeObject | null>({
  name: 'mark-node',
  short: 'Give the Node its labels and taints (with --kubeconfig)',
  cluster: ({ admin }) => admin,
  ready: async (context, input) => {
    if (input.admin === null || input.check === null || input.check.isDone) return;
    const node = await observeNode(context, input);
    if (node !== null && diffMarks(node, input) !== null) await input.check.run(context);
  },
  observe: observeNode,
  plan: planMarks,
});

/** Null: the marks of the Node are not this run's concern. */
function diffMarks(node: KubeObject, input: MarkNodeInput): NodeMarksDiff | null {
  return diffNodeMarks(node, input, appliedMarks(node, input.remembered));
}

/**
 * The labels and taints that earlier runs applied to a Node: as recorded on it, else as its host remembers.
 * @param remembered null: marks are only added
 */
export function appliedMarks(node: KubeObject | null, remembered: NodeMarks | null): NodeMarks | null {
  return remembered === null ? null : (lastAppliedMarks(node) ?? remembered);
}

async function observeNode({ cluster }: PhaseContext, input: MarkNodeInput): Promise<KubeObject | null> {
  const { nodeName, remembered } = input;
  if (!hasMarks(input) && remembered === null) return null;
  try {
    return (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? null;
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return null;
    throw error;
  }
}

function planMarks(node: KubeObject | null, input: MarkNodeInput): PhasePlan {
  const { nodeName, admin } = input;
  if (!hasMarks(input) && (node === null || diffMarks(node, input) === null))
    return { changes: [], noop: 'no labels or taints were declared' };
  if (node === null)
    return admin === null
      ? { changes: [], noop: 'the kubelet registers with its labels and taints' }
      : { changes: [], deferred: `gives Node ${nodeName} its labels and taints once it is there` };
  const diff = diffMarks(node, input);
  if (diff === null) return { changes: [], noop: `Node ${nodeName} has its labels and taints` };
  const { patch } = diff;
  if (admin === null) return { changes: [], noop: `Node ${nodeName} is left as it is`, warnings: warningsOf(nodeName, diff) };
  if (isUnchecked(input.check)) return { changes: [], deferred: waitsForCheck(nodeName) };
  return {
    changes: [{ kind: 'patch-object', ref: { apiVersion: 'v1', kind: 'Node', name: nodeName }, patch, because: reasonOf(diff) }],
  };
}

function reasonOf({ missing, obsolete }: NodeMarksDiff): string {
  const reasons = [missing === '' ? '' : `${missing} is missing`, obsolete === '' ? '' : `no longer declared: ${obsolete}`];
  return reasons.filter(Boolean).join('; ') || 'the labels and taints that are applied are not recorded';
}

function warningsOf(nodeName: string, { missing, obsolete }: NodeMarksDiff): readonly Warning[] {
  return [...(missing === '' ? [] : [unmarked(nodeName, missing)]), ...(obsolete === '' ? [] : [notRemoved(nodeName, obsolete)])];
}

function notRemoved(nodeName: string, obsolete: string): Warning {
  const message = `Node ${nodeName} keeps what is no longer declared: ${obsolete}. Only an administrator can remove it: pass --kubeconfig`;
  return { code: 'NODE_MARKS_NOT_REMOVED', message };
}

function unmarked(nodeName: string, missing: string): Warning {
  const message = `Node ${nodeName} has no ${missing}: its kubelet cannot add it to the registered Node. Give the credentials of an administrator with --kubeconfig`;
  return { code: 'NODE_NOT_MARKED', message };
}
