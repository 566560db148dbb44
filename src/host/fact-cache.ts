import type { Clock } from '../base/clock.ts';
import { type Answer, type Answers, type FactQueries, type FactQuery, queryKey } from './facts/query.ts';

/**
 * The facts of one run on one host. While a run is prepared and planned, each fact is queried once. During
 * apply, each phase queries only its own facts again, directly before its changes.
 */
export interface HeldFacts {
  /**
   * Starts the inspection of a phase. After `release`, facts older than two seconds are dropped.
   * @param phase its queries are recorded, and sent together in one round trip the next time
   * @param group phases inspected one after the other, including `phase`: the recorded queries of all of them
   * are sent together
   */
  hold(phase: string, group?: readonly string[]): void;
  /**
   * From now on each query goes to the host and drops all facts, because a wait needs current values. Ends
   * with the next `hold`.
   */
  release(): void;
}

export interface FactCache extends HeldFacts {
  /**
   * Returns cached facts, and queries those that are missing.
   * @param send queries the host
   */
  query<Q extends FactQueries>(queries: Q, send: (missing: FactQueries) => Promise<ReadFacts>): Promise<Answers<Q>>;
  /** Drops all facts, before an operation: each phase queries its own facts again anyway. */
  drop(): void;
}

/** Facts older than this are queried again when a phase is inspected just before it is applied. */
const FRESH_MS = 2_000;

/**
 * Caches the facts of a run.
 * @param expected sent together with the first query of the run, so that a plan needs one round trip
 */
export function factCache(clock: Clock, expected: readonly FactQuery[]): FactCache {
  let answers: readonly ReadFacts[] = NONE;
  let first: FactQueries | null = byKey(expected);
  let holding = true;
  let askedAt = 0;
  const recorded = new Map<string, Map<string, FactQuery>>();
  let current: { readonly queries: Map<string, FactQuery>; readonly group: readonly string[] } | null = null;
  const batchOf = (missing: readonly Keyed[]): FactQueries => {
    const known = first;
    first = null;
    // The same object for all hosts, so that it is rendered once.
    if (known !== null && missing.every(({ key }) => known[key] !== undefined)) return known;
    const batch: Record<string, FactQuery> = { ...known };
    for (const { key, question } of missing) batch[key] = question;
    for (const phase of current?.group ?? [])
      for (const [key, question] of recorded.get(phase) ?? []) if (answerTo(key, answers) === undefined) batch[key] = question;
    return batch;
  };
  return {
    hold: (phase, group = [phase]) => {
      if (!holding && clock.now().getTime() - askedAt > FRESH_MS) answers = NONE;
      holding = true;
      const queries = recorded.get(phase) ?? new Map<string, FactQuery>();
      recorded.set(phase, queries);
      current = { queries, group };
    },
    release: () => {
      holding = false;
      current = null;
    },
    query: async <Q extends FactQueries>(queries: Q, send: (missing: FactQueries) => Promise<ReadFacts>) => {
      if (!holding) {
        answers = NONE;
        return (await send(queries)) as Answers<Q>;
      }
      const { asked, areKeys } = keyed(queries);
      for (const { key, question } of asked) if (!isCostly(question)) current?.queries.set(key, question);
      const missing = asked.filter(({ key }) => answerTo(key, answers) === undefined);
      if (missing.length > 0) {
        const given = await send(batchOf(missing));
        if (answers.length === 0) askedAt = clock.now().getTime();
        answers = [given, ...answers];
        // Queries named by key find their facts in the complete response.
        if (areKeys && missing.length === asked.length) return given as Answers<Q>;
      }
      if (areKeys && answers.length === 1) return answers[0] as Answers<Q>;
      const result: Record<string, Answer<FactQuery> | undefined> = {};
      for (const { name, key } of asked) result[name] = answerTo(key, answers);
      return result as Answers<Q>;
    },
    drop: () => {
      answers = NONE;
    },
  };
}

/** The facts of one round trip, by key. */
type ReadFacts = Readonly<Record<string, Answer<FactQuery>>>;

const NONE: readonly ReadFacts[] = [];

/** The last fact wins. */
function answerTo(key: string, answers: readonly ReadFacts[]): Answer<FactQuery> | undefined {
  for (const given of answers) if (given[key] !== undefined) return given[key];
  return undefined;
}

/** A command with its own stdin is not shared between queries. */
function isCostly(question: FactQuery): boolean {
  return question.kind === 'command' && question.stdin !== undefined;
}

/** A query with its name in the caller, and its key. */
interface Keyed {
  readonly name: string;
  readonly key: string;
  readonly question: FactQuery;
}

interface KeyedQuestions {
  readonly asked: readonly Keyed[];
  /** Names all queries by their keys. */
  readonly areKeys: boolean;
}

const KEYED = new WeakMap<FactQueries, KeyedQuestions>();

/** Facts use the same query objects repeatedly. */
function keyed(queries: FactQueries): KeyedQuestions {
  let found = KEYED.get(queries);
  if (found === undefined) {
    const asked = Object.entries(queries).map(([name, question]) => ({ name, key: queryKey(question), question }));
    found = { asked, areKeys: asked.every(({ name, key }) => name === key) };
    KEYED.set(queries, found);
  }
  return found;
}

const BY_KEY = new WeakMap<readonly FactQuery[], FactQueries>();

/** Hosts of a fleet usually have the same expected queries. */
function byKey(queries: readonly FactQuery[]): FactQueries {
  const found = BY_KEY.get(queries) ?? Object.fromEntries(queries.map((question) => [queryKey(question), question]));
  BY_KEY.set(queries, found);
  return found;
}
