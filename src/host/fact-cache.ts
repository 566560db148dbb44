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
  let answers: readonly ReadFacts[] = [];
  let first: FactQueries | null = expected;
  let holding = true;
  /** Of the oldest answer; null: none. */
  let askedAt: number | null = null;
  const recorded = new Map<string, Set<FactQueries>>();
  let current: { readonly queries: Set<FactQueries>; readonly group: readonly string[] } | null = null;

  const drop = (): void => {
    answers = lasting === NO_FACTS ? [] : [lasting];
    askedAt = null;
  };
  /** The missing queries, and those that the run needs next. */
  const batchWith = (missing: FactQueries): FactQueries => {
    const known = first;
    first = null;
    if (known !== null && Object.keys(missing).every((key) => known[key] !== undefined)) return known;
    const ofGroup = (current?.group ?? []).flatMap((phase) => [...(recorded.get(phase) ?? [])]);
    return { ...known, ...missing, ...unanswered(ofGroup, answers) };
  };
  const fetchMissing = async (missing: FactQueries, send: Send): Promise<readonly ReadFacts[]> => {
    const batch = holding ? batchWith(missing) : missing;
    const given = await send(batch);
    lasting = withLasting(lasting, batch, given);
    answers = [given, ...answers];
    askedAt ??= clock.now().getTime();
    return answers;
  };
  return {
    cacheFacts: (phase: string, group: readonly string[] = [phase]): void => {
      if (!holding && askedAt !== null && clock.now().getTime() - askedAt > FRESH_MS) drop();
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
    query: async <Q extends FactQueries>(queries: Q, { areKeys, send }: { readonly areKeys: boolean; readonly send: Send }) => {
      if (!holding) drop();
      const names = Object.entries(queries).map(([name, query]) => [name, areKeys ? name : queryKey(query)] as const);
      const asked = areKeys ? queries : Object.fromEntries(names.map(([name, key]) => [key, queries[name] as FactQuery]));
      if (holding) current?.queries.add(asked);
      const missing = Object.entries(asked).filter(([key]) => answerTo(key, answers) === undefined);
      const known = missing.length === 0 ? answers : await fetchMissing(Object.fromEntries(missing), send);
      // Queries named by key find their facts in the complete response.
      const isComplete = missing.length > 0 && missing.length === names.length;
      if (areKeys && (isComplete || known.length === 1)) return known[0] as FactQueryResults<Q>;
      return Object.fromEntries(names.map(([name, key]) => [name, answerTo(key, known)])) as FactQueryResults<Q>;
    },
    drop,
  };
}

type Send = (missing: FactQueries) => Promise<ReadFacts>;

/** The facts of one round trip, by key. */
type ReadFacts = Readonly<Record<string, FactQueryResult<FactQuery>>>;

const NO_FACTS: ReadFacts = {};

function answerTo(key: string, answers: readonly ReadFacts[]): FactQueryResult<FactQuery> | undefined {
  for (const given of answers) if (given[key] !== undefined) return given[key];
  return undefined;
}

/** A command with its own stdin is not shared between queries. */
function isCostly(question: FactQuery): boolean {
  return question.kind === 'command' && question.stdin !== undefined;
}

/** Queries without an answer, which are worth a place in the next round trip. */
function unanswered(recorded: readonly FactQueries[], answers: readonly ReadFacts[]): FactQueries {
  const entries = recorded.flatMap((queries) => Object.entries(queries));
  return Object.fromEntries(entries.filter(([key, query]) => !isCostly(query) && answerTo(key, answers) === undefined));
}

function withLasting(lasting: ReadFacts, batch: FactQueries, given: ReadFacts): ReadFacts {
  const kept = Object.entries(given).filter(([key]) => 'lasting' in (batch[key] ?? {}));
  return kept.length === 0 ? lasting : { ...lasting, ...Object.fromEntries(kept) };
}
