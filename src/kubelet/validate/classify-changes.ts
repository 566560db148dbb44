import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { formatGoDuration, parseGoDuration } from '../../base/text/go-duration.ts';
import { parseQuantity } from '../../base/text/quantity.ts';
import { readScalar } from '../../codec/scalar.ts';
import type { ObjectNode, TypeNode } from '../../codec/type-node.ts';
import { highestImpact } from '../../host/plan/impact.ts';
import type { Bounds, Catalogue, Danger, DangerKind, KubeletReader, LiveChange } from '../catalogue/catalogue.ts';
import { fillKubeletDefaults } from '../defaults/effective-configuration.ts';
import { isUnset, objectOf } from '../documents/values.ts';

/** A field whose effective value changes, with the effect on a running node. */
export interface ClassifiedChange {
  /** `a.b`; map members as `evictionHard[memory.available]`; a list is one value. */
  readonly path: string;
  /** undefined: unset. Defaults count as values. */
  readonly before: Json | undefined;
  readonly after: Json | undefined;
  readonly class: LiveChange;
  /** Reason of the class, as a clause. */
  readonly reason: string;
  /** What the kubelet does by the new value, beyond the pods of the node; null: nothing. Its class is `unsafe`. */
  readonly danger: DangerKind | null;
}

/**
 * Compares two configurations as the kubelet of a minor reads them: with defaults, and durations and
 * quantities by value. Each changed field has a live-change class; every change requires a restart of the
 * kubelet.
 *
 * `safe` needs only that restart · `new-pods-only` affects new pods, or can evict pods · `drain` requires a
 * drained node · `unsafe` can disconnect the node or prevent the kubelet from starting, is dangerous (see
 * `DangerKind`), or is beyond the usual bounds of the field.
 * @param before decoded or plain; fields unknown to the minor are ignored
 * @returns in path order; empty without changes
 */
export function classifyChanges(before: JsonObject, after: JsonObject, options: KubeletReader): readonly ClassifiedChange[] {
  const type = options.catalogue.configurationType(options.minor);
  return differencesOf(type, fillKubeletDefaults(before, options), fillKubeletDefaults(after, options))
    .filter(({ path }) => path !== 'apiVersion' && path !== 'kind')
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map((difference) => classify(difference, options.catalogue));
}

/** The highest class of the changes; null without changes. */
export function worstLiveChange(changes: readonly Pick<ClassifiedChange, 'class'>[]): LiveChange | null {
  return highestImpact(changes.map((change) => change.class));
}

/** `field`: as in the catalogue. */
type Difference = Pick<ClassifiedChange, 'path' | 'before' | 'after'> & { readonly field: string };

/** The differing fields of two objects. */
function differencesOf(type: ObjectNode, before: JsonObject, after: JsonObject, parent = ''): readonly Difference[] {
  return [...type.fields.values()].flatMap(({ name, path: field, type: own, pointer }): readonly Difference[] => {
    const pair = { before: before[name] ?? undefined, after: after[name] ?? undefined };
    const path = parent === '' ? name : `${parent}.${name}`;
    const [old, now] = [objectOf(pair.before), objectOf(pair.after)];
    if (own.kind === 'object') return differencesOf(own, old, now, path);
    if (own.kind === 'map') {
      const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((key) => !sameValue(own.values, old[key], now[key]));
      return keys.map((key) => ({ path: `${path}[${key}]`, field, before: old[key], after: now[key] }));
    }
    const isSame = sameValue(own, pair.before, pair.after) || (!pointer && isUnset(pair.before) && isUnset(pair.after));
    return isSame ? [] : [{ path, field, ...pair }];
  });
}

function sameValue(type: TypeNode, a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  return jsonEqual(normalise(type, a), normalise(type, b));
}

/** Values as the kubelet reads them; quantity strings by amount. */
function normalise(type: TypeNode, value: Json): Json {
  switch (type.kind) {
    case 'list':
      return Array.isArray(value) ? value.map((item: Json) => normalise(type.items, item)) : value;
    case 'map':
      return isJsonObject(value)
        ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, normalise(type.values, item)]))
        : value;
    case 'object': {
      if (!isJsonObject(value)) return value;
      const normalised = ([key, item]: [string, Json]): [string, Json] => {
        const field = type.fields.get(key);
        return [key, field === undefined ? item : normalise(field.type, item)];
      };
      const entries = Object.entries(value).filter(([, item]) => item !== null);
      return Object.fromEntries(entries.map(normalised));
    }
    case 'string':
      return typeof value === 'string' ? normaliseQuantity(value) : value;
    case 'durationOrNanoseconds':
      if (typeof value === 'number') return formatGoDuration(BigInt(value));
      return typeof value === 'string' ? normaliseScalar(type, value) : value;
    case 'duration':
    case 'timestamp':
    case 'quantity':
      return typeof value === 'string' ? normaliseScalar(type, value) : value;
    default:
      return value;
  }
}

function normaliseScalar(
  type: Extract<TypeNode, { readonly kind: 'duration' | 'durationOrNanoseconds' | 'timestamp' | 'quantity' }>,
  text: string,
): Json {
  const read = readScalar(type, { kind: 'string', value: text });
  return 'value' in read ? (type.kind === 'quantity' ? normaliseQuantity(text) : read.value) : text;
}

function normaliseQuantity(text: string): string {
  const quantity = /^[0-9]/.test(text) ? parseQuantity(text) : null;
  if (quantity === null) return text;
  let { unscaled, scale } = quantity;
  while (unscaled !== 0n && unscaled % 10n === 0n) {
    unscaled /= 10n;
    scale--;
  }
  return unscaled === 0n ? '0' : `${unscaled}e${-scale}`;
}

function classify({ field, ...difference }: Difference, catalogue: Catalogue): ClassifiedChange {
  const entry = catalogue.fields.get(field);
  const { danger = null, bounds, liveChange = 'unsafe', liveChangeReason = 'unknown effect' } = entry ?? {};
  const isDangerous = danger !== null && leadsTo(danger, difference);
  const unusual = bounds === undefined ? null : beyondBounds(bounds, difference.after);
  const raised = isDangerous ? danger.reason : unusual;
  const kind = isDangerous ? danger.kind : null;
  if (raised !== null && liveChange !== 'unsafe') return { ...difference, class: 'unsafe', reason: raised, danger: kind };
  const direction = LIMITS.get(field)?.(difference.before, difference.after) ?? { class: liveChange, reason: liveChangeReason };
  const reason = raised === null ? direction.reason : `${direction.reason}; ${raised}`;
  return { ...difference, ...direction, reason, danger: kind };
}

/** Whether only a decrease of the field is disruptive. */
export function isSafeToRaise(field: string): boolean {
  return LIMITS.has(field);
}

/** Limits whose decrease is disruptive. */
const LIMITS: ReadonlyMap<string, ReturnType<typeof raised>> = new Map([
  ['maxPods', raised((value) => value)],
  ['podsPerCore', raised((value) => (value === 0 ? Number.POSITIVE_INFINITY : value))],
  ['podPidsLimit', raised((value) => (value < 0 ? Number.POSITIVE_INFINITY : value))],
]);

function raised(sizeOf: (value: number) => number) {
  return (before: Json | undefined, after: Json | undefined) =>
    sizeOf(Number(after ?? 0)) > sizeOf(Number(before ?? 0))
      ? ({ class: 'safe', reason: 'a higher limit does not affect running pods' } as const)
      : null;
}

/**
 * Whether a change of a field leads to a dangerous value. Lower verbosities and shorter caches are not dangerous, and
 * neither is a field that is switched off.
 * @param change effective values; undefined: unset
 */
function leadsTo({ when }: Danger, { before, after }: { readonly before: Json | undefined; readonly after: Json | undefined }): boolean {
  if (when === undefined) return true;
  if ('to' in when) return jsonEqual(after ?? false, when.to);
  if ('isSet' in when) return after !== undefined && after !== '';
  if ('raised' in when) return (nanosecondsOf(after) ?? 0) > (nanosecondsOf(before) ?? 0);
  return verbosities(after).some((value) => value >= when.atLeast);
}

/** A verbosity, or those of a list of files (`logging.vmodule`). */
function verbosities(value: Json | undefined): readonly number[] {
  if (Array.isArray(value)) return value.flatMap((item: Json) => (isJsonObject(item) ? verbosities(item.verbosity) : []));
  return [Number(value ?? 0)];
}

/**
 * Compares a value with the usual bounds of its field. Zero and negative values mean the default, no limit or off, and
 * the other rules check them, unless the bounds are negative themselves.
 * @returns `1µs is less than 1s: the kubelet reads ...`; null: a usual value, or a value without bounds
 */
export function beyondBounds(bounds: Bounds, value: Json | undefined): string | null {
  const { min, max, reason } = bounds;
  const isDuration = [min, max].some((bound) => typeof bound === 'string' && parseGoDuration(bound) !== null);
  const amountOf = isDuration ? nanosecondsOf : quantityOf;
  const amount = amountOf(value);
  if (amount === null || (amount <= 0 && (amountOf(max) ?? 0) >= 0)) return null;
  if (min !== undefined && amount < (amountOf(min) ?? 0)) return `${value} is less than ${min}: ${reason}`;
  if (max !== undefined && amount > (amountOf(max) ?? 0)) return `${value} is more than ${max}: ${reason}`;
  return null;
}

function nanosecondsOf(value: Json | undefined): number | null {
  const duration = typeof value === 'string' ? parseGoDuration(value) : null;
  return duration === null ? quantityOf(value) : Number(duration);
}

function quantityOf(value: Json | undefined): number | null {
  if (typeof value === 'number') return value;
  const quantity = typeof value === 'string' ? parseQuantity(value) : null;
  return quantity === null ? null : Number(quantity.unscaled) * 10 ** -quantity.scale;
}
