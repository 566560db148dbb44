import type { Json } from '../../base/json.ts';
import type { FieldChange } from './impact.ts';

/** A longer value, as a list of taints, is cut. */
const LONGEST = 80;

/** A changed field in one line: `maxPods: 20 -> 33`. */
export function formatFieldChange({ field, before, after }: Omit<FieldChange, 'impact'>): string {
  return `${field}: ${formatValue(before)} -> ${formatValue(after)}`;
}

function formatValue(value: Json): string {
  if (value === null) return 'unset';
  const text = typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}...` : text;
}
