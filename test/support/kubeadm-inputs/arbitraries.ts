import fc, { type Arbitrary } from 'fast-check';

const NONE = 4;

/** The value or undefined: half the time each, unless a weight is given. */
export const maybe = <T>(arbitrary: Arbitrary<T>, weight = NONE): Arbitrary<T | undefined> =>
  fc.oneof({ weight: NONE, arbitrary: fc.constant(undefined) }, { weight, arbitrary });

/** A record without its undefined members. */
export const partial = (members: { readonly [name: string]: Arbitrary<unknown> }): Arbitrary<Readonly<Record<string, unknown>>> =>
  fc.record(members).map((record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)));

/**
 * A few members of many, each with the same probability: an object with a hundred fields must not have fifty
 * of them at once.
 */
export const someOf = (
  members: { readonly [name: string]: Arbitrary<unknown> },
  most: number,
): Arbitrary<Readonly<Record<string, unknown>>> =>
  fc
    .subarray(Object.keys(members), { maxLength: most })
    .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, members[name] as Arbitrary<unknown>]))));

/** Durations in all forms that Go formats in another way, and zero. */
export const duration = fc.constantFrom('0s', '5s', '1h30m', '90m', '1.5s', '1ms', '36h', '1h0m0.5s');
