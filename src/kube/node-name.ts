import { usageError } from '../base/errors.ts';

const PREFIXES: ReadonlySet<string> = new Set(['node', 'nodes', 'no']);

/** Whether an argument has the form TYPE/NAME with the type of Nodes, as `kubectl get -o name` prints it. */
export function isNodeReference(argument: string): boolean {
  const at = argument.indexOf('/');
  return at > 0 && PREFIXES.has(argument.slice(0, at).toLowerCase());
}

/**
 * From `NAME`, `node/NAME`, `nodes/NAME` or `no/NAME`, as kubectl reads it.
 * @throws AppError USAGE (exit code 2) for another type, and for a reference without a name
 */
export function parseNodeName(argument: string): string {
  const at = argument.indexOf('/');
  if (at < 0) return argument;
  const [type, name] = [argument.slice(0, at), argument.slice(at + 1)];
  if (isNodeReference(argument) && name !== '' && !name.includes('/')) return name;
  const why = isNodeReference(argument)
    ? 'the name of the Node is missing or contains a slash'
    : `the type is ${JSON.stringify(type)}, not node`;
  throw usageError(`${argument}: ${why}`, 'Write NAME or node/NAME');
}
