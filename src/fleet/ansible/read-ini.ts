import type { Position, Problem } from '../../base/errors.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { importInvalid } from '../fleet-problems.ts';
import { type HostPattern, readHostPattern } from './host-pattern.ts';
import type { Inventory } from './inventory.ts';
import { splitHostLine } from './shell-words.ts';
import { type AnsibleValue, parseIniValue } from './value.ts';

type Section = { readonly group: string; readonly kind: 'hosts' | 'children' | 'vars' };

/** A group that was named before it was declared. */
interface Pending {
  readonly kind: 'children' | 'vars';
  readonly position: Position;
  readonly named: string;
}

const SECTION = /^\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?$/;
const GROUP_NAME = /^([^:\]\s]+)\s*(?:#.*)?$/s;

/**
 * Reads an inventory in INI form into `inventory`.
 * @returns what is wrong with it, each with its line
 * @see ansible plugins/inventory/ini.py
 */
export function readIniInventory(text: string, file: string, inventory: Inventory): readonly Problem[] {
  const reader = new IniReader(file, inventory);
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split(/\r\n|\r|\n/)
    .entries())
    reader.readLine(line, index + 1);
  return reader.finish();
}

class IniReader {
  readonly #file: string;
  readonly #inventory: Inventory;
  readonly #problems: Problem[] = [];
  readonly #pending = new Map<string, Pending>();
  readonly #children: (readonly [parent: string, child: string])[] = [];
  /** Set when all groups are known: a group that is declared further down has its variables all the same. */
  readonly #variables: (readonly [group: string, name: string, value: AnsibleValue])[] = [];
  readonly #declared = new Set(['all', 'ungrouped']);
  /** Null below a heading that cannot be read: what stands there is anybody's guess. */
  #section: Section | null = { group: 'ungrouped', kind: 'hosts' };

  constructor(file: string, inventory: Inventory) {
    this.#file = file;
    this.#inventory = inventory;
  }

  readLine(raw: string, number: number): void {
    const line = raw.trim();
    if (line === '' || line.startsWith('#') || line.startsWith(';')) return;
    const position = { file: this.#file, line: number, column: raw.length - raw.trimStart().length + 1 };
    const heading = SECTION.exec(line);
    if (heading) this.#startSection(heading[1] as string, heading[2] ?? 'hosts', position);
    else if (line.startsWith('[') && line.endsWith(']')) {
      this.#section = null;
      this.#problem(
        importInvalid(`${quoteValue(line)} is not a heading`, 'Write [group], [group:vars] or [group:children], without blanks'),
        position,
      );
    } else if (this.#section !== null) this.#readEntry(this.#section, line, position);
  }

  finish(): readonly Problem[] {
    for (const [group, { kind, position, named }] of this.#pending) {
      if (this.#isDeclared(group)) continue;
      const message =
        kind === 'vars' ? `there is no group ${quoteValue(group)} to have these variables` : `there is no group ${quoteValue(named)}`;
      this.#problem(importInvalid(message, `Declare it with a heading [${group}]`), position);
    }
    for (const [parent, child] of this.#children) this.#inventory.addChild(parent, child);
    for (const [group, name, value] of this.#variables) this.#inventory.setGroupVariable(group, name, value);
    return this.#problems;
  }

  #isDeclared(group: string): boolean {
    return this.#declared.has(group) || this.#inventory.hasGroup(group);
  }

  #startSection(group: string, kind: string, position: Position): void {
    if (kind !== 'hosts' && kind !== 'children' && kind !== 'vars') {
      this.#section = null;
      this.#problem(importInvalid(`a heading of type ${quoteValue(kind)} is not known`, 'There are hosts, vars and children'), position);
      return;
    }
    this.#section = { group, kind };
    if (kind === 'vars') {
      if (!this.#isDeclared(group)) this.#pending.set(group, { kind, position, named: group });
      return;
    }
    this.#declared.add(group);
    this.#inventory.addGroup(group);
  }

  #readEntry({ group, kind }: Section, line: string, position: Position): void {
    if (kind === 'hosts') this.#readHost(group, line, position);
    else if (kind === 'children') this.#readChild(group, line, position);
    else this.#readVariable(group, line, position);
  }

  #readChild(parent: string, line: string, position: Position): void {
    const child = GROUP_NAME.exec(line)?.[1];
    if (child === undefined) {
      this.#problem(importInvalid(`${quoteValue(line)} is not the name of a group`), position);
      return;
    }
    if (!this.#isDeclared(child) && !this.#pending.has(child)) this.#pending.set(child, { kind: 'children', position, named: child });
    this.#children.push([parent, child]);
  }

  #readVariable(group: string, line: string, position: Position): void {
    const at = line.indexOf('=');
    if (at < 0) this.#problem(importInvalid(`${quoteValue(line)} is not name=value`), position);
    else this.#variables.push([group, line.slice(0, at).trim(), parseIniValue(line.slice(at + 1).trim())]);
  }

  #readHost(group: string, line: string, position: Position): void {
    const words = splitHostLine(line);
    const hosts = readHostPattern(words?.[0] ?? '');
    const settings = words?.slice(1) ?? [];
    const problem = hostLineProblem(words, hosts, settings);
    if (problem !== null) this.#problem(problem, position);
    if (problem !== null || 'fault' in hosts) return;
    for (const name of hosts.names) {
      this.#inventory.addHost(name, { group, position, port: hosts.port });
      for (const setting of settings) {
        const at = setting.indexOf('=');
        this.#inventory.setHostVariable(name, setting.slice(0, at), parseIniValue(setting.slice(at + 1)));
      }
    }
  }

  #problem(problem: Problem, position: Position): void {
    this.#problems.push({ ...problem, position });
  }
}

function hostLineProblem(words: readonly string[] | null, hosts: HostPattern, settings: readonly string[]): Problem | null {
  if (words === null) return importInvalid('a quote is not closed');
  if ('fault' in hosts) return importInvalid(hosts.fault.message, hosts.fault.hint);
  const [pattern = ''] = words;
  if (pattern.endsWith(':') && hosts.port === null)
    return importInvalid(`${quoteValue(pattern)} ends with a colon`, 'Write the port behind it, or leave it out');
  const odd = settings.find((setting) => !setting.includes('='));
  return odd === undefined ? null : importInvalid(`${quoteValue(odd)} is not name=value`);
}
