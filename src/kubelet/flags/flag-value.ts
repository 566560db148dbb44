import type { Arg } from '../../base/arg.ts';
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { readScalar, type ScalarToken } from '../../codec/scalar.ts';
import type { ScalarNode } from '../../codec/type-node.ts';
import type { Field, Flag, KubeletReader } from '../catalogue/catalogue.ts';
import { valueAt } from '../documents/values.ts';

/**
 * The fields that a command line sets over a configuration file. Flags without a field in that minor are
 * ignored.
 * @param config fields of the file, with or without defaults
 * @returns `settings`: each with the last flag of its name, its effective value in the form of the file (repeated list and map
 *   flags are merged, feature gates over those of the file), and `own`, its value from the flags alone; `unreadable`: with the
 *   reason why the kubelet rejects the flag, as a clause
 */
export function readFlagSettings(flags: readonly Arg[], config: JsonObject, options: KubeletReader) {
  const found = [...groupByName(flags)].flatMap(([name, given]) => {
    const known = fieldOfFlag(name, options);
    const last = given.at(-1);
    if (known === null || last === undefined) return [];
    const { flag, field } = known;
    const texts = given.map(({ value }) => value);
    return [{ flag, last, path: field.path, read: readFlagValue(flag, texts, field) }];
  });
  return {
    settings: found.flatMap(({ read, ...one }) =>
      'fault' in read ? [] : [{ ...one, value: combineWithFile(one.flag, valueAt(config, one.path), read.value), own: read.value }],
    ),
    unreadable: found.flatMap(({ read, ...one }) => ('fault' in read ? [{ ...one, why: read.fault }] : [])),
  };
}

/** The flag of a minor and its equivalent field; null if one of both is missing in the minor. */
export function fieldOfFlag(name: string, { minor, catalogue }: KubeletReader): { readonly flag: Flag; readonly field: Field } | null {
  const flag = catalogue.flag(name, minor);
  const field = flag?.field == null ? null : catalogue.field(flag.field, minor);
  return flag === null || field === null ? null : { flag, field };
}

function groupByName(flags: readonly Arg[]): ReadonlyMap<string, readonly Arg[]> {
  const groups = new Map<string, Arg[]>();
  for (const flag of flags) {
    const group = groups.get(flag.name) ?? [];
    // The order is that of the last use: of two flags for one field the later one wins.
    groups.delete(flag.name);
    groups.set(flag.name, [...group, flag]);
  }
  return groups;
}

/**
 * The field value set by all flags of one name, in the form of the configuration file.
 * @param texts values of the flag, in order: the last scalar wins, lists and maps are merged
 * @param field the minor's field for this flag
 * @returns the reason as a clause if the kubelet would reject the value: `must be an integer, not the string
 *   "x"`
 * @see kubernetes/kubernetes cmd/kubelet/app/options (flag types), k8s.io/component-base/cli/flag,
 *   pkg/util/flag
 */
export function readFlagValue(flag: Flag, texts: readonly string[], field: Field): { readonly value: Json } | { readonly fault: string } {
  try {
    return { value: readTexts(flag, texts, field) };
  } catch (error) {
    if (error instanceof FlagFault) return { fault: error.message };
    throw error;
  }
}

class FlagFault extends Error {}

function readTexts(flag: Flag, texts: readonly string[], field: Field): Json {
  switch (flag.type) {
    case 'stringSlice':
      return texts.flatMap(splitCsv);
    case 'mapStringString':
      return Object.fromEntries(pairsOf(flag, texts));
    case 'mapStringBool':
      return Object.fromEntries(pairsOf(flag, texts).map(([name, text]) => [name, readBool(text)]));
    case 'colonSeparatedMultimapStringString':
      return gatherLists(texts);
    case '[]v1.Taint':
      return readTaints(texts.at(-1) ?? '');
    case 'reserved-memory':
      return texts.filter((text) => text !== '').flatMap((text) => text.split(';').map(readReservation));
    case 'pattern=N,...':
      return texts.flatMap((text) => text.split(',').filter(Boolean).map(readPattern));
    default:
      return readText(texts.at(-1) ?? '', flag, field);
  }
}

/** One value, by the type of the flag. */
function readText(text: string, flag: Flag, field: Field): Json {
  if (field.type === 'int64' && flag.type === 'duration') return nanoseconds(text);
  if (flag.type === 'bool') return readBool(text);
  const type = { kind: field.type === 'enum' ? 'string' : field.type, values: null } as ScalarNode;
  return scalar(type, tokenOf(text, type));
}

function tokenOf(text: string, { kind }: ScalarNode): ScalarToken {
  if (kind !== 'int32' && kind !== 'int64' && kind !== 'uint32') return { kind: 'string', value: kind === 'string' ? text : text.trim() };
  // Go accepts base prefixes, and `_` between digits.
  const match = /^([-+]?)(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[0-9][0-9_]*)$/.exec(text);
  if (match === null) return { kind: 'string', value: text };
  const digits = (match[2] as string).replaceAll('_', '').replace(/^0(?=[0-9])/, '0o');
  return { kind: 'number', text: `${match[1] === '-' ? '-' : ''}${BigInt(digits)}` };
}

function scalar(type: ScalarNode, token: ScalarToken): Json {
  const read = readScalar(type, token);
  if ('value' in read) return read.value;
  throw new FlagFault(read.fault.message);
}

function nanoseconds(text: string): Json {
  const value = parseGoDuration(text);
  if (value === null) throw new FlagFault(`${quote(text)} is not a valid duration`);
  return Number(value);
}

const TRUE = ['1', 't', 'T', 'TRUE', 'true', 'True'];
const FALSE = ['0', 'f', 'F', 'FALSE', 'false', 'False'];

function readBool(text: string): boolean {
  if (TRUE.includes(text)) return true;
  if (FALSE.includes(text)) return false;
  throw new FlagFault(`must be true or false, not ${quote(text)}`);
}

function splitPairs(text: string): readonly string[] {
  return text.split(',').filter(Boolean);
}

/** Each use of this flag is one pair, including commas. */
const NOT_SPLIT = 'cpu-manager-policy-options';
/** Flags with a comparison sign between signal and threshold. */
const LESS_THAN: ReadonlySet<string> = new Set(['eviction-hard', 'eviction-soft']);

function pairsOf({ name }: Flag, texts: readonly string[]): readonly (readonly [string, string])[] {
  const separator = LESS_THAN.has(name) ? '<' : '=';
  return (name === NOT_SPLIT ? texts : texts.flatMap(splitPairs)).map((pair) => {
    const at = pair.indexOf(separator);
    if (at < 0) throw new FlagFault(`${quote(pair)} is not a pair name${separator}value`);
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
  });
}

function gatherLists(texts: readonly string[]): JsonObject {
  const lists = new Map<string, string[]>();
  for (const pair of texts.flatMap(splitPairs)) {
    const at = pair.indexOf(':');
    if (at < 0) throw new FlagFault('contains an item that is not a pair name:value');
    const key = pair.slice(0, at).trim();
    lists.set(key, [...(lists.get(key) ?? []), pair.slice(at + 1).trim()]);
  }
  return Object.fromEntries(lists);
}

/** Comma-separated `key=value:Effect` or `key:Effect`. */
function readTaints(text: string): readonly JsonObject[] {
  return splitPairs(text)
    .filter((item) => !item.endsWith('-'))
    .map((item) => {
      const match = /^([^:=]+)(?:=([^:=]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(item);
      if (match === null) throw new FlagFault(`${quote(item)} is not a taint such as key=value:NoSchedule`);
      const [, key = '', value = '', effect = ''] = match;
      return { key, ...(value === '' ? {} : { value }), effect };
    });
}

/** `0:memory=1Gi,hugepages-1Gi=2Gi`. */
function readReservation(text: string): JsonObject {
  const match = /^([-+]?[0-9]+):([^:]*)$/.exec(text);
  if (match === null) throw new FlagFault(`${quote(text)} is not a reservation such as 0:memory=1Gi`);
  const limits = (match[2] as string).split(',').map((pair): [string, Json] => {
    const [name = '', amount, ...more] = pair.split('=');
    if (amount === undefined || more.length > 0) throw new FlagFault(`${quote(pair)} is not a pair such as memory=1Gi`);
    return [name, scalar({ kind: 'quantity' }, { kind: 'string', value: amount })];
  });
  return { numaNode: Number(match[1]), limits: Object.fromEntries(limits) };
}

function readPattern(text: string): JsonObject {
  const match = /^([^=]+)=([0-9]+)$/.exec(text);
  if (match === null || Number(match[2]) > 2 ** 31 - 1) throw new FlagFault(`${quote(text)} is not of the form pattern=N`);
  return { filePattern: match[1] as string, verbosity: Number(match[2]) };
}

/** Splits one CSV record like Go's encoding/csv; quotes enclose items with commas. */
function splitCsv(text: string): readonly string[] {
  if (text === '') return [];
  const items = text.match(/(?:^|,)(?:"(?:[^"]|"")*"|[^",]*)(?=,|$)/g) ?? [];
  if (items.join('') !== text) throw new FlagFault(`${quote(text)} is not a comma-separated list`);
  return items.map((item, i) =>
    (i === 0 ? item : item.slice(1)).replace(/^"([\s\S]*)"$/, (_, quoted: string) => quoted.replaceAll('""', '"')),
  );
}

function quote(text: string): string {
  return JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`);
}

/**
 * Merges a flag's value over the file's: feature gates by name, vmodule patterns appended; seccompDefault is
 * on if either is.
 */
export function combineWithFile(flag: Flag, fromFile: Json | undefined, fromFlags: Json): Json {
  if (flag.type === 'mapStringBool' && isJsonObject(fromFile) && isJsonObject(fromFlags)) return { ...fromFile, ...fromFlags };
  if (flag.type === 'pattern=N,...' && Array.isArray(fromFile) && Array.isArray(fromFlags)) return [...fromFile, ...fromFlags];
  return flag.name === 'seccomp-default' && fromFile === true ? true : fromFlags;
}
