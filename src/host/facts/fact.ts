import { type Answer, type Answers, type Question, type Questions, questionKey } from './question.ts';

/**
 * One thing to know about a host: the read-only questions to ask and the pure parser of their answers. Facts are asked together, in one round
 * trip (`observe` in engine/observe.ts).
 */
export interface Fact<T, Q extends Questions = Questions> {
  readonly questions: Q;
  readonly parse: (answers: Answers<Q>) => T;
}

/** Keeps the types of questions and answers together. */
export function defineFact<T, const Q extends Questions>(questions: Q, parse: (answers: Answers<Q>) => T): Fact<T> {
  return { questions, parse } as unknown as Fact<T>;
}

type FactsValue<F extends Readonly<Record<string, Fact<unknown>>>> = { readonly [K in keyof F]: F[K] extends Fact<infer T> ? T : never };

/** Several facts as one: asked together, what several ask is asked once; parsed each for itself. Its questions are named by their keys (`questionKey`). */
export function combineFacts<F extends Readonly<Record<string, Fact<unknown>>>>(facts: F): Fact<FactsValue<F>> {
  const questions: Record<string, Question> = {};
  const parts = Object.entries(facts).map(([name, fact]) => {
    const names = Object.entries(fact.questions).map(([own, question]) => [own, questionKey(question)] as const);
    for (const [own, key] of names) questions[key] = fact.questions[own] as Question;
    // Facts that are combined themselves know the answers by the same keys.
    return { name, fact, names: names.every(([own, key]) => own === key) ? null : names };
  });
  // Called for every host of a fleet: the keys were put together before.
  const parse = (answers: Answers<Questions>): FactsValue<F> => {
    const values: Record<string, unknown> = {};
    for (const { name, fact, names } of parts) values[name] = fact.parse(names === null ? answers : renamed(answers, names));
    return values as FactsValue<F>;
  };
  return { questions, parse };
}

function renamed(answers: Answers<Questions>, names: readonly (readonly [own: string, key: string])[]): Answers<Questions> {
  const own: Record<string, Answer<Question>> = {};
  for (const [name, key] of names) own[name] = answers[key] as Answer<Question>;
  return own;
}
