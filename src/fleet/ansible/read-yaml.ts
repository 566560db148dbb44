import type { Problem } from '../../base/errors.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { entryOf, parseSource, type SourceDocument, type SourceEntry, type SourceMap, type SourceNode } from '../../codec/source.ts';
import { importIgnored, importInvalid } from '../fleet-problems.ts';
import { FLEET_LIMITS } from '../load.ts';
import { readHostPattern } from './host-pattern.ts';
import type { Inventory } from './inventory.ts';
import { pyKey, pyValue } from './py-yaml.ts';
import type { AnsibleValue } from './value.ts';

/** The one mapping of a YAML or JSON text; null when it holds something else, or nothing. */
export function parseYamlInventory(
  text: string,
  file: string,
): { readonly document: SourceDocument | null; readonly problems: readonly Problem[] } {
  const { documents, problems } = parseSource(text, file, FLEET_LIMITS);
  const found = documents.filter(({ root }) => root !== null);
  const [document] = found;
  return { document: problems.length === 0 && found.length === 1 && document?.root?.kind === 'map' ? document : null, problems };
}

/**
 * Reads an inventory in YAML form, or what `ansible-inventory --list` prints, into `inventory`.
 * @param document its root is a mapping; `text` is what it was read from
 * @returns what is wrong with it, each with its place
 * @see ansible plugins/inventory/yaml.py, script.py
 */
export function readYamlInventory(document: SourceDocument, text: string, inventory: Inventory): readonly Problem[] {
  const reader = new YamlReader(document, text, inventory);
  const root = document.root as SourceMap;
  const meta = entryOf(root, '_meta')?.value;
  for (const { key, value } of lastOfEach(root, text)) if (key !== '_meta') reader.readGroup(key, value, 0);
  if (meta !== undefined) reader.readHostVariables(entryOf(meta, 'hostvars')?.value ?? null);
  return reader.problems;
}

/** Variables of a file of `group_vars` or `host_vars`: a mapping. */
export function readVariables(node: SourceNode | null, text: string): readonly (readonly [string, AnsibleValue])[] {
  return node?.kind === 'map' ? lastOfEach(node, text).map(({ key, value }) => [key, pyValue(value, text)] as const) : [];
}

const MAX_DEPTH = 100;

class YamlReader {
  readonly problems: Problem[] = [];
  readonly #document: SourceDocument;
  readonly #text: string;
  readonly #inventory: Inventory;

  constructor(document: SourceDocument, text: string, inventory: Inventory) {
    this.#document = document;
    this.#text = text;
    this.#inventory = inventory;
  }

  readGroup(name: string, node: SourceNode, depth: number): void {
    if (depth > MAX_DEPTH) return;
    // A script may list the hosts of a group alone.
    if (node.kind === 'list' && depth === 0) this.#addHosts(name, node);
    else if (node.kind === 'list' || (node.kind === 'scalar' && node.scalar.type !== 'null'))
      this.#problem(importIgnored(`${quoteValue(name)} is not read: it is not a group`), node.offset);
    else {
      this.#inventory.addGroup(name);
      if (node.kind === 'map') for (const entry of lastOfEach(node, this.#text)) this.#readMember(name, entry, depth);
    }
  }

  #readMember(group: string, { key, keyOffset, value }: SourceEntry, depth: number): void {
    if (value.kind === 'scalar' && value.scalar.type === 'null') return;
    if (key === 'vars')
      for (const [variable, found] of readVariables(value, this.#text)) this.#inventory.setGroupVariable(group, variable, found);
    else if (key === 'children') this.#readChildren(group, value, depth);
    else if (key === 'hosts') this.#addHosts(group, value);
    else {
      const message = `${quoteValue(key)} in the group ${quoteValue(group)} has no effect`;
      this.#problem(importIgnored(message, 'Groups have hosts, children and vars'), keyOffset);
    }
  }

  #readChildren(parent: string, node: SourceNode, depth: number): void {
    for (const { name, value } of membersOf(node, this.#text)) {
      if (value !== null) this.readGroup(name, value, depth + 1);
      this.#inventory.addChild(parent, name);
    }
  }

  #addHosts(group: string, node: SourceNode): void {
    this.#inventory.addGroup(group);
    for (const { name, offset, value } of membersOf(node, this.#text)) {
      const hosts = readHostPattern(name);
      if ('fault' in hosts) {
        this.#problem(importInvalid(hosts.fault.message, hosts.fault.hint), offset);
        continue;
      }
      const position = this.#document.positionAt(offset);
      for (const host of hosts.names) {
        this.#inventory.addHost(host, { group, position, port: hosts.port });
        for (const [variable, found] of readVariables(value, this.#text)) this.#inventory.setHostVariable(host, variable, found);
      }
    }
  }

  readHostVariables(node: SourceNode | null): void {
    if (node?.kind !== 'map') return;
    for (const { key, keyOffset, value } of lastOfEach(node, this.#text)) {
      if (!this.#inventory.hasHost(key))
        this.#inventory.addHost(key, { group: 'ungrouped', position: this.#document.positionAt(keyOffset), port: null });
      for (const [variable, found] of readVariables(value, this.#text)) this.#inventory.setHostVariable(key, variable, found);
    }
  }

  #problem(problem: Problem, offset: number): void {
    this.problems.push({ ...problem, position: this.#document.positionAt(offset) });
  }
}

interface Member {
  readonly name: string;
  readonly offset: number;
  readonly value: SourceNode | null;
}

/** Of a mapping its entries, of a list its items, of a text itself. */
function membersOf(node: SourceNode, text: string): readonly Member[] {
  if (node.kind === 'map') return lastOfEach(node, text).map(({ key, keyOffset, value }) => ({ name: key, offset: keyOffset, value }));
  const items = node.kind === 'list' ? node.items : [node];
  return items.flatMap((item) => (item.kind === 'scalar' ? [{ name: item.text, offset: item.offset, value: null }] : []));
}

/** One entry for each key, by the keys as PyYAML reads them. */
function lastOfEach(node: SourceMap, text: string): SourceMap['entries'] {
  return [...new Map(node.entries.map((entry) => [pyKey(entry, text), entry])).entries()].map(([key, entry]) => ({ ...entry, key }));
}
