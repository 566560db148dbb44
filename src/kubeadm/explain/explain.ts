import { AppError } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import { type Catalogue, type FlagEntry, formatMinor, type GateEntry, NEWEST_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import { findFlag, flagKey } from '../../kubelet/flags/command-line.ts';
import { explainField, type FieldExplanation, findField, listFields } from './explain-field.ts';
import { type ExplainOptions, periods, typeText } from './explanation.ts';
import { fieldsOfGate } from './field-gates.ts';

type Matches = NonNullable<ReturnType<typeof searchNames>>;

export type Explanation =
  | FieldExplanation
  | ReturnType<typeof listFields>
  | Matches
  | ReturnType<typeof explainFlag>
  | ReturnType<typeof explainGate>;

/**
 * Explains a field of KubeletConfiguration, a flag of the kubelet or a feature gate.
 * @param name a path such as `logging.vmodule.verbosity` or `evictionHard[memory.available]` (explains the
 *   map), a flag (`--node-ip`) or a gate (`NodeSwap`); a part of names (`swap`) gives the list of names that contain
 *   it, or explains the only one; an empty string gives all top-level fields
 * @throws AppError EXPLAIN_UNKNOWN_NAME, with a suggestion, exit code 2
 */
export function explain(name: string, options: ExplainOptions): Explanation {
  const { catalogue } = options;
  if (name === '') return listFields(options);
  if (name.startsWith('-')) {
    const flag = findFlag(name, options);
    if (flag === undefined) throw unknownFlag(name, catalogue);
    return explainFlag(flag, options);
  }
  const field = findField(name, catalogue);
  if (field !== undefined) return explainField(field, options);
  const gate = catalogue.gates.get(name);
  if (gate !== undefined) return explainGate(gate, options);
  const flag = findFlag(name, options);
  if (flag !== undefined) return explainFlag(flag, options);
  const matches = searchNames(name, options);
  if (matches === null) throw unknownName(name, catalogue);
  const [only, ...more] = namesOf(matches);
  return only === undefined || more.length > 0 ? matches : explain(only, options);
}

function namesOf({ fields, flags, featureGates }: Matches): readonly string[] {
  return [...fields.map(({ path }) => path), ...flags.map(({ name }) => `--${name}`), ...featureGates.map(({ name }) => name)];
}

function unknownFlag(name: string, { flags }: Catalogue): AppError {
  const guess = closestName(flagKey(name), flags.keys());
  return unknown(`no kubelet version has the flag --${flagKey(name)}`, guess === null ? null : `--${guess}`);
}

/** The error for a name that is no field, flag or gate in any minor version, with a suggestion. */
export function unknownName(name: string, { fields, gates, flags }: Catalogue): AppError {
  const paths = [...fields.keys()];
  const last = lastName(name);
  const sameName = paths.find((path) => lastName(path).toLowerCase() === last.toLowerCase());
  const isOf = (path: string): boolean => lastName(path) === closestName(last, paths.map(lastName));
  const guess =
    closestName(name, paths) ?? sameName ?? closestName(name, gates.keys()) ?? closestName(name, flags.keys()) ?? paths.find(isOf) ?? null;
  return unknown(`no kubelet version has a field, flag or feature gate ${name}`, guess);
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1).replaceAll('[]', '');
}

function unknown(message: string, guess: string | null): AppError {
  const hint = guess === null ? 'To list the fields, run kubeletadm config explain' : `Did you mean ${guess}?`;
  return new AppError({ code: 'EXPLAIN_UNKNOWN_NAME', message, hint }, { exitCode: 2 });
}

function explainFlag(entry: FlagEntry, { catalogue, minor }: ExplainOptions) {
  const flag = catalogue.flag(entry.flag, minor);
  const last = entry.removedIn === null ? NEWEST_MINOR : entry.removedIn - 1;
  const fieldSince = Math.max(entry.fieldSince ?? 0, catalogue.fields.get(entry.field ?? '')?.minors[0] ?? 0);
  return {
    kind: 'Flag' as const,
    name: entry.flag,
    kubernetesVersion: formatMinor(minor),
    known: flag !== null,
    type: entry.type,
    since: formatMinor(entry.since),
    removedIn: entry.removedIn === null ? null : formatMinor(entry.removedIn),
    /** As printed by the flag; without a configuration file some defaults differ. */
    default: flag?.default ?? entry.default,
    defaults: periods(entry.defaultByMinor ?? [{ from: entry.since, value: entry.default }], last, ({ value }) => value),
    /** The field with the same meaning; null when no such field exists. */
    field:
      entry.field === null
        ? null
        : { path: entry.field, since: formatMinor(fieldSince), known: catalogue.field(entry.field, minor) !== null && minor >= fieldSince },
    deprecated:
      entry.deprecatedSince === null && !entry.deprecated
        ? null
        : { since: entry.deprecatedSince === null ? null : formatMinor(entry.deprecatedSince), how: entry.deprecation ?? null },
    origin: entry.group,
  };
}

function explainGate(entry: GateEntry, { catalogue, minor }: ExplainOptions) {
  const gate = catalogue.gate(entry.name, minor);
  const last = entry.removedIn === null ? NEWEST_MINOR : entry.removedIn - 1;
  return {
    kind: 'FeatureGate' as const,
    name: entry.name,
    kubernetesVersion: formatMinor(minor),
    known: gate !== null,
    stage: gate?.stage ?? null,
    default: gate?.default ?? null,
    locked: gate?.locked ?? null,
    dependencies: gate?.dependencies ?? [],
    versions: periods(entry.versions, last, ({ stage, default: value, lockToDefault }) => ({ stage, default: value, lockToDefault })),
    removedIn: entry.removedIn === null ? null : formatMinor(entry.removedIn),
    /** Fields that need the gate, or have no effect without it. */
    fields: fieldsOfGate(entry.name),
  };
}

/**
 * Searches the fields, flags and feature gates of one kubelet version for names that contain a text. Case, dashes and
 * underscores are ignored: `failswap` finds `failSwapOn` and `--fail-swap-on`.
 * @returns null when no name contains it
 */
function searchNames(text: string, { catalogue, minor }: ExplainOptions) {
  const wanted = normalizeName(text);
  const contains = (name: string): boolean => normalizeName(name).includes(wanted);
  const fields = [...catalogue.fields.values()].flatMap(({ path, description }) => {
    const field = contains(path) ? catalogue.field(path, minor) : null;
    return field === null ? [] : [{ path, type: typeText(field.type), description, default: field.default }];
  });
  const flags = [...catalogue.flags.keys()].filter((name) => contains(name) && catalogue.flag(name, minor) !== null);
  const gates = [...catalogue.gates.keys()].filter((name) => contains(name) && catalogue.gate(name, minor) !== null);
  if (wanted === '' || fields.length + flags.length + gates.length === 0) return null;
  return {
    kind: 'Matches' as const,
    text,
    kubernetesVersion: formatMinor(minor),
    fields,
    flags: flags.map((name) => ({ name, field: catalogue.flags.get(name)?.field ?? null })),
    featureGates: gates.map((name) => ({ name, stage: catalogue.gate(name, minor)?.stage ?? null })),
  };
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[-_[\]]/g, '');
}
