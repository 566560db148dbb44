import type { Problem } from '../errors.ts';
import { importIgnored } from '../problems/fleet.ts';
import type { ImportedHost, ImportedInventory } from './entries.ts';
import { meansHost } from './select.ts';

/**
 * Keeps the hosts of an import that patterns name: by their names (`*` and `?`) or by a group of theirs; `!` in front leaves out. Patterns that
 * only leave out leave the rest.
 * @returns what is left, and the patterns that match nothing
 */
export function filterImport(
  inventory: ImportedInventory,
  patterns: readonly string[] | undefined,
): { readonly inventory: ImportedInventory; readonly problems: readonly Problem[] } {
  if (patterns === undefined) return { inventory, problems: [] };
  const negated = patterns.flatMap((pattern) => (pattern.startsWith('!') ? [pattern.slice(1)] : []));
  const wanted = patterns.filter((pattern) => !pattern.startsWith('!'));
  const isWanted = (host: ImportedHost): boolean =>
    (wanted.length === 0 || wanted.some((pattern) => meansHost(host, pattern))) && !negated.some((pattern) => meansHost(host, pattern));
  const idle = [...wanted, ...negated].filter((pattern) => !inventory.hosts.some((host) => meansHost(host, pattern)));
  return {
    inventory: { ...inventory, hosts: inventory.hosts.filter(isWanted) },
    problems: idle.map((pattern) =>
      importIgnored(`no imported host and no group is called ${JSON.stringify(pattern)}`, 'Check the pattern'),
    ),
  };
}
