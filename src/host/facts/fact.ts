import { type Answer, type Answers, type FactQueries, type FactQuery, queryKey } from './query.ts';

/**
 * One thing to know about a host: the read-only questions to ask and the pure parser of their answers. Facts are asked together, in one round
 * trip (`observe` in engine/observe.ts).
 */
export interface Fact<T, Q extends FactQueries = FactQueries> {
  readonly queries: Q;
  readonly parse: (answers: Answers<Q>) => T;
}

/** Keeps the types of questions and answers together. */
export function defineFact<T, const Q extends FactQueries>(queries: Q, parse: (answers: Answers<Q>) => T): Fact<T> {
  return { queries, parse } as unknown as Fact<T>;
}

type FactsValue<F extends Readonly<Record<string, Fact<unknown>>>> = { readonly [K in keyof F]: F[K] extends Fact<infer T> ? T : never };

/** Several facts as one: asked together, what several ask is asked once; parsed each for itself. Its questions are named by their keys (`queryKey`). */
export function combineFacts<F extends Readonly<Record<string, Fact<unknown>>>>(facts: F): Fact<FactsValue<F>> {
  const queries: Record<string, FactQuery> = {};
  const parts = Object.entries(facts).map(([name, fact]) => {
    const names = Object.entries(fact.queries).map(([own, question]) => [own, queryKey(question)] as const);
    for (const [own, key] of names) queries[key] = fact.queries[own] as FactQuery;
    // Facts that are combined themselves know the answers by the same keys.
    return { name, fact, names: names.every(([own, key]) => own === key) ? null : names };
  });
  // Called for every host of a fleet: the keys were put together before.
  const parse = (answers: Answers<FactQueries>): FactsValue<F> => {
    const values: Record<string, unknown> = {};
    for (const { name, fact, names } of parts) values[name] = fact.parse(names === null ? answers : renamed(answers, names));
    return values as FactsValue<F>;
  };
  return { queries, parse };
}

function renamed(answers: Answers<FactQueries>, names: readonly (readonly [own: string, key: string])[]): Answers<FactQueries> {
  const own: Record<string, Answer<FactQuery>> = {};
  for (const [name, key] of names) own[name] = answers[key] as Answer<FactQuery>;
  return own;
}
