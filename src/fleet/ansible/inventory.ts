import type { Position } from '../../base/errors.ts';
import type { AnsibleValue } from './value.ts';

/** A group of an inventory under construction. */
interface Group {
  readonly name: string;
  readonly hosts: Set<string>;
  readonly children: Set<string>;
  readonly variables: Map<string, AnsibleValue>;
  /** Of `group_vars` beside the inventory. */
  readonly fileVariables: Map<string, AnsibleValue>;
  priority: number;
}

interface Host {
  readonly position: Position;
  readonly variables: Map<string, AnsibleValue>;
  readonly fileVariables: Map<string, AnsibleValue>;
}

/** A host with all that its groups say. */
export interface InventoryHost {
  readonly name: string;
  /** Where it was named first. */
  readonly position: Position;
  /** All groups it is in, also by their children; the one whose word counts least first. Without `all` and `ungrouped`. */
  readonly groups: readonly string[];
  readonly variables: ReadonlyMap<string, AnsibleValue>;
}

/** Groups that lead in a circle. */
export class GroupCycle extends Error {
  readonly groups: readonly string[];
  constructor(groups: readonly string[]) {
    super('groups lead in a circle');
    this.groups = groups;
  }
}

/** What one or several inventory files say, as Ansible puts it together. */
export class Inventory {
  readonly #groups = new Map<string, Group>();
  readonly #hosts = new Map<string, Host>();

  constructor() {
    this.addGroup('all');
    this.addGroup('ungrouped');
  }

  get groupNames(): readonly string[] {
    return [...this.#groups.keys()].filter((name) => name !== 'all' && name !== 'ungrouped');
  }

  hasGroup(name: string): boolean {
    return this.#groups.has(name);
  }

  hasHost(name: string): boolean {
    return this.#hosts.has(name);
  }

  addGroup(name: string): void {
    if (this.#groups.has(name)) return;
    this.#groups.set(name, { name, hosts: new Set(), children: new Set(), variables: new Map(), fileVariables: new Map(), priority: 1 });
  }

  addChild(parent: string, child: string): void {
    this.addGroup(parent);
    this.addGroup(child);
    this.#groups.get(parent)?.children.add(child);
  }

  /** @param port of `host:port`; counts only where the host is named first */
  addHost(
    name: string,
    { group, position, port }: { readonly group: string; readonly position: Position; readonly port: number | null },
  ): void {
    if (!this.#hosts.has(name)) {
      const variables = new Map<string, AnsibleValue>(port === null ? [] : [['ansible_port', port]]);
      this.#hosts.set(name, { position, variables, fileVariables: new Map() });
    }
    this.addGroup(group);
    this.#groups.get(group)?.hosts.add(name);
  }

  setHostVariable(host: string, name: string, value: AnsibleValue, fromFile = false): void {
    const found = this.#hosts.get(host);
    (fromFile ? found?.fileVariables : found?.variables)?.set(name, value);
  }

  setGroupVariable(group: string, name: string, value: AnsibleValue, fromFile = false): void {
    const found = this.#groups.get(group);
    // Of files it is a variable like others, and comes too late to count.
    if (name === PRIORITY && found !== undefined && !fromFile) found.priority = priorityOf(value);
    else (fromFile ? found?.fileVariables : found?.variables)?.set(name, value);
  }

  /**
   * All hosts in the order they were named. Of the groups of a host a deeper one wins over one further up, then the greater
   * `ansible_group_priority`, then the later name.
   * @throws GroupCycle
   * @see ansible inventory/helpers.py sort_groups, DEFAULT VARIABLE_PRECEDENCE
   */
  resolve(): readonly InventoryHost[] {
    const parents = new Map<string, string[]>();
    const memberships = new Map<string, string[]>();
    for (const group of this.#groups.values()) {
      for (const child of group.children) parents.set(child, [...(parents.get(child) ?? []), group.name]);
      for (const host of group.hosts) memberships.set(host, [...(memberships.get(host) ?? []), group.name]);
    }
    const depths = new Map<string, number>();
    const depthOf = (name: string, route: readonly string[]): number => {
      const known = depths.get(name);
      if (known !== undefined) return known;
      if (route.includes(name)) throw new GroupCycle([...route.slice(route.indexOf(name)), name].reverse());
      if (name === 'all') return 0;
      const depth = 1 + Math.max(0, ...(parents.get(name) ?? []).map((parent) => depthOf(parent, [...route, name])));
      depths.set(name, depth);
      return depth;
    };
    for (const name of this.#groups.keys()) depthOf(name, []);
    const rank = (name: string): readonly [number, number, string] => [depths.get(name) ?? 0, this.#groups.get(name)?.priority ?? 1, name];
    const ancestors = new Map<string, ReadonlySet<string>>();
    const withAncestors = (name: string): ReadonlySet<string> => {
      const known = ancestors.get(name);
      if (known) return known;
      const all = new Set([name, ...(parents.get(name) ?? []).flatMap((parent) => [...withAncestors(parent)])]);
      ancestors.set(name, all);
      return all;
    };
    const sorted = new Map<string, readonly string[]>();
    return [...this.#hosts].map(([name, host]): InventoryHost => {
      const own = memberships.get(name) ?? [];
      const key = own.join('\0');
      const ranked = sorted.get(key) ?? sortGroups(allGroups(own, withAncestors), rank);
      sorted.set(key, ranked);
      const variables = this.#variablesOf(host, ranked);
      return { name, position: host.position, groups: ranked.filter((group) => group !== UNGROUPED), variables };
    });
  }

  /** Inventory before files, `all` before other groups, groups before hosts. */
  #variablesOf({ variables, fileVariables }: Host, groups: readonly string[]): ReadonlyMap<string, AnsibleValue> {
    const all = this.#groups.get('all');
    const own = groups.flatMap((name) => this.#groups.get(name) ?? []);
    const layers = [
      all?.variables,
      ...own.map((group) => group.variables),
      all?.fileVariables,
      ...own.map((group) => group.fileVariables),
      variables,
      fileVariables,
    ];
    return new Map(layers.flatMap((layer) => [...(layer ?? [])]));
  }
}

const UNGROUPED = 'ungrouped';

/** Groups of a host with those above. Who is in a group is not among those without one, whatever the file says. */
function allGroups(own: readonly string[], withAncestors: (group: string) => ReadonlySet<string>): ReadonlySet<string> {
  const all = new Set(own.flatMap((group) => [...withAncestors(group)]));
  const hasGroup = [...all].some((group) => group !== UNGROUPED && group !== 'all');
  if (!hasGroup) return new Set([UNGROUPED]);
  if (own.includes(UNGROUPED)) all.delete(UNGROUPED);
  return all;
}

const PRIORITY = 'ansible_group_priority';

function priorityOf(value: AnsibleValue): number {
  return typeof value === 'number' ? Math.trunc(value) : typeof value === 'string' && /^\s*[-+]?[0-9]+\s*$/.test(value) ? Number(value) : 1;
}

type Rank = readonly [number, number, string];

function sortGroups(names: ReadonlySet<string>, rank: (name: string) => Rank): readonly string[] {
  const ranked = [...names].filter((name) => name !== 'all').map(rank);
  ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : a[2] > b[2] ? 1 : 0));
  return ranked.map(([, , name]) => name);
}
