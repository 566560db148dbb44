#!/usr/bin/env node
// Generates src/kubelet/data/{fields,flags,gates}.json: the kubelet fields, flags and feature gates of each
// Kubernetes minor.
//
//   node scripts/make-catalogue.mjs DIR
//
// DIR contains kubelet-config-fields.json, kubelet-flags.json and feature-gates.json. Minors become numbers
// (36 for 1.36). The script adds facts about Go's JSON encoding that the sources lack. It fails on unexpected
// input and then writes nothing.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const OLDEST = 10;
const NEWEST = 36;
const OUT = path.join(import.meta.dirname, '..', 'src', 'kubelet', 'data');

const FIELD_TYPES = new Set([
  'string',
  'enum',
  'bool',
  'int32',
  'int64',
  'uint32',
  'float',
  'duration',
  'durationOrNanoseconds',
  'quantity',
  'timestamp',
  'object',
  'array<string>',
  'array<enum>',
  'array<int32>',
  'array<object>',
  'map<string,string>',
  'map<string,bool>',
  'map<string,quantity>',
  'map<string,array<string>>',
]);
/** Go structs: `omitempty` never drops them, so they are printed even when unset. */
const STRUCT_TYPES = new Set(['object', 'duration', 'durationOrNanoseconds', 'quantity', 'timestamp']);
/**
 * Fields whose change widens access to the node: `unsafe` whichever class the source gives them, with the
 * reason for users.
 */
const UNSAFE = new Map([
  ['readOnlyPort', 'serves pod specs, environment variables included, to anyone who reaches the port, without authentication'],
  ['healthzPort', 'health checks of the kubelet and of its trial use this port; 0 turns them off'],
  ['healthzBindAddress', 'an address other than loopback serves health checks without authentication; local health probes must follow'],
  ['allowedUnsafeSysctls', 'pods may change kernel settings of the node; pods using a removed sysctl fail admission at restart'],
  [
    'imagePullCredentialsVerificationPolicy',
    'weaker policies let pods use private images pulled with credentials of other pods; stricter ones may keep pods from starting',
  ],
  [
    'preloadedImagesVerificationAllowlist',
    'pods may use the listed images without pull credentials; pods without credentials may fail to start afterwards',
  ],
]);
/**
 * Fields whose Go type accepts integer nanoseconds in addition to a duration string, wherever the sources
 * contain `duration`.
 */
const NANOSECONDS_TOO = new Set(['logging.flushFrequency']);
const LIVE_CHANGES = new Set(['safe', 'drain', 'new-pods-only', 'unsafe']);
const STAGES = new Set(['ALPHA', 'BETA', 'GA', 'DEPRECATED']);
const DEPRECATIONS = new Set(['to-be-removed', 'use-config-file', 'use-other-flag', 'leaked-cadvisor-flag']);
const FLAG_GROUPS = new Set(['config', 'kubelet', 'global']);

/** Fields whose Go JSON tag has no `omitempty`, in every minor from 1.20 to 1.36 that has the field. */
const ALWAYS_PRINTED = new Set([
  'authentication',
  'authentication.x509',
  'authentication.webhook',
  'authentication.anonymous',
  'authorization',
  'authorization.webhook',
  'containerRuntimeEndpoint',
  'logging.flushFrequency',
  'logging.verbosity',
  'logging.vmodule[].filePattern',
  'logging.vmodule[].verbosity',
  'registerWithTaints[].effect',
  'registerWithTaints[].key',
  'reservedMemory[].limits',
  'reservedMemory[].numaNode',
  'shutdownGracePeriodByPodPriority[].priority',
  'shutdownGracePeriodByPodPriority[].shutdownGracePeriodSeconds',
]);

const [dir] = process.argv.slice(2);
if (dir === undefined || process.argv.length !== 3) fail('usage: node scripts/make-catalogue.mjs DIR');

const fields = readFields(read('kubelet-config-fields.json'));
const flags = readFlags(read('kubelet-flags.json'), fields);
const gates = readGates(read('feature-gates.json'));
write('fields.json', fields);
write('flags.json', flags);
write('gates.json', gates);

function readFields(list) {
  const made = array(list, 'fields').map((entry) => {
    const name = string(entry.path, 'path');
    const at = `field ${name}`;
    members(entry, at, {
      required: ['path', 'type', 'pointer', 'minorsPresent', 'defaultByMinor', 'flag', 'description', 'liveChange', 'liveChangeReason'],
      optional: ['typeByMinor', 'pointerByMinor', 'enumByMinor', 'flagAliases', 'note'],
    });
    const readType = (value) => oneOf(goType(value, name), FIELD_TYPES, at);
    const type = readType(entry.type);
    const omitempty = !ALWAYS_PRINTED.has(name);
    const minors = array(entry.minorsPresent, at).map((minor) => minorNumber(minor, at));
    if (minors.length !== 2 || minors[0] > minors[1]) fail(`${at}: minorsPresent is no range`);
    if (STRUCT_TYPES.has(type) && entry.pointerByMinor !== undefined)
      fail(`${at}: a struct that becomes a pointer changes the printed fields`);
    if (type.includes('enum') !== (entry.enumByMinor !== undefined)) fail(`${at}: type ${type} and enumByMinor do not fit`);
    return {
      path: name,
      type,
      ...(entry.typeByMinor && { typeByMinor: byMinor(entry.typeByMinor, 'type', readType, at) }),
      pointer: boolean(entry.pointer, at),
      ...(entry.pointerByMinor && { pointerByMinor: byMinor(entry.pointerByMinor, 'pointer', (value) => boolean(value, at), at) }),
      omitempty,
      printedWhenUnset: !omitempty || (STRUCT_TYPES.has(type) && !entry.pointer),
      minors,
      defaultByMinor: byMinor(entry.defaultByMinor, 'value', (value) => value, at),
      ...(entry.enumByMinor && { enumByMinor: byMinor(entry.enumByMinor, 'values', (values) => strings(values, at), at) }),
      flag: entry.flag === null ? null : string(entry.flag, at),
      ...(entry.flagAliases && { flagAliases: strings(entry.flagAliases, at) }),
      description: string(entry.description, at),
      liveChange: UNSAFE.has(name) ? 'unsafe' : oneOf(entry.liveChange, LIVE_CHANGES, at),
      liveChangeReason: UNSAFE.get(name) ?? string(entry.liveChangeReason, at),
      ...(entry.note && { note: string(entry.note, at) }),
    };
  });
  const byPath = unique(made, 'path');
  for (const name of [...ALWAYS_PRINTED, ...NANOSECONDS_TOO, ...UNSAFE.keys()]) if (!byPath.has(name)) fail(`field ${name} is missing`);
  for (const field of made) checkParent(field, byPath);
  return made;
}

function goType(type, name) {
  if (type === 'uint') return 'uint32';
  return type === 'duration' && NANOSECONDS_TOO.has(name) ? 'durationOrNanoseconds' : type;
}

function checkParent({ path: name, minors }, byPath) {
  const dot = name.lastIndexOf('.');
  if (dot === -1) return;
  const parentPath = name.slice(0, dot);
  const parent = byPath.get(parentPath.replace(/\[\]$/, ''));
  if (!parent) fail(`field ${name}: ${parentPath} is missing`);
  if (parent.type !== (parentPath.endsWith('[]') ? 'array<object>' : 'object')) fail(`field ${name}: ${parentPath} is a ${parent.type}`);
  if (minors[0] < parent.minors[0] || minors[1] > parent.minors[1]) fail(`field ${name}: it outlives ${parentPath}`);
}

function readFlags(list, knownFields) {
  const paths = new Set(knownFields.map((field) => field.path));
  const made = array(list, 'flags').map((entry) => {
    const name = string(entry.flag, 'flag');
    const at = `flag ${name}`;
    members(entry, at, {
      required: ['flag', 'type', 'default', 'deprecated', 'deprecatedSince', 'since', 'removedIn', 'field', 'group'],
      optional: ['defaultByMinor', 'deprecation', 'deprecatedUntil', 'fieldSince', 'hidden', 'shorthand'],
    });
    if (entry.field !== null && !paths.has(entry.field)) fail(`${at}: unknown field ${entry.field}`);
    if ((entry.deprecatedSince === null) !== (entry.deprecation === undefined)) fail(`${at}: deprecatedSince and deprecation do not fit`);
    return {
      flag: name,
      ...(entry.shorthand && { shorthand: string(entry.shorthand, at) }),
      type: string(entry.type, at),
      default: string(entry.default, at, true),
      ...(entry.defaultByMinor && { defaultByMinor: byMinor(entry.defaultByMinor, 'value', (value) => string(value, at, true), at) }),
      since: minorNumber(entry.since, at),
      removedIn: entry.removedIn === null ? null : minorNumber(entry.removedIn, at),
      field: entry.field === null ? null : string(entry.field, at),
      ...(entry.fieldSince && { fieldSince: minorNumber(entry.fieldSince, at) }),
      deprecated: boolean(entry.deprecated, at),
      deprecatedSince: entry.deprecatedSince === null ? null : minorNumber(entry.deprecatedSince, at),
      ...(entry.deprecatedUntil && { deprecatedUntil: minorNumber(entry.deprecatedUntil, at) }),
      ...(entry.deprecation && { deprecation: oneOf(entry.deprecation, DEPRECATIONS, at) }),
      group: oneOf(entry.group, FLAG_GROUPS, at),
      ...(entry.hidden && { hidden: boolean(entry.hidden, at) }),
    };
  });
  unique(made, 'flag');
  return made;
}

function readGates(object) {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) fail('gates: not an object');
  return Object.entries(object).map(([name, entry]) => {
    const at = `gate ${name}`;
    members(entry, at, { required: ['versions', 'removedIn'], optional: ['dependencies'] });
    for (const { gates: needed } of entry.dependencies ?? [])
      for (const gate of strings(needed, at)) if (!Object.hasOwn(object, gate)) fail(`${at}: unknown gate ${gate}`);
    return {
      name,
      versions: array(entry.versions, at).map((version) => {
        members(version, at, { required: ['from', 'stage', 'default', 'lockToDefault'], optional: [] });
        return {
          from: minorNumber(version.from, at),
          stage: oneOf(version.stage, STAGES, at),
          default: boolean(version.default, at),
          lockToDefault: boolean(version.lockToDefault, at),
        };
      }),
      removedIn: entry.removedIn === null ? null : minorNumber(entry.removedIn, at),
      ...(entry.dependencies && { dependencies: byMinor(entry.dependencies, 'gates', (value) => strings(value, at), at) }),
    };
  });
}

/** `[{ from: "1.22", <member>: … }]` → the same with numbers; `from` must increase. */
function byMinor(list, member, check, at) {
  const made = array(list, at).map((entry) => {
    members(entry, at, { required: ['from', member], optional: [] });
    return { from: minorNumber(entry.from, at), [member]: check(entry[member]) };
  });
  for (const [i, { from }] of made.entries()) if (i > 0 && from <= made[i - 1].from) fail(`${at}: minors of ${member} do not rise`);
  return made;
}

function minorNumber(text, at) {
  const minor = /^1\.([0-9]+)$/.exec(text)?.[1];
  if (minor === undefined || Number(minor) < OLDEST || Number(minor) > NEWEST)
    fail(`${at}: ${JSON.stringify(text)} is no minor from 1.${OLDEST} to 1.${NEWEST}`);
  return Number(minor);
}

function members(entry, at, { required, optional }) {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) fail(`${at}: not an object`);
  for (const key of required) if (!Object.hasOwn(entry, key)) fail(`${at}: ${key} is missing`);
  for (const key of Object.keys(entry)) if (!required.includes(key) && !optional.includes(key)) fail(`${at}: unknown member ${key}`);
}

function array(value, at) {
  return Array.isArray(value) ? value : fail(`${at}: not a list`);
}

function strings(value, at) {
  return array(value, at).map((item) => string(item, at, true));
}

function string(value, at, mayBeEmpty = false) {
  return typeof value === 'string' && (mayBeEmpty || value !== '') ? value : fail(`${at}: ${JSON.stringify(value)} is no text`);
}

function boolean(value, at) {
  return typeof value === 'boolean' ? value : fail(`${at}: ${JSON.stringify(value)} is no boolean`);
}

function oneOf(value, allowed, at) {
  return allowed.has(value) ? value : fail(`${at}: ${JSON.stringify(value)} is none of ${[...allowed].join(', ')}`);
}

function unique(entries, key) {
  const map = new Map(entries.map((entry) => [entry[key], entry]));
  if (map.size !== entries.length) fail(`a ${key} occurs twice`);
  return map;
}

function read(name) {
  return JSON.parse(readFileSync(path.join(dir, name), 'utf8'));
}

function write(name, entries) {
  writeFileSync(path.join(OUT, name), `[\n${entries.map((entry) => JSON.stringify(entry)).join(',\n')}\n]\n`);
}

function fail(message) {
  console.error(`make-catalogue: ${message}`);
  process.exit(1);
}
