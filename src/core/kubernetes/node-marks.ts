import { z } from 'zod';
import type { Taint } from '../config/model.ts';
import type { JsonObject } from '../json.ts';
import { formatTaint } from '../kubelet/flags-env.ts';
import type { KubeObject } from './object.ts';

/** By which a control plane is known. */
export const CONTROL_PLANE_LABEL = 'node-role.kubernetes.io/control-plane';

/** Annotation of a Node: the labels and taints that a fleet run applied last, as kubectl apply records what it applied. */
export const LAST_APPLIED_MARKS = 'kubeletadm.dev/last-applied-marks';

/** Labels and taints a Node is to have. */
export interface NodeMarks {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
}

/** What a Node lacks of its marks, or has too much. */
export interface NodeMarksDiff {
  /** A strategic merge patch. */
  readonly patch: JsonObject;
  /** In words, comma-separated; empty: none. */
  readonly missing: string;
  /** Of those that were applied and are no longer declared. */
  readonly obsolete: string;
}

/**
 * What a Node lacks of its marks; others it has stay. A taint of the same key and effect gets the wanted value.
 * @param node null: one that is not there yet, and has none
 * @param applied what was applied before: of these, marks that are no longer declared and still have the value that was applied are removed, and the declared ones are
 * recorded. Null: nothing is removed or recorded
 * @returns null when the Node is as declared
 */
export function diffNodeMarks(node: KubeObject | null, marks: NodeMarks, applied: NodeMarks | null = null): NodeMarksDiff | null {
  const labels = Object.entries(marks.labels).filter(([key, value]) => node?.metadata.labels?.[key] !== value);
  const present = taintsOf(node);
  const taints = marks.taints.filter((taint) => !present.some((each) => sameTaint(each, taint)));
  const oldLabels = Object.entries(applied?.labels ?? {}).filter(
    ([key, value]) => !Object.hasOwn(marks.labels, key) && node?.metadata.labels?.[key] === value,
  );
  const oldTaints = (applied?.taints ?? []).filter(
    (taint) => !marks.taints.some((each) => sameKind(each, taint)) && present.some((each) => sameTaint(each, taint)),
  );
  const isRecorded = hasMarks(marks) ? isSameRecord(applied, marks) : node?.metadata.annotations?.[LAST_APPLIED_MARKS] === undefined;
  const recorded = applied === null || isRecorded ? {} : { annotations: { [LAST_APPLIED_MARKS]: recordOf(marks) } };
  const hasLabels = labels.length + oldLabels.length > 0;
  const hasTaints = taints.length + oldTaints.length > 0;
  if (!hasLabels && !hasTaints && !('annotations' in recorded)) return null;
  const kept = present.filter(
    (each) => !taints.some((taint) => sameKind(each, taint)) && !oldTaints.some((taint) => sameTaint(each, taint)),
  );
  const metadata = {
    ...recorded,
    ...(hasLabels ? { labels: { ...Object.fromEntries(labels), ...Object.fromEntries(oldLabels.map(([key]) => [key, null])) } } : {}),
  };
  const patch = {
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(hasTaints ? { spec: { taints: [...kept, ...taints].map((taint) => ({ ...taint })) } } : {}),
  };
  return { patch, missing: describeMarks(labels, taints), obsolete: describeMarks(oldLabels, oldTaints) };
}

/** Whether there is anything in it. */
export function hasMarks({ labels, taints }: NodeMarks): boolean {
  return Object.keys(labels).length + taints.length > 0;
}

const RECORD = z.object({
  labels: z.record(z.string(), z.string()),
  taints: z.array(
    z.object({ key: z.string(), value: z.string().optional(), effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']) }),
  ),
});

/**
 * The labels and taints that a fleet run recorded on a Node.
 * @returns null: nothing is recorded, or somebody changed the annotation to something else
 */
export function lastAppliedMarks(node: KubeObject | null): NodeMarks | null {
  const text = node?.metadata.annotations?.[LAST_APPLIED_MARKS];
  if (text === undefined) return null;
  const read = RECORD.safeParse(parseJson(text));
  if (!read.success) return null;
  const { labels, taints } = read.data;
  return { labels, taints: taints.map(({ key, value, effect }) => ({ key, effect, ...(value === undefined ? {} : { value }) })) };
}

/** Null removes the annotation. */
function recordOf(marks: NodeMarks): string | null {
  if (!hasMarks(marks)) return null;
  const labels = Object.fromEntries(Object.entries(marks.labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return JSON.stringify({
    labels,
    taints: marks.taints.map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect })),
  });
}

function isSameRecord(a: NodeMarks | null, b: NodeMarks): boolean {
  return a !== null && recordOf(a) === recordOf(b);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
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
