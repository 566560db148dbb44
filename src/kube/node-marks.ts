import type { JsonObject } from '../base/json.ts';
import type { KubeObject, ObjectRef } from './object.ts';
import { formatTaint, type Taint } from './taint.ts';

export const CONTROL_PLANE_LABEL = 'node-role.kubernetes.io/control-plane';

export interface NodeMarks {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
}

/** `patch` is the difference to the Node as it was read; it is computed again when it is applied. */
export interface MarkNode {
  readonly kind: 'mark-node';
  readonly ref: ObjectRef;
  readonly patch: JsonObject;
  readonly marks: NodeMarks;
  /** The marks are recorded in the cluster, and recorded marks that are no longer declared are removed. */
  readonly isRecorded: boolean;
  readonly reason: string;
}

/** That earlier runs applied, or were about to apply when they were interrupted: a label may have several values. */
export interface AppliedMarks {
  readonly labels: readonly (readonly [key: string, value: string])[];
  readonly taints: readonly Taint[];
}

/** The difference between a Node and its desired marks. */
export interface NodeMarksDiff {
  /** A strategic merge patch. The list of taints is complete: see `resourceVersion` in `applyNodeMarks`. */
  readonly patch: JsonObject;
  /** As text, comma-separated; empty: none. */
  readonly missing: string;
  /** Applied marks that are no longer declared, as text. */
  readonly obsolete: string;
}

/**
 * Compares a Node (null: none yet) with its desired marks; null: equal. Other labels and taints are kept. A
 * taint with the same key and effect gets the desired value.
 * @param applied marks of earlier runs, removed if they are no longer declared and unchanged. Null: none are
 *   removed
 */
export function diffNodeMarks(node: KubeObject | null, marks: NodeMarks, applied: AppliedMarks | null = null): NodeMarksDiff | null {
  const labels = Object.entries(marks.labels).filter(([key, value]) => node?.metadata.labels?.[key] !== value);
  const present = taintsOf(node);
  const taints = marks.taints.filter((taint) => !present.some((each) => sameTaint(each, taint)));
  const oldLabels = (applied?.labels ?? []).filter(
    ([key, value]) => !Object.hasOwn(marks.labels, key) && node?.metadata.labels?.[key] === value,
  );
  const oldTaints = (applied?.taints ?? []).filter(
    (taint) => !marks.taints.some((each) => sameKind(each, taint)) && present.some((each) => sameTaint(each, taint)),
  );
  const hasLabels = labels.length + oldLabels.length > 0;
  const hasTaints = taints.length + oldTaints.length > 0;
  if (!hasLabels && !hasTaints) return null;
  const kept = present.filter(
    (each) => !taints.some((taint) => sameKind(each, taint)) && !oldTaints.some((taint) => sameTaint(each, taint)),
  );
  const patch = {
    ...(hasLabels
      ? { metadata: { labels: { ...Object.fromEntries(labels), ...Object.fromEntries(oldLabels.map(([key]) => [key, null])) } } }
      : {}),
    ...(hasTaints ? { spec: { taints: [...kept, ...taints].map((taint) => ({ ...taint })) } } : {}),
  };
  return { patch, missing: describeMarks(labels, taints), obsolete: describeMarks(oldLabels, oldTaints) };
}

/** `label pool=a, taint a=b:NoSchedule; no longer declared: label old=x`. */
export function describeDiff(diff: NodeMarksDiff | null): string {
  const { missing = '', obsolete = '' } = diff ?? {};
  const parts = [missing, obsolete === '' ? '' : `no longer declared: ${obsolete}`].filter(Boolean);
  return parts.length === 0 ? 'labels and taints that are no longer declared' : parts.join('; ');
}

export function hasMarks({ labels, taints }: NodeMarks): boolean {
  return Object.keys(labels).length + taints.length > 0;
}

export function marksList({ labels, taints }: NodeMarks): AppliedMarks {
  return { labels: Object.entries(labels), taints };
}

export function unionOfMarks(a: AppliedMarks, b: AppliedMarks): AppliedMarks {
  const added = marksWithout(b, a);
  return { labels: [...a.labels, ...added.labels], taints: [...a.taints, ...added.taints] };
}

export function marksWithout(marks: AppliedMarks, others: AppliedMarks): AppliedMarks {
  return {
    labels: marks.labels.filter(([key, value]) => !others.labels.some((other) => other[0] === key && other[1] === value)),
    taints: marks.taints.filter((taint) => !others.taints.some((other) => sameTaint(other, taint))),
  };
}

export function coversMarks(marks: AppliedMarks, others: AppliedMarks): boolean {
  const { labels, taints } = marksWithout(others, marks);
  return labels.length + taints.length === 0;
}

function taintsOf(node: KubeObject | null): readonly Taint[] {
  return ((node?.spec ?? {}) as { readonly taints?: readonly Taint[] }).taints ?? [];
}

function describeMarks(labels: readonly (readonly [string, string])[], taints: readonly Taint[]): string {
  return [...labels.map(([key, value]) => `label ${key}=${value}`), ...taints.map((taint) => `taint ${formatTaint(taint)}`)].join(', ');
}

function sameTaint(a: Taint, b: Taint): boolean {
  return sameKind(a, b) && (a.value ?? '') === (b.value ?? '');
}

function sameKind(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect;
}
