import type { Problem } from '../base/errors.ts';
import type { ImportedHost, ImportedInventory } from './entries.ts';
import { importIgnored } from './fleet-problems.ts';
import { hostMatcher } from './select.ts';

/**
 * Keeps the hosts of an import that patterns name: by their names (`*`, `?` and ranges) or by a group of theirs; `!` in front leaves out. Patterns that
 * only leave out leave the rest.
 * @returns what is left, and the patterns that match nothing
 */
export function filterImport(
  inventory: ImportedInventory,
  patterns: readonly string[] | undefined,
): { readonly inventory: ImportedInventory; readonly problems: readonly Problem[] } {
  if (patterns === undefined) return { inventory, problems: [] };
  const matchers = patterns.map((text) => {
    const pattern = text.replace(/^!/, '');
    return { pattern, isLeftOut: text.startsWith('!'), means: hostMatcher(pattern) };
  });
  const desired = matchers.filter(({ isLeftOut }) => !isLeftOut);
  const isDesired = (host: ImportedHost): boolean =>
    (desired.length === 0 || desired.some(({ means }) => means(host))) &&
    !matchers.some(({ isLeftOut, means }) => isLeftOut && means(host));
  const idle = [...desired, ...matchers.filter(({ isLeftOut }) => isLeftOut)].filter(({ means }) => !inventory.hosts.some(means));
  return {
    inventory: { ...inventory, hosts: inventory.hosts.filter(isDesired) },
    problems: idle.map(({ pattern }) =>
      importIgnored(`no imported host and no group is called ${JSON.stringify(pattern)}`, 'Check the pattern'),
    ),
  };
}
