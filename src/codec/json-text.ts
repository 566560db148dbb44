import { createHash } from 'node:crypto';
import type { JsonObject } from '../base/json.ts';

/** Canonical JSON: sorted keys, no whitespace. Undefined members are omitted, as by JSON.stringify. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = value as Readonly<Record<string, unknown>>;
  if (typeof members.toJSON === 'function') return canonicalJson(members.toJSON());
  let text = '';
  for (const key of Object.keys(members).sort()) {
    if (members[key] === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(members[key])}`;
  }
  return `{${text}}`;
}

/** `sha256:…` of a value's canonical JSON. */
export function digestOf(value: unknown): string {
  return `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;
}

/** An object as the JSON that kubeadm and kubectl print: four spaces, and `<`, `>`, `&` escaped, as Go does. */
export function encodeGoJson(object: JsonObject): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return `${JSON.stringify(object, null, 4).replace(/[<>&\u2028\u2029]/g, escaped)}\n`;
}
