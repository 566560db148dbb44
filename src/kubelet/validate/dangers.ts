import { isJsonObject, type Json, jsonEqual } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { parseQuantity } from '../../base/text/quantity.ts';
import type { Bounds, Danger } from '../catalogue/catalogue.ts';

/**
 * Whether a change of a field leads to a dangerous value. Lower verbosities and shorter caches are not dangerous, and
 * neither is a field that is switched off.
 * @param change effective values; undefined: unset
 */
export function leadsTo(
  { when }: Danger,
  { before, after }: { readonly before: Json | undefined; readonly after: Json | undefined },
): boolean {
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
