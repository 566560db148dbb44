import { describe, expect, it } from 'vitest';
import { quickAtFirst, type Wait, waitUntil } from '../../../src/base/wait-until.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

function world() {
  const clock = fakeClock();
  const reporter = recordingReporter();
  const probedAt: number[] = [];
  /** Advances the clock by the given time. */
  const wait = (doneAtMs: number, change: Partial<Wait<string, string>> = {}, signal?: AbortSignal) =>
    waitUntil<string, string>(
      { clock, reporter, signal, host: { name: 'n1' }, phase: 'p' },
      {
        probe: async (elapsedMs) => {
          probedAt.push(elapsedMs());
          return elapsedMs() >= doneAtMs ? { done: 'done' } : { pending: `step ${Math.floor(elapsedMs() / 25_000)}` };
        },
        timeoutMs: 60_000,
        pauseMs: () => 1_000,
        describe: (pending, waitedMs) => `waiting, ${waitedMs / 1000} s: ${pending}`,
        timedOut: (pending, waitedMs) => `${pending} after ${waitedMs}`,
        ...change,
      },
    );
  return { clock, reporter, probedAt, wait };
}

describe('waitUntil', () => {
  it('returns the result of the first probe immediately', async () => {
    const { clock, reporter, wait } = world();
    expect(await wait(0, { timeoutMs: 0 })).toBe('done');
    expect([clock.elapsedMs, reporter.events]).toEqual([0, []]);
  });

  it('probes a last time after the timeout', async () => {
    const { probedAt, wait } = world();
    expect(await wait(Number.POSITIVE_INFINITY, { timeoutMs: 2_500 })).toBe('step 0 after 2500');
    expect(probedAt).toEqual([0, 1_000, 2_000, 2_500]);
  });

  it('probes once without remaining time', async () => {
    const { probedAt, wait } = world();
    expect(await wait(1, { timeoutMs: -5 })).toBe('step 0 after 0');
    expect(probedAt).toEqual([0]);
  });

  it('reports progress every ten seconds with the host and the phase', async () => {
    const { reporter, wait } = world();
    await wait(30_000);
    expect(reporter.events).toEqual(
      [10, 20].map((s) => ({
        level: 'info',
        code: 'WAITING',
        host: 'n1',
        phase: 'p',
        message: `waiting, ${s} s: step 0`,
      })),
    );
  });

  it('reports the pending state immediately and after each change', async () => {
    const { reporter, wait } = world();
    await wait(60_000, { changed: (pending) => pending, progressMs: 30_000 });
    expect(reporter.messages('WAITING')).toEqual(['waiting, 0 s: step 0', 'waiting, 25 s: step 1', 'waiting, 50 s: step 2']);
  });

  it.each(['probe', 'describe', 'timedOut'] as const)('ends with the error of %s', async (place) => {
    const { wait } = world();
    const fails = () => {
      throw new Error(place);
    };
    await expect(wait(Number.POSITIVE_INFINITY, { [place]: fails })).rejects.toThrow(place);
  });

  it('ends with the reason of an aborted signal before the next probe', async () => {
    const { clock, probedAt, wait } = world();
    const stop = new AbortController();
    clock.at(1_500, () => stop.abort(new Error('stopped')));
    await expect(wait(60_000, {}, stop.signal)).rejects.toThrow('stopped');
    expect(probedAt).toEqual([0, 1_000]);
  });
});

describe('quickAtFirst', () => {
  it('is short at first, then longer', () => {
    const pause = quickAtFirst({ quickMs: 100, forMs: 1_000, slowMs: 500 });
    expect([0, 999, 1_000, 60_000].map((waitedMs) => pause(waitedMs, 1))).toEqual([100, 100, 500, 500]);
  });
});
