import * as z from 'zod';

const GROUP = z.object({ hosts: z.array(z.string()).default([]), children: z.array(z.string()).default([]) });
/** Key of the host variables in Ansible's JSON; all other keys are groups. */
const META = '_meta';
const LIST = z
  .object({ [META]: z.object({ hostvars: z.record(z.string(), z.record(z.string(), z.unknown())).default({}) }) })
  .catchall(GROUP);

/** The output of `ansible-inventory --list`. */
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
