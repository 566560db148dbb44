import { printable } from './printable.ts';

/** How Node.js begins the line of an uncaught error, and Go that of a panic. */
const REASON = /^(?:[A-Z][A-Za-z]{0,60})?(?:Error|Exception)(?: \[[A-Z0-9_]{1,60}\])?: |^(?:panic|fatal error): /;
const NODE_VERSION = /^Node\.js v[0-9.]{1,20}$/;
const MAX_TEXT = 16_384;
const MAX_REASON = 299;

/**
 * Why a program crashed, from what it printed: the line with its error, else all lines. Node.js prints its version last, Go a stack trace.
 * @returns one printable line of at most 300 characters; '' when it printed nothing
 */
export function crashReason(output: string): string {
  const lines = output
    .slice(0, MAX_TEXT)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const reason = lines.find((line) => REASON.test(line));
  if (reason !== undefined) return printable(reason, MAX_REASON);
  const others = lines.filter((line) => !NODE_VERSION.test(line));
  return printable((others.length === 0 ? lines : others).join('; '), MAX_REASON);
}
