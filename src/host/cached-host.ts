import type { Clock } from '../base/clock.ts';
import { type Answer, type Answers, type FactQueries, type FactQuery, queryKey } from './facts/query.ts';
import type { Host } from './host.ts';

/** A host whose answers are held while it is looked at: what several ask is asked once. */
export interface CachedHost extends Host {
  /** From now on answers are held. Those that are there and fresh count. */
  hold(): void;
  /** From now on every question goes to the host: who waits for something wants to know it anew. What was held is forgotten with the first of them. */
  release(): void;
}

/** Answers older than this are asked for again when the host is looked at anew. */
const FRESH_MS = 2_000;

/**
 * Holds answers from the first question on. With the first one all are asked that are known to come, so that a look takes one round trip; later looks ask again what
 * was asked before. Whatever is done on the host makes all answers void.
 * @param expected what will be asked in any case
 */
export function cacheFacts(host: Host, clock: Clock, expected: readonly FactQuery[] = []): CachedHost {
  let answers: readonly ReadFacts[] = NONE;
  const known = new Map<string, FactQuery>();
  const first = byKey(expected);
  let holding = true;
  let askedAt = 0;
  /** What the host is asked when these are not known: with the first of them all that is known to come. */
  const batchOf = (missing: readonly Keyed[], fresh: boolean): FactQueries => {
    const others = missing.filter(({ key }) => first[key] === undefined);
    // The same object for all hosts: it is put into words once.
    if (fresh && known.size === 0 && others.length === 0) return first;
    const batch: Record<string, FactQuery> = fresh ? { ...first } : {};
    if (fresh) for (const [key, question] of known) if (!isCostly(question)) batch[key] = question;
    for (const { key, question } of missing) batch[key] = question;
    return batch;
  };
  const held: CachedHost = {
    name: host.name,
    hold: () => {
      holding = true;
      if (clock.now().getTime() - askedAt > FRESH_MS) answers = NONE;
    },
    release: () => {
      holding = false;
    },
    query: async <Q extends FactQueries>(queries: Q, options?: Parameters<Host['query']>[1]) => {
      if (!holding) {
        answers = NONE;
        return host.query(queries, options);
      }
      const { asked, areKeys } = keyed(queries);
      const missing = asked.filter(({ key }) => answerTo(key, answers) === undefined);
      if (missing.length > 0) {
        const fresh = answers.length === 0;
        const given: ReadFacts = await host.query(batchOf(missing, fresh), options);
        if (fresh) askedAt = clock.now().getTime();
        for (const { key, question } of missing) if (first[key] === undefined) known.set(key, question);
        answers = fresh ? [given] : [given, ...answers];
        // Who asks by key finds what he asked among all that was answered.
        if (areKeys && missing.length === asked.length) return given as Answers<Q>;
      }
      if (areKeys && answers.length === 1) return answers[0] as Answers<Q>;
      const result: Record<string, Answer<FactQuery> | undefined> = {};
      for (const { name, key } of asked) result[name] = answerTo(key, answers);
      return result as Answers<Q>;
    },
    perform: (operations, options) => {
      answers = NONE;
      return host.perform(operations, options);
    },
    ...(host.dial === undefined ? {} : { dial: host.dial }),
    close: () => host.close(),
  };
  HELD.add(held);
  return held;
}

/** What was answered in one round trip, by key. */
type ReadFacts = Readonly<Record<string, Answer<FactQuery>>>;

const NONE: readonly ReadFacts[] = [];

/** The last answer counts. */
function answerTo(key: string, answers: readonly ReadFacts[]): Answer<FactQuery> | undefined {
  for (const given of answers) if (given[key] !== undefined) return given[key];
  return undefined;
}

const HELD = new WeakSet<Host>();

/** Whether answers of this host can be held. */
export function isCachedHost(host: Host): host is CachedHost {
  return HELD.has(host);
}

/** What runs with an input of its own runs for one question alone. */
function isCostly(question: FactQuery): boolean {
  return question.kind === 'command' && question.stdin !== undefined;
}

/** A question, what it is called where it is asked, and what stands for it. */
interface Keyed {
  readonly name: string;
  readonly key: string;
  readonly question: FactQuery;
}

interface KeyedQuestions {
  readonly asked: readonly Keyed[];
  /** All are called what stands for them. */
  readonly areKeys: boolean;
}

const KEYED = new WeakMap<FactQueries, KeyedQuestions>();

/** Facts ask with the same objects again and again. */
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

/** Hosts of a fleet are expected to be asked the same. */
function byKey(queries: readonly FactQuery[]): FactQueries {
  const found = BY_KEY.get(queries) ?? Object.fromEntries(queries.map((question) => [queryKey(question), question]));
  BY_KEY.set(queries, found);
  return found;
}
