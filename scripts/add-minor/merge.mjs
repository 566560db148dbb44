// Adds the fields, flags and gates of a source tree to the catalogue data of the earlier minors.
import { GROUPS } from './read-gates.mjs';

/** The data without a minor and all later ones. */
export function dataBefore(minor, { fields, flags, gates }) {
  const until = (list) => list?.filter(({ from }) => from < minor);
  return {
    fields: fields.flatMap((field) =>
      field.minors[0] >= minor
        ? []
        : [
            compact({
              ...field,
              typeByMinor: some(until(field.typeByMinor)),
              pointerByMinor: some(until(field.pointerByMinor)),
              minors: [field.minors[0], Math.min(field.minors[1], minor - 1)],
              defaultByMinor: until(field.defaultByMinor),
              enumByMinor: until(field.enumByMinor),
            }),
          ],
    ),
    flags: flags.flatMap((flag) => (flag.since >= minor ? [] : [{ ...flag, removedIn: beforeMinor(flag.removedIn, minor) }])),
    gates: gates.flatMap((gate) =>
      gate.versions[0].from >= minor
        ? []
        : [
            compact({
              ...gate,
              versions: until(gate.versions),
              removedIn: beforeMinor(gate.removedIn, minor),
              dependencies: some(until(gate.dependencies)),
            }),
          ],
    ),
  };
}

/**
 * The fields of a minor after those of the minors before it.
 * @param types fields of the tree, and the structs that the tree does not have
 * @param defaults values by path that the minor's defaulting sets; paths that are not in the map keep their default
 * @param notes facts that no tree contains, by path: description, effect of a change, flag, values, kind
 */
export function mergeFields(before, { minor, types, defaults, notes }) {
  const isUnknown = (name) => types.missing.some((root) => name.startsWith(`${root}.`) || name.startsWith(`${root}[].`));
  const known = new Set(before.map((field) => field.path));
  const kept = before.map((field) => {
    if (field.minors[1] !== minor - 1) return field;
    const read = types.fields.get(field.path);
    if (read === undefined && !isUnknown(field.path)) return field;
    const lived = { ...field, minors: [field.minors[0], minor] };
    return updateField(lived, {
      minor,
      read: types.missing.includes(field.path) ? undefined : read,
      defaults,
      note: notes[field.path] ?? {},
    });
  });
  const added = [...types.fields].flatMap(([name, read]) => (known.has(name) ? [] : [newField(name, read, { minor, defaults, notes })]));
  return placeAdded(kept, added, [...types.fields.keys()]);
}

function updateField(field, { minor, read, defaults, note }) {
  const last = (list, key, base) => list?.at(-1)?.[key] ?? base;
  const type = last(field.typeByMinor, 'type', field.type);
  const pointer = last(field.pointerByMinor, 'pointer', field.pointer);
  const changedType = note.type ?? (read === undefined || hasKind(type, read.kind) ? type : read.kind);
  const append = (list, key, now, was) => (same(now, was) ? list : [...(list ?? []), { from: minor, [key]: now }]);
  if (read !== undefined && read.omitempty !== field.omitempty) throw new Error(`field ${field.path}: omitempty changed`);
  const before = last(field.defaultByMinor, 'value', null);
  const value = defaults.has(field.path) ? withoutZero(defaults.get(field.path), before) : before;
  return compact({
    ...field,
    typeByMinor: append(field.typeByMinor, 'type', changedType, type),
    pointerByMinor: append(field.pointerByMinor, 'pointer', read?.pointer ?? pointer, pointer),
    defaultByMinor: append(field.defaultByMinor, 'value', value, before),
    enumByMinor:
      note.values === undefined ? field.enumByMinor : append(field.enumByMinor, 'values', note.values, last(field.enumByMinor, 'values')),
  });
}

/** Structs are printed even when they are unset: `omitempty` never drops them. */
const STRUCTS = new Set(['object', 'duration', 'durationOrNanoseconds', 'quantity', 'timestamp']);

function newField(name, read, { minor, defaults, notes }) {
  const note = notes[name];
  if (note === undefined) throw new Error(`field ${name} is new in 1.${minor}: describe it in the notes`);
  for (const key of ['description', 'liveChange', 'liveChangeReason', 'danger'])
    if (note[key] === undefined) throw new Error(`notes of field ${name}: ${key} is missing`);
  const type = note.type ?? read.kind;
  if (!hasKind(type, read.kind)) throw new Error(`notes of field ${name}: type ${type} does not fit ${read.kind}`);
  const hasDefault = type !== 'object' && !name.includes('[]');
  return compact({
    path: name,
    type,
    pointer: read.pointer,
    omitempty: read.omitempty,
    printedWhenUnset: !read.omitempty || (STRUCTS.has(type) && !read.pointer),
    minors: [minor, minor],
    defaultByMinor: hasDefault ? [{ from: minor, value: withoutZero(defaults.get(name) ?? null, null) }] : [],
    enumByMinor: note.values === undefined ? undefined : [{ from: minor, values: note.values }],
    flag: note.flag ?? null,
    description: note.description,
    liveChange: note.liveChange,
    liveChangeReason: note.liveChangeReason,
    danger: note.danger,
    bounds: note.bounds,
    note: note.note,
  });
}

/** A zero that Go prints for an unset field is no default, if the field had none before. */
function withoutZero(value, before) {
  return before === null && [0, false, '', '0', '0s'].includes(value) ? null : value;
}

/** Go has no enumerations: a type of the catalogue with `enum` is a string in Go. */
function hasKind(type, kind) {
  return type.replace('enum', 'string') === kind;
}

/** New fields follow the field that precedes them in the struct. */
function placeAdded(kept, added, order) {
  const placed = [...kept];
  for (const field of added) {
    const previous = order[order.indexOf(field.path) - 1];
    const at = placed.findLastIndex(({ path }) => path === previous || path.startsWith(`${previous}.`) || path.startsWith(`${previous}[]`));
    placed.splice(at + 1, 0, field);
  }
  return placed;
}

/**
 * The flags of a minor.
 * @param names flags of the tree that belong to the kubelet; null: the tree does not contain them
 * @param notes `added` (entries) and `removed` (names)
 */
export function mergeFlags(before, { minor, names, notes }) {
  const removed = new Set(notes.removed ?? []);
  for (const name of removed)
    if (!before.some(({ flag, removedIn }) => flag === name && removedIn === null))
      throw new Error(`notes: flag ${name} does not exist in the minor before`);
  const isOwn = ({ group, flag }) => group !== 'global' && !isLogFlag(flag);
  const kept = before.map((entry) => {
    if (entry.removedIn !== null) return entry;
    const isGone = removed.has(entry.flag) || (names !== null && isOwn(entry) && !names.has(entry.flag));
    return isGone ? { ...entry, removedIn: minor } : entry;
  });
  const added = (notes.added ?? []).map((entry) => ({ ...entry, since: minor, removedIn: null }));
  const known = new Set([...before, ...added].map(({ flag }) => flag));
  for (const name of names ?? []) if (!known.has(name)) throw new Error(`flag ${name} is new in 1.${minor}: describe it in the notes`);
  return [...kept, ...added];
}

/** Flags of the logging library, which is another package. */
function isLogFlag(name) {
  return ['v', 'vmodule', 'logging-format'].includes(name) || name.startsWith('log-');
}

/**
 * The gates of a minor.
 * @param states state by gate; null: removed. A gate that is missing is removed if `complete`, else it keeps its state
 * @param dependencies needed gates by gate; null: no tree contains them; a gate that is missing keeps its own
 */
export function mergeGates(before, { minor, states, complete, dependencies }) {
  const kept = before.map((gate) => {
    if (gate.removedIn !== null) return gate;
    const state = states.get(gate.name);
    const isKept = GROUPS.includes(gate.name) || (state === undefined && !complete(gate.name));
    if (isKept) return gate;
    if (state === undefined || state === null) return { ...gate, removedIn: minor };
    return withDependencies({ ...gate, versions: withState(gate.versions, minor, state) }, minor, dependencies);
  });
  const known = new Set(before.map(({ name }) => name));
  const added = [...states].flatMap(([name, state]) =>
    known.has(name) || state === null
      ? []
      : [withDependencies({ name, versions: [{ from: minor, ...state }], removedIn: null }, minor, dependencies)],
  );
  return [...kept, ...added].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function withState(versions, minor, { stage, default: on, lockToDefault }) {
  const last = versions.at(-1);
  const isSame = last.stage === stage && last.default === on && last.lockToDefault === lockToDefault;
  return isSame ? versions : [...versions, { from: minor, stage, default: on, lockToDefault }];
}

function withDependencies(gate, minor, dependencies) {
  const read = dependencies?.get(gate.name);
  if (read === undefined) return gate;
  const now = [...read].toSorted();
  const was = [...(gate.dependencies?.at(-1)?.gates ?? [])].toSorted();
  return same(now, was) ? gate : { ...gate, dependencies: [...(gate.dependencies ?? []), { from: minor, gates: now }] };
}

function beforeMinor(removedIn, minor) {
  return removedIn !== null && removedIn >= minor ? null : removedIn;
}

function some(list) {
  return list === undefined || list.length === 0 ? undefined : list;
}

function compact(entry) {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined));
}

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
