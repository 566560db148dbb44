import type { Answer, Answers, Question, Questions } from '../core/facts/question.ts';
import type { Clock } from '../ports/clock.ts';
import type { Host } from '../ports/host.ts';

/** A host whose answers are held while it is looked at: what several ask is asked once. */
export interface HeldHost extends Host {
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
export function holdAnswers(host: Host, clock: Clock, expected: readonly Question[] = []): HeldHost {
  const answers = new Map<string, Answer<Question>>();
  const known = new Map<string, Question>();
  const first = byKey(expected);
  let holding = true;
  let askedAt = 0;
  const held: HeldHost = {
    name: host.name,
    hold: () => {
      holding = true;
      if (clock.now().getTime() - askedAt > FRESH_MS) answers.clear();
    },
    release: () => {
      holding = false;
    },
    ask: async <Q extends Questions>(questions: Q, options?: Parameters<Host['ask']>[1]) => {
      if (!holding) {
        answers.clear();
        return host.ask(questions, options);
      }
      const missing = Object.values(questions).filter((question) => !answers.has(keyOf(question)));
      if (missing.length > 0) {
        const batch = new Map(answers.size === 0 ? first : []);
        if (answers.size === 0) for (const [key, question] of known) if (!isCostly(question)) batch.set(key, question);
        for (const question of missing) {
          const key = keyOf(question);
          batch.set(key, question);
          if (!first.has(key)) known.set(key, question);
        }
        const given = await host.ask(Object.fromEntries(batch), options);
        if (answers.size === 0) askedAt = clock.now().getTime();
        for (const key of batch.keys()) answers.set(key, given[key] as Answer<Question>);
      }
      const result: Record<string, Answer<Question> | undefined> = {};
      for (const name of Object.keys(questions)) result[name] = answers.get(keyOf(questions[name] as Question));
      return result as Answers<Q>;
    },
    perform: (operations, options) => {
      answers.clear();
      return host.perform(operations, options);
    },
    ...(host.dial === undefined ? {} : { dial: host.dial }),
    close: () => host.close(),
  };
  HELD.add(held);
  return held;
}

const HELD = new WeakSet<Host>();

/** Whether answers of this host can be held. */
export function isHeldHost(host: Host): host is HeldHost {
  return HELD.has(host);
}

/** What runs with an input of its own runs for one question alone. */
function isCostly(question: Question): boolean {
  return question.kind === 'command' && question.stdin !== undefined;
}

const BY_KEY = new WeakMap<readonly Question[], ReadonlyMap<string, Question>>();

/** Hosts of a fleet are expected to be asked the same. */
function byKey(questions: readonly Question[]): ReadonlyMap<string, Question> {
  const known = BY_KEY.get(questions) ?? new Map(questions.map((question) => [keyOf(question), question]));
  BY_KEY.set(questions, known);
  return known;
}

const KEYS = new WeakMap<Question, string>();

/** Facts ask with the same objects again and again. */
function keyOf(question: Question): string {
  const known = KEYS.get(question) ?? JSON.stringify(question);
  KEYS.set(question, known);
  return known;
}
