import type { Arg } from '../../base/arg.ts';
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { formatGoDuration, parseGoDuration } from '../../base/text/go-duration.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { type Catalogue, type Field, formatMinor, type GateEntry, type Minor } from '../catalogue/catalogue.ts';
import { GROUP_GATES } from '../catalogue/feature-gates.ts';
import { isEmpty } from '../documents/values.ts';

/**
 * One action or finding of a migration. `lossy`: behaviour of the old kubelet that the new one does not
 * support; the migration is refused unless forced.
 */
export interface MigrationStep {
  readonly did: 'removed' | 'moved' | 'rewritten' | 'pinned' | 'kept' | 'changes';
  /** `featureGates.NodeSwap`, `--max-pods`. */
  readonly what: string;
  /** A clause with reason and effect. */
  readonly message: string;
  readonly lossy: boolean;
}

/** A change of the file: undefined removes the field. */
export interface FieldEdit {
  readonly path: readonly string[];
  readonly value: Json | undefined;
}

export interface MigrateOptions {
  readonly from: Minor;
  readonly to: Minor;
  readonly catalogue: Catalogue;
  /** The kubelet's command line in addition to the file. */
  readonly flags: readonly Arg[];
  /** Write the old defaults where the new minor has others. */
  readonly keepDefaults: boolean;
}

/** The minors of a migration, and what is known about kubelets. */
export type Minors = Pick<MigrateOptions, 'from' | 'to' | 'catalogue'>;

export interface Migrated {
  readonly steps: readonly MigrationStep[];
  readonly edits: readonly FieldEdit[];
}

/**
 * Computes the changes to the fields of a file for a kubelet of another minor: unknown fields, unsupported
 * values, changed types. Feature gates are handled separately.
 * @param config as written, decoded for the old minor, without apiVersion and kind
 */
export function migrateFields(config: JsonObject, options: Minors): Migrated {
  const found: Found = { edits: [], steps: [] };
  visit(config, { path: [], pattern: '' }, options, found);
  return found;
}

interface Place {
  readonly path: readonly string[];
  readonly pattern: string;
}

type Found = { readonly edits: FieldEdit[]; readonly steps: MigrationStep[] };

function visit(config: JsonObject, place: Place, options: Minors, found: Found): void {
  for (const [name, value] of Object.entries(config)) {
    const at = { path: [...place.path, name], pattern: place.pattern === '' ? name : `${place.pattern}.${name}` };
    const field = options.catalogue.field(at.pattern, options.to);
    if (field === null) removeField(value, at, options, found);
    else if (field.type === 'object' && isJsonObject(value)) visit(value, at, options, found);
    else checkValue(value, field, at, options, found);
  }
}

function removeField(value: Json, { path, pattern }: Place, { to, catalogue }: Minors, { edits, steps }: Found): void {
  const [since = 0, until = 0] = catalogue.fields.get(pattern)?.minors ?? [];
  const why = to < since ? `added in ${formatMinor(since)}` : `removed in ${formatMinor(until + 1)}`;
  const lossy = !isEmpty(value);
  const lost = lossy ? `: ${inlineValue(value)} cannot be kept` : '';
  edits.push({ path, value: undefined });
  steps.push({ did: 'removed', what: path.join('.'), message: `unknown to a ${formatMinor(to)} kubelet, ${why}${lost}`, lossy });
}

function checkValue(value: Json, field: Field, { path, pattern }: Place, { from, to, catalogue }: Minors, { edits, steps }: Found): void {
  const before = catalogue.field(pattern, from);
  const what = path.join('.');
  if (before !== null && before.type !== field.type) {
    const converted = convert(value, field);
    if (converted !== null) {
      edits.push({ path, value: converted });
      const message = `${inlineValue(value)} was converted to ${inlineValue(converted)} for a ${formatMinor(to)} kubelet`;
      steps.push({ did: 'rewritten', what, message, lossy: false });
    }
  }
  const changed = CHANGED_MEANINGS.find((each) => each.path === pattern && each.value === value);
  if (changed !== undefined && from < changed.since !== to < changed.since) {
    const [then, now] = from < to ? [changed.before, changed.after] : [changed.after, changed.before];
    const message = `${inlineValue(value)} means ${now} for a ${formatMinor(to)} kubelet, but ${then} for a ${formatMinor(from)} kubelet`;
    steps.push({ did: 'changes', what, message, lossy: false });
  }
  const words = field.values;
  const strange =
    words === null ? [] : (Array.isArray(value) ? value : [value]).filter((word) => typeof word === 'string' && !words.includes(word));
  for (const word of strange) {
    // Values that the old kubelet rejects as well are left to the validation.
    if (before?.values?.includes(word as string) !== true) continue;
    const takes = words?.filter((each) => each !== '').join(', ');
    steps.push({
      did: 'kept',
      what,
      message: `a ${formatMinor(to)} kubelet does not support ${inlineValue(word)}; supported values: ${takes}`,
      lossy: true,
    });
  }
}

/**
 * Values that mean something else since a minor.
 * @see release notes of 1.37 (#117119); in 1.36, cmd/kubelet/app/server.go passes 0 on to client-go, whose default is 5
 */
const CHANGED_MEANINGS: readonly {
  readonly path: string;
  readonly value: Json;
  readonly since: Minor;
  readonly before: string;
  readonly after: string;
}[] = [{ path: 'eventRecordQPS', value: 0, since: 37, before: '5 events per second', after: 'unlimited events' }];

/** Converts `logging.flushFrequency`, which changed from nanoseconds to nanoseconds or a duration. Null: unchanged. */
function convert(value: Json, { type }: Field): Json | null {
  if (type === 'durationOrNanoseconds' && typeof value === 'number') return formatGoDuration(BigInt(value));
  if (type !== 'int64' || typeof value !== 'string') return null;
  const nanoseconds = parseGoDuration(value);
  return nanoseconds === null ? null : Number(nanoseconds);
}

/**
 * Removes gates that the new minor does not know or that only set their default. A removed gate whose
 * behaviour cannot be kept is lossy.
 * @param gates effective gates of the old kubelet, from file and flags
 * @returns the remaining gates
 */
export function migrateGates(gates: Readonly<Record<string, boolean>>, { to, catalogue }: Minors) {
  const steps: MigrationStep[] = [];
  const kept = Object.entries(gates).filter(([name, value]) => {
    const verdict = validateGate(name, value, to, catalogue);
    if (verdict === null) return true;
    steps.push({ what: `featureGates.${name}`, ...verdict });
    return verdict.did === 'kept';
  });
  return { gates: Object.fromEntries(kept), steps };
}

/** Null: no change. */
function validateGate(name: string, value: boolean, to: Minor, catalogue: Catalogue): Omit<MigrationStep, 'what'> | null {
  if (Object.hasOwn(GROUP_GATES, name)) return null;
  const entry = catalogue.gates.get(name);
  if (entry === undefined) return { did: 'removed', message: 'no kubelet has this gate', lossy: true };
  const gate = catalogue.gate(name, to);
  if (gate === null) return goneGate(entry, value, to);
  const since = formatMinor(sinceOf(entry, to));
  if (gate.locked) {
    if (value === gate.default) return { did: 'removed', message: `locked to ${value} since ${since}`, lossy: false };
    return { did: 'removed', message: `locked to ${gate.default} since ${since}: the kubelet rejects ${value}`, lossy: true };
  }
  if (gate.stage === 'GA' && value === gate.default)
    return { did: 'removed', message: `GA since ${since} and ${onOff(value)} by default`, lossy: false };
  if (gate.stage === 'GA') return { did: 'kept', message: `GA since ${since}: will be locked ${onOff(gate.default)}`, lossy: false };
  if (gate.stage === 'DEPRECATED') return { did: 'kept', message: `deprecated since ${since}: will be removed`, lossy: false };
  return null;
}

function goneGate(entry: GateEntry, value: boolean, to: Minor): Omit<MigrationStep, 'what'> {
  const first = entry.versions[0];
  if (first !== undefined && to < first.from) {
    const message = `unknown to a ${formatMinor(to)} kubelet: added in ${formatMinor(first.from)}`;
    return { did: 'removed', message, lossy: value };
  }
  const last = entry.versions.at(-1);
  const gone = `the gate was removed in ${formatMinor(entry.removedIn ?? to)}`;
  const always = last?.default ?? false;
  if (value === always) return { did: 'removed', message: `${gone}; the feature is always ${onOff(always)}`, lossy: false };
  const kept = last?.stage === 'GA' ? `is always ${onOff(always)}` : 'was removed too';
  return { did: 'removed', message: `${gone}; the feature ${kept}: ${value} cannot be kept`, lossy: true };
}

/** The first minor of the current state. */
function sinceOf(entry: GateEntry, minor: Minor): Minor {
  return entry.versions.findLast(({ from }) => from <= minor)?.from ?? minor;
}

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}
