import type { Problem } from '../../../base/errors.ts';
import { namesText } from '../../../base/text/name-ranges.ts';
import type { ImportedHost, ImportedInventory } from '../../file/entries.ts';
import { importIgnored, importInvalid } from '../../file/fleet-problems.ts';
import { importConnection, splitUser } from './connection.ts';
import type { InventoryList } from './inventory.ts';
import { GroupCycle, groupNames, type InventoryHost, inventoryHosts, UNSUPPORTED_VALUE } from './inventory.ts';

/**
 * Imports the hosts of an inventory in the format of `ansible-inventory --list`.
 * @param file the inventory, as named in problems
 */
export function importAnsible(
  list: InventoryList,
  file: string,
): { readonly inventory: ImportedInventory; readonly problems: readonly Problem[] } {
  const position = { file, line: 1, column: 1 };
  const hosts = hostsOf(list);
  if ('cycle' in hosts) {
    const message = `circular reference between groups: ${hosts.cycle.join(' -> ')}`;
    const problem = importInvalid(message, 'Remove one of these groups from the children of the group before it');
    return { inventory: { hosts: [], groups: [] }, problems: [{ ...problem, position }] };
  }
  const imported: ImportedHost[] = [];
  const found = new SharedWarnings();
  const errors = groupsListedAsHosts(list).map((problem) => ({ ...problem, position }));
  for (const host of hosts) {
    const [userOfName, name] = splitUser(host.name);
    const { written, warnings, exclusionReason } = importConnection(host, { position, userOfName });
    if (exclusionReason !== null) {
      const notify = (names: readonly string[]): Problem => ({
        ...importIgnored(`${hostsText(names)} ${names.length === 1 ? 'is' : 'are'} not imported: ${exclusionReason}`),
        position,
      });
      found.add(`excluded: ${exclusionReason}`, name, notify);
      continue;
    }
    for (const warning of warnings)
      found.add(warning.message, name, (names) => ({ ...warning, message: `${warning.message} (${hostsText(names)})` }));
    const unread = [...host.variables].flatMap(([variable, value]) => (value === UNSUPPORTED_VALUE ? [variable] : []));
    imported.push({ name, place: { position, path: '' }, groups: host.groups, written, ...(unread.length === 0 ? {} : { unread }) });
  }
  return { inventory: { hosts: imported, groups: groupNames(list) }, problems: [...errors, ...found.problems] };
}

/**
 * A host with the name of a group is a group whose `:children` was forgotten, unless the host is in that group: its
 * hosts would be missing, and the name of the group would be contacted. Ansible only warns.
 */
function groupsListedAsHosts({ groups }: InventoryList): readonly Problem[] {
  return [...groups].flatMap(([group, { hosts }]) =>
    hosts
      .filter((host) => groups.has(host) && groups.get(host)?.hosts.includes(host) !== true)
      .map((host) => {
        const message = `${JSON.stringify(host)} is a group, but group "${group}" lists it as a host`;
        const hint = `Write [${group}:children] above the names of groups, or in YAML children instead of hosts. If it is a host, rename the group or the host`;
        return importInvalid(message, hint);
      }),
  );
}

function hostsText(names: readonly string[]): string {
  return `${names.length === 1 ? 'host' : 'hosts'} ${namesText(names)}`;
}

function hostsOf(list: InventoryList): readonly InventoryHost[] | { readonly cycle: readonly string[] } {
  try {
    return inventoryHosts(list);
  } catch (error) {
    if (error instanceof GroupCycle) return { cycle: error.groups };
    throw error;
  }
}

/** Groups warnings: a warning about thousands of hosts of a group is reported once, for the first host. */
class SharedWarnings {
  readonly #found = new Map<string, { readonly names: string[]; readonly notify: (names: readonly string[]) => Problem }>();

  /** @param key equal for warnings that are grouped */
  add(key: string, name: string, notify: (names: readonly string[]) => Problem): void {
    const same = this.#found.get(key) ?? { names: [], notify };
    same.names.push(name);
    this.#found.set(key, same);
  }

  get problems(): readonly Problem[] {
    return [...this.#found.values()].map(({ names, notify }) => notify(names));
  }
}
