#!/usr/bin/env node
// Adds a Kubernetes minor to src/kubelet/catalogue/data from source trees (docs/adding-a-minor.md).
//
//   node scripts/add-minor.mjs 1.37 --tree DIR [--tree DIR]... [--website DIR] [--before DIR] [--check]
//
// --tree     a checkout of kubernetes/kubernetes at the minor; or of kubernetes/kubelet, with checkouts of
//            component-base and client-go for the packages that it lacks
// --before   the checkout of the minor before, for trees without the defaulted configuration: a default changes
//            if its comment changed
// --website  a checkout of kubernetes/website, for trees without the list of feature gates
// --check    writes nothing; lists the differences from the data and exits with 1 if any exist
//
// scripts/add-minor/notes/1.37.json has the facts that no tree contains: descriptions and effects of new fields, flags.
// It fails on unexpected input and then writes nothing.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { dataBefore, mergeFields, mergeFlags, mergeGates } from './add-minor/merge.mjs';
import { readClientGates, readDependencies, readGatePages, readGates } from './add-minor/read-gates.mjs';
import { readTypes } from './add-minor/read-types.mjs';

const DATA = path.join(import.meta.dirname, '..', 'src', 'kubelet', 'catalogue', 'data');
const NOTES = path.join(import.meta.dirname, 'add-minor', 'notes');
const USAGE =
  'usage: node scripts/add-minor.mjs 1.N --tree DIR [--tree DIR]... [--website DIR] [--before DIR] [--data DIR] [--notes FILE] [--check]';
/** The configuration that defaulting makes of an empty file. */
const DEFAULTED = 'pkg/kubelet/apis/config/scheme/testdata/KubeletConfiguration/after/v1beta1.yaml';
const OPTIONS = 'cmd/kubelet/app/options';
/** Gates that client-go registers in the kubelet; the generated list does not have them. */
const CLIENT_GATES = new Set([
  'AtomicFIFO',
  'ClientsAllowCARotation',
  'ClientsAllowCBOR',
  'ClientsAllowTLSCacheGC',
  'ClientsPreferCBOR',
  'InOrderInformers',
  'InOrderInformersBatchProcess',
  'InformerResourceVersion',
  'UnlockWhileProcessingFIFO',
  'WatchListClient',
]);

try {
  run(readOptions());
} catch (error) {
  console.error(`add-minor: ${error.message}`);
  process.exit(1);
}

function run({ minor, trees, website, before, data, notes, check }) {
  const now = readData(data);
  const old = dataBefore(minor, now);
  const newest = Math.max(...now.fields.map((field) => field.minors[1]));
  if (minor > newest + 1) throw new Error(`1.${minor}: the newest minor of the data is 1.${newest}; add the minors between first`);
  if (minor < newest && !check) throw new Error(`1.${minor}: the data have later minors; only --check is possible`);
  const made = readMinor({ minor, trees, website, before, old, notes: withKnown(notes, now, minor) });
  const differences = ['fields', 'flags', 'gates'].flatMap((kind) => compareEntries(kind, dataBefore(minor + 1, now)[kind], made[kind]));
  const isExpected = (line) => !check && / (?:minors): data/.test(line);
  for (const line of differences) if (!isExpected(line)) console.log(line);
  for (const line of made.assumed) console.log(`assumed: ${line}`);
  if (check) {
    console.log(differences.length === 0 ? `1.${minor}: no differences` : `1.${minor}: ${differences.length} differences`);
    process.exitCode = differences.length === 0 ? 0 : 1;
    return;
  }
  for (const kind of ['fields', 'flags', 'gates']) writeData(data, kind, made[kind]);
}

function readMinor({ minor, trees, website, before, old, notes }) {
  const assumed = [];
  const types = readAllTypes(trees);
  for (const name of types.missing) assumed.push(`the members of ${name} are those of 1.${minor - 1}: no tree has their package`);
  const defaults = readDefaults({ trees, types, before, minor, assumed });
  const gates = readAllGates({ trees, website, minor, assumed });
  const names = readFlagNames(trees);
  if (names === null) assumed.push(`flags are those of 1.${minor - 1}, apart from the notes: no tree has ${OPTIONS}`);
  return {
    fields: mergeFields(old.fields, { minor, types, defaults, notes: notes.fields }),
    flags: mergeFlags(old.flags, { minor, names, notes: notes.flags }),
    gates: gates === null ? old.gates : mergeGates(old.gates, { minor, ...gates }),
    assumed,
  };
}

function readAllTypes(trees) {
  const root = trees.find((tree) => existsSync(path.join(tree, 'staging')) || existsSync(path.join(tree, 'config/v1beta1')));
  if (root === undefined)
    throw new Error('no tree has KubeletConfiguration: give a checkout of kubernetes/kubernetes or kubernetes/kubelet');
  return readTypes(root, trees);
}

/** Defaults by path, from the defaulted configuration, or from the comments of the types that changed. */
function readDefaults({ trees, types, before, minor, assumed }) {
  const file = trees.map((tree) => path.join(tree, DEFAULTED)).find((name) => existsSync(name));
  if (file !== undefined) return flatten(parse(readFileSync(file, 'utf8')), types.fields);
  if (before === undefined) {
    assumed.push(`defaults are those of 1.${minor - 1}: no tree has ${DEFAULTED}, and --before is missing`);
    return new Map();
  }
  assumed.push('defaults follow the comments of the types that changed: no tree has the defaulted configuration');
  const earlier = readTypes(before, [before]).fields;
  const changed = new Map();
  for (const [name, { documentedDefault }] of types.fields) {
    const was = earlier.get(name)?.documentedDefault ?? null;
    if (earlier.has(name) && documentedDefault !== was)
      changed.set(name, documentedDefault === 'nil' ? null : parse(documentedDefault ?? 'null'));
  }
  return changed;
}

/** The value of each field that has a default of its own. */
function flatten(config, fields) {
  const values = new Map();
  for (const [name, { kind }] of fields) {
    if (kind === 'object' || name.includes('[]') || name === 'kind' || name === 'apiVersion') continue;
    values.set(name, name.split('.').reduce((at, key) => at?.[key], config) ?? null);
  }
  return values;
}

function readAllGates({ trees, website, minor, assumed }) {
  const read = trees.map((tree) => readGates(tree, minor)).find((list) => list !== null);
  const client = trees.map((tree) => readClientGates(tree, minor)).find((list) => list !== null);
  const dependencies = readDependencies(trees);
  if (dependencies === null) assumed.push(`dependencies of gates are those of 1.${minor - 1}: no tree has pkg/features`);
  if (read === undefined && website === undefined) {
    assumed.push(`gates are those of 1.${minor - 1}: no tree has the list of feature gates, and --website is missing`);
    return null;
  }
  if (read === undefined) return { states: readGatePages(website, minor), complete: () => false, dependencies };
  if (client === undefined) assumed.push(`gates of client-go are those of 1.${minor - 1}: no tree has features/known_features.go`);
  return {
    states: new Map([...read, ...(client ?? [])]),
    complete: (name) => client !== undefined || !CLIENT_GATES.has(name),
    dependencies,
  };
}

/** Names of the flags that the kubelet's own package registers; null: no tree has the package. */
function readFlagNames(trees) {
  const dir = trees.map((tree) => path.join(tree, OPTIONS)).find((name) => existsSync(name));
  if (dir === undefined) return null;
  const names = new Set();
  for (const file of readdirSync(dir).filter((name) => name.endsWith('.go') && !/_test|windows|globalflags|_others/.test(name))) {
    const text = readFileSync(path.join(dir, file), 'utf8');
    for (const [, name] of text.matchAll(/\bfs\.\w*Var\w*\([^"\n]*"([a-z0-9-]+)"/g)) names.add(name);
  }
  return names;
}

/** The notes of a minor; for a minor that the data have, their own words about it count. */
function withKnown(notes, now, minor) {
  const known = now.fields.filter((field) => field.minors[0] === minor);
  const described = known.map((field) => [field.path, { ...field, values: field.enumByMinor?.[0]?.values }]);
  const changed = now.fields.flatMap((field) => {
    const values = field.enumByMinor?.find(({ from }) => from === minor)?.values;
    const type = field.typeByMinor?.find(({ from }) => from === minor)?.type;
    return field.minors[0] === minor || (values === undefined && type === undefined) ? [] : [[field.path, { values, type }]];
  });
  return {
    fields: { ...Object.fromEntries([...changed, ...described]), ...notes.fields },
    flags: {
      added: notes.flags?.added ?? now.flags.filter(({ since }) => since === minor),
      removed:
        notes.flags?.removed ??
        now.flags.flatMap(({ flag, group, removedIn }) => (removedIn === minor && group === 'global' ? [flag] : [])),
    },
  };
}

function compareEntries(kind, was, is) {
  const key = kind === 'fields' ? 'path' : kind === 'flags' ? 'flag' : 'name';
  const [before, after] = [was, is].map((list) => new Map(list.map((entry) => [entry[key], entry])));
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].flatMap((name) => {
    const [a, b] = [before.get(name), after.get(name)];
    if (a === undefined || b === undefined)
      return [`${kind} ${name}: ${a === undefined ? `only the tree has it: ${JSON.stringify(b)}` : 'only the data have it'}`];
    const members = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(
      (member) => JSON.stringify(a[member]) !== JSON.stringify(b[member]),
    );
    return members.map((member) => `${kind} ${name}: ${member}: data ${JSON.stringify(a[member])}, tree ${JSON.stringify(b[member])}`);
  });
}

function readData(dir) {
  const read = (kind) => JSON.parse(readFileSync(path.join(dir, `${kind}.json`), 'utf8'));
  return { fields: read('fields'), flags: read('flags'), gates: read('gates') };
}

function writeData(dir, kind, entries) {
  writeFileSync(path.join(dir, `${kind}.json`), `[\n${entries.map((entry) => JSON.stringify(entry)).join(',\n')}\n]\n`);
}

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      tree: { type: 'string', multiple: true },
      website: { type: 'string' },
      before: { type: 'string' },
      data: { type: 'string', default: DATA },
      notes: { type: 'string' },
      check: { type: 'boolean', default: false },
    },
  });
  const minor = Number(/^1\.([0-9]+)$/.exec(positionals[0] ?? '')?.[1] ?? Number.NaN);
  if (positionals.length !== 1 || Number.isNaN(minor) || values.tree === undefined) throw new Error(USAGE);
  const file = values.notes ?? path.join(NOTES, `1.${minor}.json`);
  const notes = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { fields: {} };
  return { minor, trees: values.tree, website: values.website, before: values.before, data: values.data, notes, check: values.check };
}
