import { AppError, isAppError } from '../../base/errors.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { PhasePlan, Warning } from '../../host/plan/change.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { findMarksRecord } from '../../kube/mark-node.ts';
import {
  type AppliedMarks,
  describeDiff,
  diffNodeMarks,
  hasMarks,
  marksList,
  marksWithout,
  type NodeMarks,
  type NodeMarksDiff,
} from '../../kube/node-marks.ts';
import { isRecorded, MARKS_NAMESPACE, type MarksRecord, nodeMarksIncomplete } from '../../kube/node-marks-record.ts';
import type { KubeObject } from '../../kube/object.ts';

/**
 * Checks at apply time that the Node to be changed belongs to the host, for a host that had not joined when
 * the run was planned.
 */
export interface OwnNodeCheck {
  readonly isDone: boolean;
  /** @throws AppError: the host cannot prove to be this Node, or is another one */
  run(context: PhaseContext): Promise<void>;
}

/**
 * Whether a change of the Node must wait. Null: the host was verified when the run was planned, or the
 * credentials are its own.
 */
function isUnchecked(check: OwnNodeCheck | null): boolean {
  return check !== null && !check.isDone;
}

/** Why a change is deferred, for the plan. */
function deferredUntilCheck(nodeName: string): string {
  return `changes Node ${nodeName} after checking that the host belongs to this Node`;
}

export interface MarkNodeInput extends NodeMarks {
  readonly nodeName: string;
  /**
   * The labels and taints are recorded in the cluster, and recorded ones that are no longer declared are
   * removed. The value contains those stored on the host, which root on the host can change, so they cause
   * only a warning. Null: labels and taints are only added, without a record.
   */
  readonly saved: NodeMarks | null;
  /** An administrator's cluster: a node must not change these labels and taints itself. */
  readonly admin: Cluster | null;
  /** Null: the Node was verified when the run was planned. */
  readonly check: OwnNodeCheck | null;
}

/** A Node, and the record of the labels and taints that earlier runs applied; null: not known. */
interface FoundNode {
  readonly node: KubeObject;
  readonly record: MarksRecord | null;
}

/** The API server refused (403) an administrator access to the Node or its record. */
interface RefusedNode {
  readonly refused: AppError;
}

/**
 * Sets the declared labels and taints that the kubelet must not set itself: those of kubernetes.io always,
 * and all others after registration. In a fleet, applied labels and taints that are no longer declared are
 * removed; those of others are kept. kubeadm does not mark workers.
 */
export const markNode = definePhase<MarkNodeInput, FoundNode | RefusedNode | null>({
  name: 'mark-node',
  short: 'Set the labels and taints of the Node (with --kubeconfig)',
  cluster: ({ admin }) => admin,
  ready: async (context, input) => {
    if (input.admin === null || input.check === null || input.check.isDone) return;
    const found = await observeNode(context, input);
    if (found === null) return;
    if ('refused' in found)
      throw nodeMarksIncomplete(found.refused, { nodeName: input.nodeName, left: describeDiff(diffNodeMarks(null, input)) });
    if (isPending(found, input)) await input.check.run(context);
  },
  observe: observeNode,
  plan: planMarks,
});

/** Whether a Node or its record differs from the declared settings. */
export function isPending({ node, record }: FoundNode, marks: NodeMarks): boolean {
  return diffNodeMarks(node, marks, record?.applied ?? null) !== null || (record !== null && !isRecorded(record, marks));
}

async function observeNode({ cluster }: PhaseContext, input: MarkNodeInput): Promise<FoundNode | RefusedNode | null> {
  const { nodeName, saved, admin } = input;
  if (cluster === null || (!hasMarks(input) && saved === null)) return null;
  try {
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
    if (node === null) return null;
    return { node, record: admin === null || saved === null ? null : await findMarksRecord(cluster, node) };
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
    return admin === null ? null : { refused: error };
  }
}

function planMarks(found: FoundNode | RefusedNode | null, input: MarkNodeInput): PhasePlan {
  const { nodeName, admin, saved, labels, taints } = input;
  if (found !== null && 'refused' in found) return planUnread(found, input);
  const warnings = found === null ? [] : keptWarnings(found, input);
  const pending = found !== null && isPending(found, input);
  if (!hasMarks(input) && !pending) return withWarnings({ changes: [], noop: 'no labels or taints were declared' }, warnings);
  if (found === null)
    return admin === null
      ? { changes: [], noop: 'the kubelet sets its labels and taints at registration' }
      : { changes: [], deferred: `sets the labels and taints after Node ${nodeName} is registered` };
  if (!pending) return withWarnings({ changes: [], noop: `the labels and taints of Node ${nodeName} are unchanged` }, warnings);
  const diff = diffNodeMarks(found.node, input, found.record?.applied ?? null);
  if (admin === null) {
    const missing = diff === null ? [] : [unmarked(nodeName, diff.missing)];
    return { changes: [], noop: `Node ${nodeName} is unchanged`, warnings: [...missing, ...warnings] };
  }
  if (isUnchecked(input.check)) return { changes: [], deferred: deferredUntilCheck(nodeName) };
  const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
  const marks = { labels, taints };
  const patch = diff?.patch ?? {};
  return withWarnings(
    { changes: [{ kind: 'mark-node', ref, patch, marks, isRecorded: saved !== null, reason: reasonOf(diff) }] },
    warnings,
  );
}

/**
 * Without a comparison, the change is planned anyway: it fails with the missing permission, or succeeds if
 * the permission was granted meanwhile.
 */
function planUnread({ refused }: RefusedNode, { nodeName, saved, labels, taints, check }: MarkNodeInput): PhasePlan {
  const reason = `cannot compare the labels and taints: ${refused.problems[0]?.message ?? refused.message}`;
  if (isUnchecked(check))
    return { changes: [], deferred: `sets the labels and taints once the credentials are allowed to read Node ${nodeName}: ${reason}` };
  const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
  const patch = diffNodeMarks(null, { labels, taints })?.patch ?? {};
  return { changes: [{ kind: 'mark-node', ref, patch, marks: { labels, taints }, isRecorded: saved !== null, reason }] };
}

function withWarnings(plan: PhasePlan, warnings: readonly Warning[]): PhasePlan {
  return warnings.length === 0 ? plan : { ...plan, warnings };
}

/**
 * Warns of labels and taints that are stored on the host, no longer declared, still on the Node, and without
 * a record that kubeletadm applied them. They are kept: the file on the host proves nothing.
 */
function keptWarnings({ node, record }: FoundNode, { nodeName, saved, labels, taints }: MarkNodeInput): readonly Warning[] {
  if (saved === null) return [];
  const unrecorded: AppliedMarks = marksWithout(marksList(saved), record?.applied ?? { labels: [], taints: [] });
  const kept = diffNodeMarks(node, { labels, taints }, unrecorded)?.obsolete ?? '';
  return kept === '' ? [] : [notRemoved(nodeName, kept)];
}

function reasonOf(diff: NodeMarksDiff | null): string {
  if (diff === null) return `the labels and taints are not recorded in namespace ${MARKS_NAMESPACE}`;
  const { missing, obsolete } = diff;
  return [missing === '' ? '' : `${missing} is missing`, obsolete === '' ? '' : `no longer declared: ${obsolete}`]
    .filter(Boolean)
    .join('; ');
}

function notRemoved(nodeName: string, kept: string): Warning {
  const why = `kubeletadm keeps them, because no record in namespace ${MARKS_NAMESPACE} shows that kubeletadm set them`;
  const message = `Node ${nodeName} still has labels or taints that are no longer declared: ${kept}. ${why}. Check each label or taint, then remove it with kubectl`;
  return { code: 'NODE_MARKS_NOT_REMOVED', message };
}

function unmarked(nodeName: string, missing: string): Warning {
  const message = `Node ${nodeName} lacks ${missing}: the kubelet cannot change the labels and taints of a registered Node. Pass an administrator kubeconfig with --kubeconfig`;
  return { code: 'NODE_NOT_MARKED', message };
}

const CRI_SOCKET_ANNOTATION = 'kubeadm.alpha.kubernetes.io/cri-socket';

export interface RemoveSocketAnnotationInput {
  readonly nodeName: string;
  /** Null: the credentials are the node's own, or the Node was verified when the run was planned. */
  readonly check: OwnNodeCheck | null;
}

export function hasSocketAnnotation(node: KubeObject | null): boolean {
  return node?.metadata.annotations?.[CRI_SOCKET_ANNOTATION] !== undefined;
}

/**
 * Removes the CRI socket annotation of older kubeadm versions from the Node: the socket is in
 * instance-config.yaml now. kubeadm 1.36: part of upgrade's kubelet-config.
 */
export const removeSocketAnnotation = definePhase<RemoveSocketAnnotationInput, KubeObject | null>({
  name: 'kubelet-config/cri-socket-annotation',
  short: 'Remove the CRI socket annotation from the Node',
  observe: async ({ cluster }, { nodeName }) => {
    try {
      return (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? null;
    } catch (error) {
      if (error instanceof AppError && error.code === 'CLUSTER_FORBIDDEN') return null;
      throw error;
    }
  },
  plan: (node, { nodeName, check }) => {
    if (!hasSocketAnnotation(node)) return { changes: [], noop: `Node ${nodeName} has no CRI socket annotation` };
    if (isUnchecked(check)) return { changes: [], deferred: deferredUntilCheck(nodeName) };
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    const patch = { metadata: { annotations: { [CRI_SOCKET_ANNOTATION]: null } } };
    return { changes: [{ kind: 'patch-object', ref, patch, reason: 'the CRI socket is set in instance-config.yaml' }] };
  },
});
