import { isJsonObject, type Json } from '../base/json.ts';

/** YAML flow style: `50`, `[10.96.0.10]`, `{memory.available: 100Mi}`, `""`. Control characters are escaped. */
export function inlineValue(value: Json | undefined): string {
  if (value === undefined) return 'unset';
  if (Array.isArray(value)) return `[${value.map((item: Json) => inlineValue(item)).join(', ')}]`;
  if (isJsonObject(value)) {
    const entries = Object.entries(value).map(([key, member]) => `${inlineText(key)}: ${inlineValue(member)}`);
    return `{${entries.join(', ')}}`;
  }
  return typeof value === 'string' ? inlineText(value) : String(value);
}

/** Quotes a string that could be read as another type, or that contains characters a terminal interprets. */
function inlineText(text: string): string {
  const plain = /^[^\s"'[\]{},#&*!|>%@`?][^"[\]{},]*$/.test(text) && !/\p{C}|: |\s$/u.test(text);
  const ambiguous = /^(?:true|false|null|~|unset|[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)$/i.test(text);
  return plain && !ambiguous
    ? text
    : JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
