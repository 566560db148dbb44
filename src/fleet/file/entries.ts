import type { SourceDocument } from '../../codec/source.ts';
import { duplicateHost, invalidInventoryName, invalidRange, rangesDiffer, tooManyHosts } from './fleet-problems.ts';
import { fileLayer, importedLayer, type Layer } from './layer.ts';
import type { ProblemCollector, SettingLocation } from './problem-collector.ts';
import { type Expanded, expandRanges, MAX_HOSTS } from './range.ts';
import type { FleetFile, FleetLayer } from './schema.ts';

export interface ImportedHost {
  readonly name: string;
  readonly place: SettingLocation;
  /** In layer order, lowest first. */
  readonly groups: readonly string[];
  /** Its settings in the inventory: address, ssh, variables. */
  readonly written: FleetLayer;
  /** Destination of its connection and of each jump host, normalized. Equal for names of one host. Absent: unknown. */
  readonly machine?: string;
  /** The ssh_config that has the host. */
  readonly sshConfig?: string;
  /** Names of variables with a list or an object as value, which fleet files do not support. */
  readonly unread?: readonly string[];
}

/** The result of an import, in the order of `imports` in the fleet file. */
export interface ImportedInventory {
  readonly hosts: readonly ImportedHost[];
  /** All groups of the inventory, also those without hosts. */
  readonly groups: readonly string[];
}

export interface HostEntry {
  readonly name: string;
  readonly place: SettingLocation;
  readonly groups: readonly GroupRef[];
  /** Layers of the host itself, above those of its groups. */
  readonly layers: readonly Layer[];
  /** Values of the ranges in its name. */
  readonly indexes: readonly string[];
  /** Value of an address range, if the address is one. */
  readonly address: string | null;
  /** Where the connection to its name ends, if an import knows that. */
  readonly machine?: string | undefined;
  /** The ssh_config from which the host was imported. */
  readonly sshConfig?: string | undefined;
}

export interface GroupRef {
  readonly name: string;
  readonly place: SettingLocation;
}

/** Start character, then letters; includes addresses, which inventories use as names. */
const HOST_NAME = /^[A-Za-z0-9_:][\w.:%-]{0,252}$/;

/**
 * Expands the hosts of a fleet file and its imports. A host of the file with the name of an imported one
 * extends it.
 * @returns by name, in file order, imports last
 */
export function hostEntries(
  fleet: FleetFile,
  document: SourceDocument,
  imports: readonly ImportedInventory[],
  findings: ProblemCollector,
): ReadonlyMap<string, HostEntry> {
  const entries = new Map<string, HostEntry>();
  const imported = importedEntries(fleet, document, imports, findings);
  const add = (entry: HostEntry): boolean => {
    const same = entries.get(entry.name);
    if (same) findings.add(duplicateHost(entry.name, formatPlace(same.place)), entry.place);
    else entries.set(entry.name, entry);
    return entries.size <= MAX_HOSTS;
  };
  for (const [index, host] of (fleet.hosts ?? []).entries()) {
    for (const entry of expandHost(host, fileLayer(`host ${host.name}`, host, document, ['hosts', index]), findings))
      if (!add(joined(entry, imported.get(entry.name)))) return refuse(findings, entry);
  }
  for (const entry of imported.values()) if (!entries.has(entry.name) && !add(entry)) return refuse(findings, entry);
  return entries;
}

/** No host: the settings of so many hosts take long to validate. */
function refuse(findings: ProblemCollector, { place }: HostEntry): ReadonlyMap<string, HostEntry> {
  findings.add(tooManyHosts(MAX_HOSTS), place);
  return new Map();
}

/** `file:line:column`. */
export function formatPlace({ position: { file, line, column } }: SettingLocation): string {
  return `${file}:${line}:${column}`;
}

function joined(entry: HostEntry, imported: HostEntry | undefined): HostEntry {
  if (imported === undefined) return entry;
  return {
    ...entry,
    sshConfig: imported.sshConfig,
    groups: [...imported.groups, ...entry.groups],
    layers: [...imported.layers, ...entry.layers],
  };
}

function* expandHost(host: NonNullable<FleetFile['hosts']>[number], layer: Layer, findings: ProblemCollector): Iterable<HostEntry> {
  const place = layer.place(['name']);
  const names = expanded(host.name, place, findings);
  const addresses = host.address === undefined || !hasRange(host.address) ? [] : expanded(host.address, layer.place(['address']), findings);
  if (addresses.length > 0 && names.length > 0 && addresses.length !== names.length) {
    findings.add(rangesDiffer(names.length, addresses.length), layer.place(['address']));
    return;
  }
  const groups = (host.groups ?? []).map((name, i): GroupRef => ({ name, place: layer.place(['groups', i]) }));
  const layers = [layer];
  for (const [i, { text, indexes }] of names.entries()) {
    if (!isHostName(text)) {
      findings.add(invalidInventoryName('host', text), place);
      return;
    }
    yield { name: text, place, groups, layers, indexes, address: addresses[i]?.text ?? null };
  }
}

function isHostName(name: string): boolean {
  return HOST_NAME.test(name) && name !== 'all';
}

function expanded(pattern: string, place: SettingLocation, findings: ProblemCollector): readonly Expanded[] {
  const expansion = expandRanges(pattern);
  if ('items' in expansion) return expansion.items;
  findings.add(invalidRange(expansion.fault.message, expansion.fault.hint), place);
  return [];
}

function importedEntries(
  fleet: FleetFile,
  document: SourceDocument,
  imports: readonly ImportedInventory[],
  findings: ProblemCollector,
): ReadonlyMap<string, HostEntry> {
  const entries = new Map<string, HostEntry>();
  for (const [index, { hosts }] of imports.entries()) {
    const written = fleet.imports?.[index] ?? {};
    const own = fileLayer(`import ${index + 1}`, written, document, ['imports', index]);
    const added = (written.groups ?? []).map((name, i): GroupRef => ({ name, place: own.place(['groups', i]) }));
    for (const host of hosts) {
      const { name, place } = host;
      const same = entries.get(name);
      if (!isHostName(name)) findings.add(invalidInventoryName('host', name), place);
      else if (same) findings.add(duplicateHost(name, formatPlace(same.place)), place);
      else {
        const groups = [...host.groups.map((group): GroupRef => ({ name: group, place })), ...added];
        entries.set(name, {
          name,
          place,
          groups,
          layers: [importedLayer(`host ${name}`, host.written, place), own],
          indexes: [],
          address: null,
          machine: host.machine,
          sshConfig: host.sshConfig,
        });
      }
    }
  }
  return entries;
}

/** Whether an address is a range or a range pattern: it contains a colon in brackets. */
function hasRange(address: string): boolean {
  const closed = address.split(']').slice(0, -1);
  return closed.some((text) => text.includes('[') && text.includes(':', text.indexOf('[')));
}
