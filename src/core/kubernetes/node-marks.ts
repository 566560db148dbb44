import type { Taint } from '../config/model.ts';
import type { JsonObject } from '../json.ts';
import { formatTaint } from '../kubelet/flags-env.ts';
import type { KubeObject } from './object.ts';

/** By which a control plane is known. */
export const CONTROL_PLANE_LABEL = 'node-role.kubernetes.io/control-plane';

/** Labels and taints a Node is to have. */
export interface NodeMarks {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
}

/**
 * What a Node lacks of its marks; others it has stay. A taint of the same key and effect gets the wanted value.
 * @param node null: one that is not there yet, and has none
 * @returns a strategic merge patch, and what is missing in words; null when nothing is
 */
export function diffNodeMarks(node: KubeObject | null, marks: NodeMarks): { readonly patch: JsonObject; readonly missing: string } | null {
  const labels = Object.entries(marks.labels).filter(([key, value]) => node?.metadata.labels?.[key] !== value);
  const { taints: present = [] } = (node?.spec ?? {}) as { readonly taints?: readonly Taint[] };
  const taints = marks.taints.filter((taint) => !present.some((each) => sameTaint(each, taint)));
  if (labels.length + taints.length === 0) return null;
  const kept = present.filter((each) => !taints.some(({ key, effect }) => key === each.key && effect === each.effect));
  const patch = {
    ...(labels.length === 0 ? {} : { metadata: { labels: Object.fromEntries(labels) } }),
    ...(taints.length === 0 ? {} : { spec: { taints: [...kept, ...taints].map((taint) => ({ ...taint })) } }),
  };
  const missing = [...labels.map(([key, value]) => `label ${key}=${value}`), ...taints.map((taint) => `taint ${formatTaint(taint)}`)];
  return { patch, missing: missing.join(', ') };
}

function sameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect && (a.value ?? '') === (b.value ?? '');
}
