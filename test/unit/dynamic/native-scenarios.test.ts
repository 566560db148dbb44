import { afterEach, expect, it } from 'vitest';
import { scenarioTitle } from '../../support/native-scenarios/scenario.ts';
import { NATIVE_SCENARIOS } from '../../support/native-scenarios/table.ts';
import { type StandInSubject, standInSubject } from '../../support/stand-in-subject.ts';

let subject: StandInSubject | null = null;
afterEach(() => {
  subject?.close();
  subject = null;
});

it.each(NATIVE_SCENARIOS.map((scenario) => [scenarioTitle(scenario), scenario] as const))('%s', async (_, { options, run }) => {
  subject = await standInSubject(options.restart === undefined ? {} : { restart: options.restart });
  await run(subject);
});

it('includes every recorded scenario', () => {
  const numbers = new Set(NATIVE_SCENARIOS.flatMap((scenario) => scenario.numbers));
  expect([...numbers].sort((a, b) => a - b)).toEqual(Array.from({ length: 54 }, (_, i) => i + 1));
});
