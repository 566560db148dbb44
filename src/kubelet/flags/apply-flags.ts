import type { Arg } from '../../base/arg.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import type { Catalogue, Field, Flag, Minor } from '../catalogue/catalogue.ts';
import { valueAt } from '../documents/values.ts';
import { combineWithFile, readFlagValue } from './flag-value.ts';

/** A field set by flags, in the form of the configuration file. */
interface FlagSetting {
  /** e.g. `authentication.x509.clientCAFile`. */
  readonly path: string;
  /**
   * Effective value: repeated list and map flags are merged, feature gates are merged over those of the file.
   */
  readonly value: Json;
  /** Value from the flags alone. */
  readonly own: Json;
  readonly flag: Flag;
  /** The last flag of the name. */
  readonly last: Arg;
}

interface UnreadableFlag {
  readonly flag: Flag;
  readonly last: Arg;
  readonly path: string;
  /** The reason why the kubelet rejects the flag, as a clause. */
  readonly why: string;
}

interface AppliedFlags {
  readonly settings: readonly FlagSetting[];
  readonly unreadable: readonly UnreadableFlag[];
}

/**
 * The fields that a command line sets over a configuration file. Flags without a field in that minor are
 * ignored.
 * @param config fields of the file, with or without defaults
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

/** The flag of a minor and its equivalent field; null if one of both is missing in the minor. */
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
    // The order is that of the last use: of two flags for one field the later one wins.
    groups.delete(flag.name);
    groups.set(flag.name, [...group, flag]);
  }
  return groups;
}
