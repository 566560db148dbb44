import { maskSecrets } from '../base/text/mask.ts';
import { printable } from '../base/text/printable.ts';

export type PathSegment = string | number;

/** Formats a path: `nodeRegistration.taints[0].effect`. Names other than simple words are quoted. */
export function formatFieldPath(steps: readonly PathSegment[]): string {
  let text = '';
  for (const step of steps) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

export function parentPath(path: string): string {
  const quoted = /\["(?:[^"\\]|\\.)*"\]$/.exec(path);
  if (quoted) return path.slice(0, quoted.index);
  return path.slice(0, Math.max(path.lastIndexOf('.'), path.lastIndexOf('['), 0));
}

/** A path for messages: truncated, with masked secrets in field names. */
export function showFieldPath(path: string): string {
  return printable(maskSecrets(path), 200);
}
