import type { Answer, Answers, Question, Questions } from './question.ts';

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

/** Several facts as one: asked together, parsed each for itself. */
export function combineFacts<F extends Readonly<Record<string, Fact<unknown>>>>(facts: F): Fact<FactsValue<F>> {
  const questions: Record<string, Question> = {};
  const parts = Object.entries(facts).map(([name, fact]) => {
    const keys = Object.keys(fact.questions).map((key) => [key, `${name}/${key}`] as const);
    for (const [key, whole] of keys) questions[whole] = fact.questions[key] as Question;
    return { name, fact, keys };
  });
  // Called for every host of a fleet: the keys were put together before.
  const parse = (answers: Answers<Questions>): FactsValue<F> => {
    const values: Record<string, unknown> = {};
    for (const { name, fact, keys } of parts) {
      const own: Record<string, Answer<Question> | undefined> = {};
      for (const [key, whole] of keys) own[key] = answers[whole];
      values[name] = fact.parse(own as Answers<Questions>);
    }
    return values as FactsValue<F>;
  };
  return { questions, parse };
}
