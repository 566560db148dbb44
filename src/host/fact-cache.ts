import type { Clock } from '../base/clock.ts';
import { type FactQueries, type FactQuery, type FactQueryResult, type FactQueryResults, queryKey } from './facts/query.ts';

/** Facts older than this are queried again when a phase is inspected just before it is applied. */
const FRESH_MS = 2_000;

/**
 * The facts of one run on one host. While a run is prepared and planned, each fact is queried once. During apply, each
 * phase queries only its own facts again, directly before its changes. Lasting facts are never dropped.
 * @param expected by key; sent together with the first query of the run, so that a plan needs one round trip
 */
export function factCache(clock: Clock, expected: FactQueries) {
  let lasting = NO_FACTS;
  let isEmpty = true;
  let answers: readonly ReadFacts[] = NONE;
  let first: FactQueries | null = expected;
  let holding = true;
  let askedAt = 0;
  const recorded = new Map<string, Set<FactQueries>>();
  let current: { readonly queries: Set<FactQueries>; readonly group: readonly string[] } | null = null;
  const batchOf = (missing: readonly string[], asked: FactQueries): FactQueries => {
    const known = first;
    first = null;
    if (known !== null && missing.every((key) => known[key] !== undefined)) return known;
    const batch: Record<string, FactQuery> = { ...known, ...only(missing, asked) };
    for (const phase of current?.group ?? []) {
      for (const queries of recorded.get(phase) ?? []) {
        for (const [key, question] of Object.entries(queries))
          if (!isCostly(question) && answerTo(key, answers) === undefined) batch[key] = question;
      }
    }
    return batch;
  };
  const drop = (): void => {
    answers = lasting === NO_FACTS ? NONE : [lasting];
    isEmpty = true;
  };
  const ask = async (batch: FactQueries, send: (missing: FactQueries) => Promise<ReadFacts>): Promise<ReadFacts> => {
    const given = await send(batch);
    const kept = Object.keys(batch).filter((key) => 'lasting' in (batch[key] as FactQuery));
    if (kept.length > 0)
      lasting = { ...lasting, ...Object.fromEntries(kept.map((key) => [key, given[key] as FactQueryResult<FactQuery>])) };
    return given;
  };
  return {
    cacheFacts: (phase: string, group: readonly string[] = [phase]): void => {
      if (!holding && clock.now().getTime() - askedAt > FRESH_MS) drop();
      holding = true;
      const queries = recorded.get(phase) ?? new Set<FactQueries>();
      recorded.set(phase, queries);
      current = { queries, group };
    },
    bypassFactCache: (): void => {
      holding = false;
      current = null;
    },
    /** Returns cached facts, and those that are missing with `send`. `areKeys`: the names of the queries are their keys. */
    query: async <Q extends FactQueries>(
      queries: Q,
      { areKeys, send }: { readonly areKeys: boolean; readonly send: (missing: FactQueries) => Promise<ReadFacts> },
    ): Promise<FactQueryResults<Q>> => {
      if (!holding) drop();
      const named = areKeys ? null : Object.entries(queries).map(([name, question]) => [name, queryKey(question)] as const);
      const asked = named === null ? queries : Object.fromEntries(named.map(([name, key]) => [key, queries[name] as FactQuery]));
      const keys = Object.keys(asked);
      if (holding) current?.queries.add(asked);
      const missing = keys.filter((key) => answerTo(key, answers) === undefined);
      let known = answers;
      if (missing.length > 0) {
        const given = await ask(holding ? batchOf(missing, asked) : only(missing, asked), send);
        known = [given, ...answers];
        if (isEmpty) askedAt = clock.now().getTime();
        isEmpty = false;
        answers = known;
        // Queries named by key find their facts in the complete response.
        if (areKeys && missing.length === keys.length) return given as FactQueryResults<Q>;
      }
      if (areKeys && known.length === 1) return known[0] as FactQueryResults<Q>;
      const result: Record<string, FactQueryResult<FactQuery> | undefined> = {};
      for (const [name, key] of named ?? keys.map((key) => [key, key] as const)) result[name] = answerTo(key, known);
      return result as FactQueryResults<Q>;
    },
    drop,
  };
}

/** The facts of one round trip, by key. */
type ReadFacts = Readonly<Record<string, FactQueryResult<FactQuery>>>;

const NO_FACTS: ReadFacts = {};
const NONE: readonly ReadFacts[] = [];

function answerTo(key: string, answers: readonly ReadFacts[]): FactQueryResult<FactQuery> | undefined {
  for (const given of answers) if (given[key] !== undefined) return given[key];
  return undefined;
}

/** A command with its own stdin is not shared between queries. */
function isCostly(question: FactQuery): boolean {
  return question.kind === 'command' && question.stdin !== undefined;
}

function only(keys: readonly string[], asked: FactQueries): FactQueries {
  return Object.fromEntries(keys.map((key) => [key, asked[key] as FactQuery]));
}
