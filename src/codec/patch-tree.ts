import type { Json } from '../base/json.ts';

/** A private copy that a patch may modify. Objects have no prototype, so that no key has a special meaning. */
export type Mutable = null | boolean | number | string | Mutable[] | MutableObject;
export interface MutableObject {
  [key: string]: Mutable;
}

/** A mutable deep copy; its objects have no prototype. */
export function cloneJson(value: Json): Mutable {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return (value as readonly Json[]).map(cloneJson);
  const copy = emptyObject();
  for (const [key, item] of Object.entries(value)) copy[key] = cloneJson(item);
  return copy;
}

export function emptyObject(): MutableObject {
  return Object.create(null) as MutableObject;
}

export function isMutableObject(value: Mutable | undefined): value is MutableObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `an object`, `a list`, `a string` …: for messages. */
export function describeType(value: Mutable | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  return `a ${typeof value}`;
}

/** Drops null members from objects at any depth, in place; null items of lists are kept. */
export function withoutNulls(value: Mutable): Mutable {
  if (Array.isArray(value)) value.forEach(withoutNulls);
  else if (isMutableObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      if (item === null) delete value[key];
      else withoutNulls(item);
    }
  }
  return value;
}
