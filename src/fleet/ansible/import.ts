import type { Problem } from '../../base/errors.ts';
import type { ImportedHost, ImportedInventory } from '../entries.ts';
import { importIgnored, importInvalid } from '../fleet-problems.ts';
import { namesText } from '../name-ranges.ts';
import { importConnection } from './connection.ts';
import { GroupCycle, Inventory, type InventoryHost } from './inventory.ts';
import { readIniInventory } from './read-ini.ts';
import { parseYamlInventory, readVariables, readYamlInventory } from './read-yaml.ts';
import { STRUCTURE } from './value.ts';

/** A file of an inventory. */
export interface InventoryFile {
  readonly path: string;
  readonly text: string;
}

/** A file of `group_vars` or `host_vars` beside an inventory. */
export interface VariablesFile extends InventoryFile {
  readonly of: 'group' | 'host';
  /** The group or host. */
  readonly name: string;
}

export interface AnsibleImport {
  readonly inventory: ImportedInventory;
  readonly problems: readonly Problem[];
}

/**
 * Reads an inventory of Ansible as Ansible does: INI, YAML, or what `ansible-inventory --list` prints; several files make one.
 * @param variables in the order in which they count, the last one wins
 */
export function importAnsible(files: readonly InventoryFile[], variables: readonly VariablesFile[] = []): AnsibleImport {
  const { hosts, groups, problems } = readAnsibleInventory(files, variables);
  const imported: ImportedHost[] = [];
  const found = new SharedWarnings();
  for (const host of hosts) {
    const { name, position } = host;
    const { written, warnings, leftOut } = importConnection(host);
    if (leftOut !== null) {
      const notify = (names: readonly string[]): Problem => ({
        ...importIgnored(`${namesText(names)} ${names.length === 1 ? 'is' : 'are'} left out: ${leftOut}`),
        position,
      });
      found.add(`left out: ${leftOut}`, name, notify);
      continue;
    }
    for (const warning of warnings) found.add(warning.message, name, (names) => ({ ...warning, host: namesText(names) }));
    const unread = [...host.variables].flatMap(([variable, value]) => (value === STRUCTURE ? [variable] : []));
    imported.push({ name, place: { position, path: '' }, groups: host.groups, written, ...(unread.length === 0 ? {} : { unread }) });
  }
  return { inventory: { hosts: imported, groups }, problems: [...problems, ...found.problems] };
}

/** What a group says of thousands of hosts is told once, at the first of them. */
class SharedWarnings {
  readonly #found = new Map<string, { readonly names: string[]; readonly notify: (names: readonly string[]) => Problem }>();

  /** @param key the same for what may be told together */
  add(key: string, name: string, notify: (names: readonly string[]) => Problem): void {
    const same = this.#found.get(key) ?? { names: [], notify };
    same.names.push(name);
    this.#found.set(key, same);
  }

  get problems(): readonly Problem[] {
    return [...this.#found.values()].map(({ names, notify }) => notify(names));
  }
}

/** What an inventory says, before it is put in the words of a fleet. */
export function readAnsibleInventory(
  files: readonly InventoryFile[],
  variables: readonly VariablesFile[] = [],
): { readonly hosts: readonly InventoryHost[]; readonly groups: readonly string[]; readonly problems: readonly Problem[] } {
  const inventory = new Inventory();
  const problems = files.flatMap((file) => readInventoryFile(file, inventory));
  problems.push(...variables.flatMap((file) => readVariablesFile(file, inventory)));
  try {
    return { hosts: inventory.resolve(), groups: inventory.groupNames, problems };
  } catch (error) {
    if (!(error instanceof GroupCycle)) throw error;
    const position = { file: files[0]?.path ?? '', line: 1, column: 1 };
    const problem = importInvalid(
      `its groups lead in a circle: ${error.groups.join(', then ')}`,
      'Take one of them out of the children of the other',
    );
    return { hosts: [], groups: [], problems: [...problems, { ...problem, position }] };
  }
}

/** What only Ansible can run is told as that: its lines are neither hosts nor mistakes. */
function readInventoryFile(file: InventoryFile, inventory: Inventory): readonly Problem[] {
  if (file.text.startsWith('#!')) return [notListed(file, 'a program')];
  return /^plugin:/m.test(file.text) ? [notListed(file, 'the settings of a plugin')] : readListedFile(file, inventory);
}

function notListed({ path }: InventoryFile, what: string): Problem {
  const hint = 'Import what it comes to: ansible-inventory -i FILE --list > inventory.json';
  return { ...importInvalid(`this is ${what}, which only Ansible can run`, hint), position: { file: path, line: 1, column: 1 } };
}

/** By its ending, as Ansible: what may be either is YAML when it holds a mapping. */
function readListedFile({ path, text }: InventoryFile, inventory: Inventory): readonly Problem[] {
  const ending = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase();
  const isYaml = ending === 'yaml' || ending === 'yml' || ending === 'json';
  if (text.startsWith('$ANSIBLE_VAULT'))
    return [{ ...importInvalid('the file is encrypted by ansible-vault', DECRYPT), position: { file: path, line: 1, column: 1 } }];
  if (!isYaml && ending !== undefined) return readIniInventory(text, path, inventory);
  const { document, problems } = parseYamlInventory(text, path);
  if (document !== null) return readYamlInventory(document, text, inventory);
  if (!isYaml) return readIniInventory(text, path, inventory);
  if (problems.length > 0) return problems;
  return [
    {
      ...importInvalid('this is not an inventory in YAML', 'Begin it with a group, such as all:'),
      position: { file: path, line: 1, column: 1 },
    },
  ];
}

const DECRYPT = 'Import what ansible-inventory --list prints, or decrypt the file';

function readVariablesFile({ path, text, of, name }: VariablesFile, inventory: Inventory): readonly Problem[] {
  const at = { position: { file: path, line: 1, column: 1 } };
  if (text.startsWith('$ANSIBLE_VAULT')) return [{ ...importIgnored('the file is encrypted: it is not read', DECRYPT), ...at }];
  const { document, problems } = parseYamlInventory(text, path);
  if (problems.length > 0) return problems;
  for (const [variable, value] of readVariables(document?.root ?? null, text))
    if (of === 'group') inventory.setGroupVariable(name, variable, value, true);
    else inventory.setHostVariable(name, variable, value, true);
  return [];
}
