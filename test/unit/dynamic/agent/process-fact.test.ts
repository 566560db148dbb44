import { describe, expect, it } from 'vitest';
import { ConfigzUnavailableError } from '../../../../src/dynamic/agent/configz-source.ts';
import { createProcessFact } from '../../../../src/dynamic/agent/process-fact.ts';
import { fakeClock } from '../../../support/fake-clock.ts';

function begin(answers: (number | Error)[]) {
  const clock = fakeClock();
  const world = { clock, asked: 0, once: createProcessFact<number>(clock, () => undefined) };
  const query = async (): Promise<number> => {
    const answer = answers[world.asked++];
    if (typeof answer === 'number') return answer;
    throw answer ?? new Error('asked too often');
  };
  return { ...world, of: (pid: number) => world.once.of(pid, query), count: () => world.asked };
}

describe('readOncePerProcess', () => {
  it('queries a process once, and again after a restart', async () => {
    const { of, once, count } = begin([50, 40, 50]);
    expect(await of(7)).toBe(50);
    expect(await of(7)).toBe(50);
    expect(count()).toBe(1);
    expect(await of(8)).toBe(40);
    once.forget();
    expect(await of(8)).toBe(50);
  });

  it('retries immediately after the first failure, then every 5 s, and returns the reason of the failure', async () => {
    const { of, once, clock, count } = begin([new Error('the disk is gone'), new ConfigzUnavailableError('it refuses', 'rejected'), 50]);
    expect(await of(7)).toBeNull();
    expect(once.issue).toMatchObject({ credential: null, why: 'the disk is gone' });
    expect(await of(7)).toBeNull();
    expect(once.issue).toMatchObject({ credential: 'rejected', why: 'it refuses' });
    expect(await of(7)).toBeNull();
    expect(count()).toBe(2);
    await clock.sleep(5_000);
    expect(await of(7)).toBe(50);
    expect(once.issue).toBeNull();
  });
});
