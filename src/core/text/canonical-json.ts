import { createHash } from 'node:crypto';
import type { Json } from '../json.ts';

/** JSON in one spelling: keys in order, no blanks. Members that are undefined are left out, as JSON.stringify does. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member as Record<string, Json>).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** `sha256:…` of a value's canonical JSON. */
export function digestOf(value: unknown): string {
  return `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;
}
