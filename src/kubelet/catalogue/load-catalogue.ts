import type { FieldNode, ObjectNode, TypeNode } from '../../codec/type-node.ts';
import type { Catalogue, Field, FieldEntry, FieldType, Flag, FlagEntry, Gate, GateEntry, Minor, Since } from './catalogue.ts';
import { CONDITIONAL_DEFAULTS } from './conditional-defaults.ts';

let loading: Promise<Catalogue> | null = null;

/** Loads the catalogue on the first call; later calls return the same object. */
export function loadCatalogue(): Promise<Catalogue> {
  loading ??= readCatalogue();
  return loading;
}

async function readCatalogue(): Promise<Catalogue> {
  const [fields, flags, gates] = await Promise.all([
    import('./data/fields.json', { with: { type: 'json' } }),
    import('./data/flags.json', { with: { type: 'json' } }),
    import('./data/gates.json', { with: { type: 'json' } }),
  ]);
  // test/unit/kubelet/data.test.ts checks every member of these files against the same types.
  return makeCatalogue({
    fields: fields.default as unknown as readonly FieldEntry[],
    flags: flags.default as unknown as readonly FlagEntry[],
    gates: gates.default as unknown as readonly GateEntry[],
  });
}

function makeCatalogue(entries: {
  readonly fields: readonly FieldEntry[];
  readonly flags: readonly FlagEntry[];
  readonly gates: readonly GateEntry[];
}): Catalogue {
  const fields = new Map(entries.fields.map((entry) => [entry.path, entry]));
  const flags = new Map(entries.flags.map((entry) => [entry.flag, entry]));
  const gates = new Map(entries.gates.map((entry) => [entry.name, entry]));
  const fieldsOf = byMinor((minor) => inMinor(fields, minor, fieldAt));
  const flagsOf = byMinor((minor) => inMinor(flags, minor, flagAt));
  const gatesOf = byMinor((minor) => inMinor(gates, minor, gateAt));
  return {
    fields,
    flags,
    flagsBySpelling: bySpelling(entries.flags),
    gates,
    dependentGates: entries.gates.filter(({ dependencies }) => dependencies !== undefined),
    field: (path, minor) => fieldsOf(minor).get(path) ?? null,
    flag: (name, minor) => flagsOf(minor).get(name) ?? null,
    gate: (name, minor) => gatesOf(minor).get(name) ?? null,
    defaultedFields: byMinor((minor) => defaultedFieldsOf(fieldsOf(minor).values())),
    configurationType: byMinor((minor) => configurationTypeOf(fieldsOf(minor).values())),
  };
}

function bySpelling(entries: readonly FlagEntry[]): ReadonlyMap<string, readonly FlagEntry[]> {
  const found = new Map<string, FlagEntry[]>();
  for (const entry of entries)
    for (const key of [entry.flag.replaceAll('_', '-'), ...(entry.shorthand === undefined ? [] : [entry.shorthand])])
      found.set(key, [...(found.get(key) ?? []), entry]);
  return found;
}

/** Computes knowledge about a minor at its first use: rules look up the same entries for each file. */
function byMinor<Known>(compute: (minor: Minor) => Known): (minor: Minor) => Known {
  const known = new Map<Minor, Known>();
  return (minor) => {
    const found = known.get(minor);
    if (found !== undefined) return found;
    const computed = compute(minor);
    known.set(minor, computed);
    return computed;
  };
}

function inMinor<Entry, Found>(
  entries: ReadonlyMap<string, Entry>,
  minor: Minor,
  at: (entry: Entry, minor: Minor) => Found | null,
): ReadonlyMap<string, Found> {
  return new Map(
    [...entries].flatMap(([key, entry]) => {
      const found = at(entry, minor);
      return found === null ? [] : [[key, found] as const];
    }),
  );
}

function fieldAt(entry: FieldEntry, minor: Minor): Field | null {
  if (minor < entry.minors[0] || minor > entry.minors[1]) return null;
  return {
    path: entry.path,
    type: latest(entry.typeByMinor, minor)?.type ?? entry.type,
    pointer: latest(entry.pointerByMinor, minor)?.pointer ?? entry.pointer,
    omitempty: entry.omitempty,
    printedWhenUnset: entry.printedWhenUnset,
    default: latest(entry.defaultByMinor, minor)?.value ?? null,
    values: latest(entry.enumByMinor, minor)?.values ?? null,
    entry,
  };
}

function flagAt(entry: FlagEntry, minor: Minor): Flag | null {
  if (minor < entry.since || isRemoved(entry, minor)) return null;
  const deprecated = entry.deprecatedSince !== null && minor >= entry.deprecatedSince && minor <= (entry.deprecatedUntil ?? minor);
  return {
    name: entry.flag,
    type: entry.type,
    default: latest(entry.defaultByMinor, minor)?.value ?? entry.default,
    field: minor >= (entry.fieldSince ?? 0) ? entry.field : null,
    deprecation: deprecated ? (entry.deprecation ?? null) : null,
    entry,
  };
}

function gateAt(entry: GateEntry, minor: Minor): Gate | null {
  const version = latest(entry.versions, minor);
  if (!version || isRemoved(entry, minor)) return null;
  const dependencies = latest(entry.dependencies, minor)?.gates ?? [];
  return { name: entry.name, stage: version.stage, default: version.default, locked: version.lockToDefault, dependencies, entry };
}

function isRemoved({ removedIn }: { readonly removedIn: Minor | null }, minor: Minor): boolean {
  return removedIn !== null && minor >= removedIn;
}

function latest<T>(list: Since<T> | undefined, minor: Minor): ({ readonly from: Minor } & T) | undefined {
  return list?.findLast(({ from }) => from <= minor);
}

function defaultedFieldsOf(fields: Iterable<Field>): ReturnType<Catalogue['defaultedFields']> {
  return [...fields]
    .filter((field) => field.default !== null || CONDITIONAL_DEFAULTS.has(field.path))
    .map((field) => ({ path: field.path.split('.'), field: inItsType(field) }));
}

/** `logging.flushFrequency` was a number of nanoseconds first, and so was its default. */
function inItsType(field: Field): Field {
  return field.type === 'int64' && field.default === '5s' ? { ...field, default: 5_000_000_000 } : field;
}

/**
 * The type of KubeletConfiguration (v1beta1).
 * @param all all fields of one minor, including the header
 */
function configurationTypeOf(all: Iterable<Field>): ObjectNode {
  const children = new Map<string, Field[]>();
  for (const field of all) {
    const parent = field.path.slice(0, Math.max(field.path.lastIndexOf('.'), 0));
    const siblings = children.get(parent);
    if (siblings) siblings.push(field);
    else children.set(parent, [field]);
  }
  return buildObject('', children);
}

function buildObject(path: string, children: ReadonlyMap<string, readonly Field[]>): ObjectNode {
  const fields = (children.get(path) ?? []).map((field): [string, FieldNode] => {
    const name = field.path.slice(field.path.lastIndexOf('.') + 1);
    const { pointer, omitempty, printedWhenUnset } = field;
    return [name, { name, path: field.path, type: buildType(field, children), pointer, omitempty, printedWhenUnset }];
  });
  return { kind: 'object', fields: new Map(fields) };
}

function buildType({ path, type, values }: Field, children: ReadonlyMap<string, readonly Field[]>): TypeNode {
  if (type === 'object') return buildObject(path, children);
  if (type === 'array<object>') return { kind: 'list', items: buildObject(`${path}[]`, children) };
  return simpleType(type, values);
}

function simpleType(type: Exclude<FieldType, 'object' | 'array<object>'>, values: readonly string[] | null): TypeNode {
  switch (type) {
    case 'string':
    case 'enum':
      return { kind: 'string', values };
    case 'array<string>':
    case 'array<enum>':
      return { kind: 'list', items: { kind: 'string', values } };
    case 'array<int32>':
      return { kind: 'list', items: { kind: 'int32' } };
    case 'map<string,string>':
      return { kind: 'map', values: { kind: 'string', values } };
    case 'map<string,bool>':
      return { kind: 'map', values: { kind: 'bool' } };
    case 'map<string,quantity>':
      return { kind: 'map', values: { kind: 'quantity' } };
    case 'map<string,array<string>>':
      return { kind: 'map', values: { kind: 'list', items: { kind: 'string', values } } };
    default:
      return { kind: type };
  }
}
