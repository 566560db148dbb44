import type { ParseText } from './parse-text.ts';
import { type FactQueries, type FactQuery, type FactQueryResult, type FactQueryResults, queryKey } from './query.ts';

/** Read-only queries and the pure parser of their results. `observe` queries several in one round trip. */
export interface Fact<T, Q extends FactQueries = FactQueries> {
  readonly queries: Q;
  /** The names of the queries are their keys (`queryKey`). */
  readonly areKeys?: boolean;
  readonly parse: (answers: FactQueryResults<Q>, parseText: ParseText) => T;
}

/** Keeps the types of queries and results together. */
export function defineFact<T, const Q extends FactQueries>(
  queries: Q,
  parse: (answers: FactQueryResults<Q>, parseText: ParseText) => T,
): Fact<T> {
  return { queries, parse } as unknown as Fact<T>;
}

/** A fact that is derived from another one. */
export function mapFact<T, U>({ parse, ...fact }: Fact<T>, derive: (value: T) => U): Fact<U> {
  return { ...fact, parse: (answers, parseText) => derive(parse(answers, parseText)) };
}

type FactsValue<F extends Readonly<Record<string, Fact<unknown>>>> = { readonly [K in keyof F]: F[K] extends Fact<infer T> ? T : never };

/** Facts that are queried together, with equal queries sent once, and parsed separately. */
export function combineFacts<F extends Readonly<Record<string, Fact<unknown>>>>(facts: F): Fact<FactsValue<F>> {
  const queries: Record<string, FactQuery> = {};
  const parts = Object.entries(facts).map(([name, fact]) => {
    if (fact.areKeys === true) {
      Object.assign(queries, fact.queries);
      return { name, fact, names: null };
    }
    const names = Object.entries(fact.queries).map(([own, question]) => [own, queryKey(question)] as const);
    for (const [own, key] of names) queries[key] = fact.queries[own] as FactQuery;
    return { name, fact, names };
  });
  // Called for every host of a fleet, so the keys are computed once.
  const parse = (answers: FactQueryResults<FactQueries>, parseText: ParseText): FactsValue<F> => {
    const values: Record<string, unknown> = {};
    for (const { name, fact, names } of parts) values[name] = fact.parse(names === null ? answers : renamed(answers, names), parseText);
    return values as FactsValue<F>;
  };
  return { queries, areKeys: true, parse };
}

function renamed(
  answers: FactQueryResults<FactQueries>,
  names: readonly (readonly [own: string, key: string])[],
): FactQueryResults<FactQueries> {
  const own: Record<string, FactQueryResult<FactQuery>> = {};
  for (const [name, key] of names) own[name] = answers[key] as FactQueryResult<FactQuery>;
  return own;
}
