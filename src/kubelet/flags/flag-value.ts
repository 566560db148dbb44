import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { readScalar, type ScalarFault, type Token } from '../../codec/scalar.ts';
import type { ScalarNode } from '../../codec/type-node.ts';
import type { Field, Flag } from '../catalogue.ts';

export type FlagValue = { readonly value: Json } | { readonly fault: string };

/**
 * The value of the field that flags of one name set, as the configuration file would have it.
 * @param texts what the flag was given, in order: of scalars the last counts, lists and maps are gathered
 * @param field what the same minor's configuration has for this flag
 * @returns a clause that says what is wrong when the kubelet would not take it: `must be a whole number, not the text "x"`
 * @see kubernetes/kubernetes cmd/kubelet/app/options (flag types), k8s.io/component-base/cli/flag, pkg/util/flag
 */
export function readFlagValue(flag: Flag, texts: readonly string[], field: Field): FlagValue {
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

/** One value, by the type the flag has. */
function readText(text: string, flag: Flag, field: Field): Json {
  if (field.type === 'int64' && flag.type === 'duration') return nanoseconds(text);
  if (flag.type === 'bool') return readBool(text);
  const type = { kind: field.type === 'enum' ? 'string' : field.type, values: null } as ScalarNode;
  return scalar(type, tokenOf(text, type));
}

function tokenOf(text: string, { kind }: ScalarNode): Token {
  if (kind !== 'int32' && kind !== 'int64' && kind !== 'uint32') return { kind: 'string', value: kind === 'string' ? text : text.trim() };
  // Go takes prefixes of bases, and `_` between digits.
  const match = /^([-+]?)(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[0-9][0-9_]*)$/.exec(text);
  if (match === null) return { kind: 'string', value: text };
  const digits = (match[2] as string).replaceAll('_', '').replace(/^0(?=[0-9])/, '0o');
  return { kind: 'number', text: `${match[1] === '-' ? '-' : ''}${BigInt(digits)}` };
}

function scalar(type: ScalarNode, token: Token): Json {
  const read = readScalar(type, token);
  if ('value' in read) return read.value;
  throw fault(read.fault);
}

function fault({ message }: ScalarFault): FlagFault {
  return new FlagFault(message);
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

/** Of this flag each use is one pair, commas and all. */
const NOT_SPLIT = 'cpu-manager-policy-options';
/** What stands between a signal and its threshold. */
const LESS_THAN: ReadonlySet<string> = new Set(['eviction-hard', 'eviction-soft']);

function pairsOf({ name }: Flag, texts: readonly string[]): readonly (readonly [string, string])[] {
  const separator = LESS_THAN.has(name) ? '<' : '=';
  return (name === NOT_SPLIT ? texts : texts.flatMap(splitPairs)).map((pair) => {
    const at = pair.indexOf(separator);
    if (at < 0) throw new FlagFault(`${quote(pair)} is no pair: write it like name${separator}value`);
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
  });
}

function gatherLists(texts: readonly string[]): JsonObject {
  const lists = new Map<string, string[]>();
  for (const pair of texts.flatMap(splitPairs)) {
    const at = pair.indexOf(':');
    if (at < 0) throw new FlagFault('holds something that is no pair: write it like name:value');
    const key = pair.slice(0, at).trim();
    lists.set(key, [...(lists.get(key) ?? []), pair.slice(at + 1).trim()]);
  }
  return Object.fromEntries(lists);
}

/** `key=value:Effect` or `key:Effect`, with commas between. */
function readTaints(text: string): readonly JsonObject[] {
  return splitPairs(text)
    .filter((item) => !item.endsWith('-'))
    .map((item) => {
      const match = /^([^:=]+)(?:=([^:=]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(item);
      if (match === null) throw new FlagFault(`${quote(item)} is no taint: write it like key=value:NoSchedule`);
      const [, key = '', value = '', effect = ''] = match;
      return { key, ...(value === '' ? {} : { value }), effect };
    });
}

/** `0:memory=1Gi,hugepages-1Gi=2Gi`. */
function readReservation(text: string): JsonObject {
  const match = /^([-+]?[0-9]+):([^:]*)$/.exec(text);
  if (match === null) throw new FlagFault(`${quote(text)} is no reservation: write it like 0:memory=1Gi`);
  const limits = (match[2] as string).split(',').map((pair): [string, Json] => {
    const [name = '', amount, ...more] = pair.split('=');
    if (amount === undefined || more.length > 0) throw new FlagFault(`${quote(pair)} is no pair: write it like memory=1Gi`);
    return [name, scalar({ kind: 'quantity' }, { kind: 'string', value: amount })];
  });
  return { numaNode: Number(match[1]), limits: Object.fromEntries(limits) };
}

function readPattern(text: string): JsonObject {
  const match = /^([^=]+)=([0-9]+)$/.exec(text);
  if (match === null || Number(match[2]) > 2 ** 31 - 1) throw new FlagFault(`${quote(text)} is no pattern=N`);
  return { filePattern: match[1] as string, verbosity: Number(match[2]) };
}

/** The items of one record of comma-separated values, as Go's encoding/csv reads it; quotes are for items with commas. */
function splitCsv(text: string): readonly string[] {
  if (text === '') return [];
  const items = text.match(/(?:^|,)(?:"(?:[^"]|"")*"|[^",]*)(?=,|$)/g) ?? [];
  if (items.join('') !== text) throw new FlagFault(`${quote(text)} is no list of values with commas between`);
  return items.map((item, i) =>
    (i === 0 ? item : item.slice(1)).replace(/^"([\s\S]*)"$/, (_, quoted: string) => quoted.replaceAll('""', '"')),
  );
}

function quote(text: string): string {
  return JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`);
}

/** A flag's value over the file's: feature gates are laid over those of the file by name, patterns of vmodule are added, either turns seccompDefault on. */
export function combineWithFile(flag: Flag, fromFile: Json | undefined, fromFlags: Json): Json {
  if (flag.type === 'mapStringBool' && isJsonObject(fromFile) && isJsonObject(fromFlags)) return { ...fromFile, ...fromFlags };
  if (flag.type === 'pattern=N,...' && Array.isArray(fromFile) && Array.isArray(fromFlags)) return [...fromFile, ...fromFlags];
  return flag.name === 'seccomp-default' && fromFile === true ? true : fromFlags;
}
