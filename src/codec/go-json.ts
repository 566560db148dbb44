import type { JsonObject } from '../base/json.ts';

/** An object as the JSON that kubeadm and kubectl print: four spaces, and `<`, `>`, `&` escaped, as Go does. */
export function encodeGoJson(object: JsonObject): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return `${JSON.stringify(object, null, 4).replace(/[<>&\u2028\u2029]/g, escaped)}\n`;
}
