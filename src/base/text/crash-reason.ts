import { printable } from './printable.ts';

/** The start of the line of an uncaught error in Node.js, and of a panic in Go. */
const REASON = /^(?:[A-Z][A-Za-z]{0,60})?(?:Error|Exception)(?: \[[A-Z0-9_]{1,60}\])?: |^(?:panic|fatal error): /;
const NODE_VERSION = /^Node\.js v[0-9.]{1,20}$/;
const MAX_TEXT = 16_384;
const MAX_REASON = 299;

/** The line with the error in a program's output, else all lines: Node.js prints its version last, Go a stack trace. */
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
