import type { Problem } from '../../base/errors.ts';
import type { ImportedHost, ImportedInventory } from '../file/entries.ts';
import { importIgnored } from '../file/fleet-problems.ts';
import { hostMatcher } from '../file/select.ts';

/**
 * Keeps the imported hosts that match patterns: by name (`*`, `?` and ranges) or by group; a leading `!`
 * excludes. Patterns that only exclude keep the rest.
 * @returns the remaining hosts, and the patterns without a match
 */
export function filterImport(
  inventory: ImportedInventory,
  patterns: readonly string[] | undefined,
): { readonly inventory: ImportedInventory; readonly problems: readonly Problem[] } {
  if (patterns === undefined) return { inventory: { ...inventory, hosts: oncePerMachine(inventory.hosts).hosts }, problems: [] };
  const matchers = patterns.map((text) => {
    const pattern = text.replace(/^!/, '');
    return { pattern, isNegated: text.startsWith('!'), matches: hostMatcher(pattern) };
  });
  const desired = matchers.filter(({ isNegated }) => !isNegated);
  const isDesired = (host: ImportedHost): boolean =>
    (desired.length === 0 || desired.some(({ matches }) => matches(host))) &&
    !matchers.some(({ isNegated, matches }) => isNegated && matches(host));
  const idle = [...desired, ...matchers.filter(({ isNegated }) => isNegated)].filter(({ matches }) => !inventory.hosts.some(matches));
  return {
    inventory: { ...inventory, hosts: oncePerMachine(inventory.hosts.filter(isDesired)).hosts },
    problems: idle.map(({ pattern }) =>
      importIgnored(`the pattern ${JSON.stringify(pattern)} matches no imported host or group`, 'Correct or remove the pattern'),
    ),
  };
}

/**
 * Keeps the first of several names of a machine.
 * @returns also the other names, each with the first
 */
export function oncePerMachine(hosts: readonly ImportedHost[]): {
  readonly hosts: readonly ImportedHost[];
  readonly others: ReadonlyMap<string, string>;
} {
  const first = new Map<string, string>();
  const others = new Map<string, string>();
  for (const { name, machine } of hosts) {
    const known = machine === undefined ? undefined : first.get(machine);
    if (known !== undefined) others.set(name, known);
    else if (machine !== undefined) first.set(machine, name);
  }
  return { hosts: hosts.filter(({ name }) => !others.has(name)), others };
}
