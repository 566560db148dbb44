import { z } from 'zod';

const GROUP = z.object({ hosts: z.array(z.string()).default([]), children: z.array(z.string()).default([]) });
/** Key of the host variables in Ansible's JSON; all other keys are groups. */
const META = '_meta';
const LIST = z
  .object({ [META]: z.object({ hostvars: z.record(z.string(), z.record(z.string(), z.unknown())).default({}) }) })
  .catchall(GROUP);

/** What `ansible-inventory --list` prints. */
export interface InventoryList {
  /** Names of hosts and of groups directly below, by the name of a group. */
  readonly groups: ReadonlyMap<string, { readonly hosts: readonly string[]; readonly children: readonly string[] }>;
  /** All variables of a host, those of its groups included, by the name of the host. */
  readonly variables: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
}

/**
 * Reads the output of `ansible-inventory --list`.
 * @returns null: this is no such output
 * @see ansible cli/inventory.py (`json_inventory`)
 */
export function readInventoryList(text: string): InventoryList | null {
  const read = LIST.safeParse(parseJson(text));
  if (!read.success) return null;
  const { [META]: meta, ...groups } = read.data;
  return { groups: new Map(Object.entries(groups)), variables: new Map(Object.entries(meta.hostvars)) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
