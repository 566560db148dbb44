import { describe, expect, it } from 'vitest';
import { createRequestRateLimiter } from '../../../src/kube/request-rate-limiter.ts';
import { fakeClock } from '../../support/fake-clock.ts';

describe('the rate limit of requests', () => {
  it('starts no request later without a limit', async () => {
    const clock = fakeClock();
    const limiter = createRequestRateLimiter(clock);
    for (let i = 0; i < 100; i++) await limiter.waitForSlot(undefined);
    expect(clock.elapsedMs).toBe(0);
  });

  it('spaces the requests evenly', async () => {
    const clock = fakeClock();
    const limiter = createRequestRateLimiter(clock);
    limiter.limit(4);
    const starts: number[] = [];
    for (let i = 0; i < 4; i++) {
      await limiter.waitForSlot(undefined);
      starts.push(clock.elapsedMs);
    }
    expect(starts).toEqual([0, 250, 500, 750]);
  });

  it('saves up no turns while nothing is sent', async () => {
    const clock = fakeClock();
    const limiter = createRequestRateLimiter(clock);
    limiter.limit(2);
    await limiter.waitForSlot(undefined);
    clock.advance(10_000);
    await limiter.waitForSlot(undefined);
    await limiter.waitForSlot(undefined);
    expect(clock.elapsedMs).toBe(10_500);
  });

  it('gives requests that wait at once different turns', async () => {
    const waits: number[] = [];
    const limiter = createRequestRateLimiter({ now: () => new Date(0), sleep: async (ms) => void waits.push(ms) });
    limiter.limit(10);
    await Promise.all([1, 2, 3, 4].map(() => limiter.waitForSlot(undefined)));
    expect(waits).toEqual([100, 200, 300]);
  });

  it('starts steps before polls, except at every third turn', async () => {
    const clock = fakeClock();
    const limiter = createRequestRateLimiter(clock);
    limiter.limit(10);
    const started: string[] = [];
    const request = async (name: string, urgency: 'step' | 'poll'): Promise<void> => {
      await limiter.waitForSlot(undefined, urgency);
      started.push(name);
      // A joining host sends its next request after the response.
      if (name === 'join') await request('join again', 'step');
    };
    await Promise.all([
      request('first', 'step'),
      request('wait a', 'poll'),
      request('wait b', 'poll'),
      request('join', 'step'),
      request('other', 'step'),
    ]);
    expect(started).toEqual(['first', 'join', 'other', 'wait a', 'join again', 'wait b']);
    expect(clock.elapsedMs).toBe(500);
  });

  it('gives polls a third of the turns while steps are always waiting', async () => {
    const limiter = createRequestRateLimiter(fakeClock());
    limiter.limit(5);
    const started: string[] = [];
    const repeat = async (urgency: 'step' | 'poll'): Promise<void> => {
      while (started.length < 22) {
        await limiter.waitForSlot(undefined, urgency);
        started.push(urgency);
      }
    };
    await Promise.all([...Array.from({ length: 10 }, () => repeat('step')), repeat('poll')]);
    // The first step started before the poll waited.
    const thirds = Array.from({ length: 7 }, () => ['step', 'step', 'poll']).flat();
    expect(started.slice(0, 22)).toEqual(['step', ...thirds]);
  });

  it('lets polls use all turns that no step needs', async () => {
    const clock = fakeClock();
    const limiter = createRequestRateLimiter(clock);
    limiter.limit(10);
    await Promise.all(Array.from({ length: 11 }, () => limiter.waitForSlot(undefined, 'poll')));
    expect(clock.elapsedMs).toBe(1_000);
  });

  it('gives no turn to a request whose wait has ended', async () => {
    const clock = fakeClock();
    const limiter = createRequestRateLimiter(clock);
    limiter.limit(1);
    const stop = new AbortController();
    await limiter.waitForSlot(undefined);
    const aborted = limiter.waitForSlot(stop.signal, 'poll');
    const next = limiter.waitForSlot(undefined, 'poll');
    stop.abort(new Error('interrupted'));
    await expect(aborted).rejects.toThrow('interrupted');
    await next;
    expect(clock.elapsedMs).toBe(1_000);
  });

  it('ends the wait with the signal', async () => {
    const limiter = createRequestRateLimiter(fakeClock());
    limiter.limit(1);
    await limiter.waitForSlot(undefined);
    await expect(limiter.waitForSlot(AbortSignal.abort(new Error('interrupted')))).rejects.toThrow('interrupted');
  });
});
