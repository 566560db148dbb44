import type { Json } from '../../base/json.ts';

/**
 * Effect on the pods of a running node. `safe`: none on running pods · `new-pods-only`: running pods keep the
 * old value, or can be evicted · `drain`: drain the node first · `unsafe`: can disconnect the node, or keep
 * the kubelet from starting.
 */
export type Impact = 'safe' | 'new-pods-only' | 'drain' | 'unsafe';

export const IMPACTS = ['safe', 'new-pods-only', 'drain', 'unsafe'] as const satisfies readonly Impact[];

/** The class that a command permits if its user names none: what running pods do not notice. */
export const DEFAULT_ALLOWED: Impact = 'new-pods-only';

/** One changed field of the effective configuration of a running kubelet, or a flag without a field (`--node-ip`). */
export interface FieldChange {
  /** `a.b`; members of maps as `evictionHard[memory.available]`. */
  readonly field: string;
  /** Null: unset. Secrets are masked. */
  readonly before: Json;
  readonly after: Json;
  readonly impact: Impact;
  /** The reason of the impact `unsafe`, as a clause. */
  readonly why?: string;
}

/** Null and undefined: no running kubelet is changed. @returns null without any class */
export function highestImpact(impacts: Iterable<Impact | null | undefined>): Impact | null {
  const found = new Set(impacts);
  return IMPACTS.findLast((impact) => found.has(impact)) ?? null;
}

export function exceeds(impact: Impact | null, allowed: Impact): boolean {
  return impact !== null && IMPACTS.indexOf(impact) > IMPACTS.indexOf(allowed);
}

/** Whether a change is made on a drained node. */
export function needsDrain(impact: Impact | null): boolean {
  return impact === 'drain' || impact === 'unsafe';
}

/** A longer value, as a list of taints, is cut. */
const MAX_VALUE_LENGTH = 80;

/** A changed field in one line: `maxPods: 20 → 33`. */
export function formatFieldChange({ field, before, after }: Omit<FieldChange, 'impact'>): string {
  return `${field}: ${formatValue(before)} → ${formatValue(after)}`;
}

/** `unsafe, because the kubelet would exit`. */
export function formatImpact({ impact, why }: Pick<FieldChange, 'impact' | 'why'>): string {
  return why === undefined ? impact : `${impact}, because ${why}`;
}

/** `unset`, or a value in one line; a long one is cut. */
export function formatValue(value: Json): string {
  if (value === null) return 'unset';
  const text = typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}...` : text;
}
