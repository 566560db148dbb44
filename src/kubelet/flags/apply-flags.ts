import type { Arg } from '../../base/arg.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import type { Catalogue, Field, Flag, Minor } from '../catalogue.ts';
import { valueAt } from '../validate/values.ts';
import { combineWithFile, readFlagValue } from './flag-value.ts';

/** A field that flags set, as the configuration file would have it. */
export interface FlagSetting {
  /** e.g. `authentication.x509.clientCAFile`. */
  readonly path: string;
  /** What is in force: flags of lists and maps are gathered, feature gates laid over those of the file. */
  readonly value: Json;
  /** What the flags alone say. */
  readonly own: Json;
  readonly flag: Flag;
  /** Which of the given flags: the last of its name. */
  readonly last: Arg;
}

export interface UnreadableFlag {
  readonly flag: Flag;
  readonly last: Arg;
  readonly path: string;
  /** A clause: what the kubelet does not take. */
  readonly why: string;
}

export interface AppliedFlags {
  readonly settings: readonly FlagSetting[];
  readonly unreadable: readonly UnreadableFlag[];
}

/**
 * The fields a command line sets over a configuration file. Flags without a field of that minor are passed over.
 * @param config what the file says, defaults filled in or not
 */
export function readFlagSettings(
  flags: readonly Arg[],
  config: JsonObject,
  options: { readonly minor: Minor; readonly catalogue: Catalogue },
): AppliedFlags {
  const settings: FlagSetting[] = [];
  const unreadable: UnreadableFlag[] = [];
  for (const [name, given] of groupByName(flags)) {
    const found = fieldOfFlag(name, options);
    const last = given.at(-1);
    if (found === null || last === undefined) continue;
    const { flag, field } = found;
    const read = readFlagValue(
      flag,
      given.map(({ value }) => value),
      field,
    );
    if ('fault' in read) unreadable.push({ flag, last, path: field.path, why: read.fault });
    else
      settings.push({
        path: field.path,
        value: combineWithFile(flag, valueAt(config, field.path), read.value),
        own: read.value,
        flag,
        last,
      });
  }
  return { settings, unreadable };
}

/** The flag of a minor and the field with the same meaning; null when that minor has not both. */
export function fieldOfFlag(
  name: string,
  { minor, catalogue }: { readonly minor: Minor; readonly catalogue: Catalogue },
): { readonly flag: Flag; readonly field: Field } | null {
  const flag = catalogue.flag(name, minor);
  const field = flag?.field == null ? null : catalogue.field(flag.field, minor);
  return flag === null || field === null ? null : { flag, field };
}

function groupByName(flags: readonly Arg[]): ReadonlyMap<string, readonly Arg[]> {
  const groups = new Map<string, Arg[]>();
  for (const flag of flags) {
    const group = groups.get(flag.name) ?? [];
    // A name keeps the place it was given last: of two names of one field the later one wins.
    groups.delete(flag.name);
    groups.set(flag.name, [...group, flag]);
  }
  return groups;
}
