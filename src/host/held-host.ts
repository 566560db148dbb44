import type { Clock } from '../base/clock.ts';
import { type Answer, type Answers, type Question, type Questions, questionKey } from './facts/question.ts';
import type { Host } from './host.ts';

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
  let answers: readonly GivenAnswers[] = NONE;
  const known = new Map<string, Question>();
  const first = byKey(expected);
  let holding = true;
  let askedAt = 0;
  /** What the host is asked when these are not known: with the first of them all that is known to come. */
  const batchOf = (missing: readonly Keyed[], fresh: boolean): Questions => {
    const others = missing.filter(({ key }) => first[key] === undefined);
    // The same object for all hosts: it is put into words once.
    if (fresh && known.size === 0 && others.length === 0) return first;
    const batch: Record<string, Question> = fresh ? { ...first } : {};
    if (fresh) for (const [key, question] of known) if (!isCostly(question)) batch[key] = question;
    for (const { key, question } of missing) batch[key] = question;
    return batch;
  };
  const held: HeldHost = {
    name: host.name,
    hold: () => {
      holding = true;
      if (clock.now().getTime() - askedAt > FRESH_MS) answers = NONE;
    },
    release: () => {
      holding = false;
    },
    ask: async <Q extends Questions>(questions: Q, options?: Parameters<Host['ask']>[1]) => {
      if (!holding) {
        answers = NONE;
        return host.ask(questions, options);
      }
      const { asked, areKeys } = keyed(questions);
      const missing = asked.filter(({ key }) => answerTo(key, answers) === undefined);
      if (missing.length > 0) {
        const fresh = answers.length === 0;
        const given: GivenAnswers = await host.ask(batchOf(missing, fresh), options);
        if (fresh) askedAt = clock.now().getTime();
        for (const { key, question } of missing) if (first[key] === undefined) known.set(key, question);
        answers = fresh ? [given] : [given, ...answers];
        // Who asks by key finds what he asked among all that was answered.
        if (areKeys && missing.length === asked.length) return given as Answers<Q>;
      }
      if (areKeys && answers.length === 1) return answers[0] as Answers<Q>;
      const result: Record<string, Answer<Question> | undefined> = {};
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
type GivenAnswers = Readonly<Record<string, Answer<Question>>>;

const NONE: readonly GivenAnswers[] = [];

/** The last answer counts. */
function answerTo(key: string, answers: readonly GivenAnswers[]): Answer<Question> | undefined {
  for (const given of answers) if (given[key] !== undefined) return given[key];
  return undefined;
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

/** A question, what it is called where it is asked, and what stands for it. */
interface Keyed {
  readonly name: string;
  readonly key: string;
  readonly question: Question;
}

interface KeyedQuestions {
  readonly asked: readonly Keyed[];
  /** All are called what stands for them. */
  readonly areKeys: boolean;
}

const KEYED = new WeakMap<Questions, KeyedQuestions>();

/** Facts ask with the same objects again and again. */
function keyed(questions: Questions): KeyedQuestions {
  let found = KEYED.get(questions);
  if (found === undefined) {
    const asked = Object.entries(questions).map(([name, question]) => ({ name, key: questionKey(question), question }));
    found = { asked, areKeys: asked.every(({ name, key }) => name === key) };
    KEYED.set(questions, found);
  }
  return found;
}

const BY_KEY = new WeakMap<readonly Question[], Questions>();

/** Hosts of a fleet are expected to be asked the same. */
function byKey(questions: readonly Question[]): Questions {
  const found = BY_KEY.get(questions) ?? Object.fromEntries(questions.map((question) => [questionKey(question), question]));
  BY_KEY.set(questions, found);
  return found;
}
