import { maskSecrets } from '../base/text/mask.ts';
import { printable } from '../base/text/printable.ts';

/** One step into a document: a field's name, or a place in a list. */
export type Step = string | number;

/** Writes a path the way people do: `nodeRegistration.taints[0].effect`. Names that are no plain words stand in quotes. */
export function formatFieldPath(steps: readonly Step[]): string {
  let text = '';
  for (const step of steps) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/** The path one step up; empty at the top. */
export function parentPath(path: string): string {
  const quoted = /\["(?:[^"\\]|\\.)*"\]$/.exec(path);
  if (quoted) return path.slice(0, quoted.index);
  return path.slice(0, Math.max(path.lastIndexOf('.'), path.lastIndexOf('['), 0));
}

/** A path for messages: of readable length, and without what looks like a secret in a field's name. */
export function showFieldPath(path: string): string {
  return printable(maskSecrets(path), 200);
}
