import type { Answers, Question, Questions } from './question.ts';

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
  for (const [name, fact] of Object.entries(facts)) {
    for (const [key, question] of Object.entries(fact.questions)) questions[`${name}/${key}`] = question;
  }
  const parse = (answers: Answers<Questions>): FactsValue<F> => {
    const parsed = Object.entries(facts).map(([name, fact]) => {
      const own = Object.keys(fact.questions).map((key) => [key, answers[`${name}/${key}`]]);
      return [name, fact.parse(Object.fromEntries(own) as Answers<Questions>)];
    });
    return Object.fromEntries(parsed) as FactsValue<F>;
  };
  return { questions, parse };
}
