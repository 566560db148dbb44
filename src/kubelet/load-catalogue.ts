import type { Catalogue, Field, FieldEntry, Flag, FlagEntry, Gate, GateEntry, Minor, Since } from './catalogue.ts';

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

/** Builds a catalogue over the given entries. */
function makeCatalogue(entries: {
  readonly fields: readonly FieldEntry[];
  readonly flags: readonly FlagEntry[];
  readonly gates: readonly GateEntry[];
}): Catalogue {
  const fields = new Map(entries.fields.map((entry) => [entry.path, entry]));
  const flags = new Map(entries.flags.map((entry) => [entry.flag, entry]));
  const gates = new Map(entries.gates.map((entry) => [entry.name, entry]));
  return { fields, flags, gates, field: byMinor(fields, fieldAt), flag: byMinor(flags, flagAt), gate: byMinor(gates, gateAt) };
}

/** Looks up what an entry is in a minor. All entries of a minor are computed at its first use: rules look up the same ones for each file. */
function byMinor<Entry, Found>(
  entries: ReadonlyMap<string, Entry>,
  at: (entry: Entry, minor: Minor) => Found | null,
): (name: string, minor: Minor) => Found | null {
  const tables = new Map<Minor, ReadonlyMap<string, Found | null>>();
  return (name, minor) => {
    let table = tables.get(minor);
    if (table === undefined) {
      table = new Map([...entries].map(([key, entry]) => [key, at(entry, minor)]));
      tables.set(minor, table);
    }
    return table.get(name) ?? null;
  };
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
