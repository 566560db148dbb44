import * as z from 'zod';
import { parseJson } from '../../../base/json.ts';

const GROUP = z.object({ hosts: z.array(z.string()).default([]), children: z.array(z.string()).default([]) });
/** Key of the host variables in Ansible's JSON; all other keys are groups. */
const META = '_meta';
const LIST = z
  .object({ [META]: z.object({ hostvars: z.record(z.string(), z.record(z.string(), z.unknown())).default({}) }) })
  .catchall(GROUP);

export interface InventoryList {
  /** Names of the direct hosts and subgroups, by group name. */
  readonly groups: ReadonlyMap<string, { readonly hosts: readonly string[]; readonly children: readonly string[] }>;
  /** All variables of a host including those of its groups, by host name. */
  readonly variables: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
}

/**
 * Reads the output of `ansible-inventory --list`.
 * @returns null: the text has another format
 * @see ansible cli/inventory.py (`json_inventory`)
 */
export function readInventoryList(text: string): InventoryList | null {
  const read = LIST.safeParse(parseJson(text));
  if (!read.success) return null;
  const { [META]: meta, ...groups } = read.data;
  return { groups: new Map(Object.entries(groups)), variables: new Map(Object.entries(meta.hostvars)) };
}

/** A list or an object, which templates do not support. */
export const UNSUPPORTED_VALUE: unique symbol = Symbol('unsupported value');

/** A host with the merged variables of its groups. */
export interface InventoryHost {
  readonly name: string;
  /**
   * All groups of the host, including parents; the group with the lowest priority first. Without `all` and
   * `ungrouped`.
   */
  readonly groups: readonly string[];
  readonly variables: ReadonlyMap<string, string | number | boolean | null | typeof UNSUPPORTED_VALUE>;
}

export class GroupCycle extends Error {
  readonly groups: readonly string[];
  constructor(groups: readonly string[]) {
    super('groups contain each other');
    this.groups = groups;
  }
}

const [ALL, UNGROUPED] = ['all', 'ungrouped'];

/** The names of all groups, in the order of the list. Without `all` and `ungrouped`. */
export function groupNames({ groups }: InventoryList): readonly string[] {
  const names = [...groups].flatMap(([name, { children }]) => [name, ...children]);
  return [...new Set(names)].filter((name) => name !== ALL && name !== UNGROUPED);
}

/**
 * The hosts of a list, in the order of its groups, starting at `all`. Of the groups of a host, the deeper one
 * wins, then the later name.
 * @throws GroupCycle
 * @see ansible inventory/helpers.py sort_groups; `ansible_group_priority` is not in the list
 */
export function inventoryHosts(list: InventoryList): readonly InventoryHost[] {
  const depths = groupDepths(list);
  const memberships = new Map<string, Set<string>>();
  const visit = (name: string, path: readonly string[]): void => {
    const { hosts = [], children = [] } = list.groups.get(name) ?? {};
    for (const host of hosts) {
      const groups = memberships.get(host) ?? new Set();
      memberships.set(host, groups);
      for (const group of [...path, name]) groups.add(group);
    }
    for (const child of children) visit(child, [...path, name]);
  };
  const children = new Set([...list.groups.values()].flatMap((group) => group.children));
  // Hosts without a group are below `all`, as in the output of inventory scripts.
  for (const name of new Set([ALL, ...[...list.groups.keys()].filter((each) => !children.has(each))])) visit(name, []);
  for (const host of list.variables.keys()) if (!memberships.has(host)) memberships.set(host, new Set());
  return [...memberships].map(([name, groups]) => ({
    name,
    groups: [...groups]
      .filter((group) => group !== ALL && group !== UNGROUPED)
      .sort((a, b) => (depths.get(a) ?? 0) - (depths.get(b) ?? 0) || (a < b ? -1 : 1)),
    variables: new Map(Object.entries(list.variables.get(name) ?? {}).map(([variable, value]) => [variable, scalarOf(value)])),
  }));
}

/** The length of the longest path from `all` to each group. */
function groupDepths({ groups }: InventoryList): ReadonlyMap<string, number> {
  const parents = new Map<string, string[]>();
  for (const [name, { children }] of groups) for (const child of children) parents.set(child, [...(parents.get(child) ?? []), name]);
  const depths = new Map([[ALL, 0]]);
  const depthOf = (name: string, path: readonly string[]): number => {
    if (path.includes(name)) throw new GroupCycle([...path.slice(path.indexOf(name)), name].reverse());
    const known = depths.get(name);
    if (known !== undefined) return known;
    const depth = 1 + Math.max(0, ...(parents.get(name) ?? []).map((parent) => depthOf(parent, [...path, name])));
    depths.set(name, depth);
    return depth;
  };
  for (const name of [...groups.keys(), ...parents.keys()]) depthOf(name, []);
  return depths;
}

function scalarOf(value: unknown): string | number | boolean | null | typeof UNSUPPORTED_VALUE {
  return value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : UNSUPPORTED_VALUE;
}
