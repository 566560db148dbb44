import { describe, expect, it } from 'vitest';
import type { FleetPorts } from '../../../src/fleet/run/fleet.ts';
import { changeMsOf, runRecorder, slowLimitMs } from '../../../src/fleet/run/run-timeline.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { type TimedEvent, timelinesOfEvents as timelinesOf } from '../../support/replay-run.ts';

const RESTARTED = { code: 'CHANGE_DONE', phase: 'kubelet-start', data: { kind: 'restart-unit', unit: 'kubelet' } } as const;

function reported(host: string, atMs: number, event: Extract<TimedEvent, { kind: 'reported' }>['event']): TimedEvent {
  return { kind: 'reported', host, atMs, event };
}

/** A host that begins and ends at these times. */
function changed(host: string, beganMs: number, endedMs: number): readonly TimedEvent[] {
  return [
    { kind: 'began', host, atMs: beganMs },
    { kind: 'ended', host, atMs: endedMs, status: 'changed' },
  ];
}

function inOrder(events: readonly TimedEvent[]): readonly TimedEvent[] {
  return events.toSorted((a, b) => a.atMs - b.atMs);
}

describe('the timeline of a host', () => {
  it('has its phases without gaps', () => {
    const [host] = timelinesOf(
      [
        { kind: 'inspecting', host: 'a', atMs: 10 },
        { kind: 'planned', host: 'a', atMs: 200 },
        { kind: 'began', host: 'a', atMs: 1_000 },
        reported('a', 1_000, { code: 'PHASE_STARTED', phase: 'kubelet-start' }),
        reported('a', 1_100, { code: 'CHANGE_DONE', phase: 'kubelet-start', data: { kind: 'write-file' } }),
        reported('a', 1_600, RESTARTED),
        reported('a', 4_600, { code: 'COMMIT_VERIFIED', phase: 'kubelet-start' }),
        reported('a', 4_900, { code: 'COMMIT_CONFIRMED', phase: 'kubelet-start' }),
        { kind: 'ended', host: 'a', atMs: 5_000, status: 'changed' },
      ],
      { canary: 0, nowMs: 9_000 },
    );
    expect(host?.phases).toEqual([
      { phase: 'planning', startMs: 10, endMs: 200 },
      { phase: 'queued', startMs: 200, endMs: 1_000 },
      { phase: 'changing', startMs: 1_000, endMs: 1_100 },
      { phase: 'restarting', startMs: 1_100, endMs: 1_600 },
      { phase: 'verifying', startMs: 1_600, endMs: 4_600 },
      { phase: 'confirming', startMs: 4_600, endMs: 4_900 },
      { phase: 'finishing', startMs: 4_900, endMs: 5_000 },
    ]);
    expect(host).toMatchObject({ beganMs: 1_000, confirmedMs: 4_900, endedMs: 5_000, status: 'changed', batch: 1, isCanary: false });
    expect(host && changeMsOf(host)).toBe(4_000);
  });

  it('ends with the rollback of a failed change, including the restart of the rollback', () => {
    const [host] = timelinesOf(
      [
        { kind: 'began', host: 'a', atMs: 0 },
        reported('a', 500, RESTARTED),
        reported('a', 6_000, { code: 'ROLLBACK_STARTED', phase: 'kubelet-start' }),
        reported('a', 7_000, RESTARTED),
        { kind: 'ended', host: 'a', atMs: 8_000, status: 'rolled-back' },
      ],
      { canary: 0, nowMs: 8_000 },
    );
    expect(host?.phases.map(({ phase }) => phase)).toEqual(['restarting', 'verifying', 'rolling-back']);
    expect(host).toMatchObject({ confirmedMs: null, status: 'rolled-back' });
  });

  it.each([
    ['a child phase of the restart', 'kubelet-start/wait', ['restarting', 'verifying']],
    ['another phase', 'mark', ['restarting', 'verifying', 'changing']],
  ])('counts %s after the restart', (_, phase, phases) => {
    const [host] = timelinesOf(
      [
        { kind: 'began', host: 'a', atMs: 0 },
        reported('a', 500, RESTARTED),
        reported('a', 900, { code: 'PHASE_STARTED', phase }),
        { kind: 'ended', host: 'a', atMs: 1_000, status: 'changed' },
      ],
      { canary: 0, nowMs: 1_000 },
    );
    expect(host?.phases.map((each) => each.phase)).toEqual(phases);
  });

  it('ends now while the host is in progress', () => {
    const [host] = timelinesOf([{ kind: 'began', host: 'a', atMs: 5 }], { canary: 0, nowMs: 50 });
    expect(host).toMatchObject({ phases: [{ phase: 'changing', startMs: 5, endMs: 50 }], endedMs: null, status: null });
  });
});

describe('the hosts of a run', () => {
  it('are canaries until the required number has succeeded', () => {
    const events = inOrder([...changed('a', 0, 10), ...changed('b', 10, 20), ...changed('c', 20, 30)]);
    expect(timelinesOf(events, { canary: 2, nowMs: 30 }).map(({ isCanary }) => isCanary)).toEqual([true, true, false]);
  });

  it('are in one batch if they began before any of them had ended', () => {
    const events = inOrder([...changed('a', 0, 10), ...changed('b', 10, 30), ...changed('c', 11, 20), ...changed('d', 20, 40)]);
    expect(timelinesOf(events, { canary: 0, nowMs: 40 }).map(({ host, batch }) => `${host}${batch}`)).toEqual(['a1', 'b2', 'c2', 'd3']);
  });

  it('are slow beyond twice the median and five seconds', () => {
    const timelines = (...endsMs: number[]) =>
      timelinesOf(inOrder(endsMs.flatMap((endMs, i) => changed(`n${i}`, 0, endMs))), { canary: 0, nowMs: 100_000 });
    expect(slowLimitMs(timelines(10_000, 12_000, 60_000))).toBe(24_000);
    expect(slowLimitMs(timelines(1_000, 1_000, 3_000))).toBe(6_000);
    expect(slowLimitMs(timelines(1_000, 90_000))).toBe(Number.POSITIVE_INFINITY);
    const rolledBack = timelines(90_000, 90_000, 90_000).map((each) => ({ ...each, status: 'rolled-back' as const }));
    expect(slowLimitMs([...timelines(10_000, 12_000, 60_000), ...rolledBack])).toBe(24_000);
  });
});

describe('the recorder', () => {
  it('records the events of all ports, and passes them on', async () => {
    const clock = fakeClock();
    const reporter = recordingReporter();
    const calls: string[] = [];
    const inner: FleetPorts = {
      signal: new AbortController().signal,
      reporterOf: () => reporter,
      begins: async (host) => void calls.push(`begins ${host}`),
      ended: async ({ host }) => void calls.push(`ended ${host}`),
      progress: ({ looking }) => void calls.push(`looking ${looking.join()}`),
    };
    const recorder = runRecorder(clock);
    const ports = recorder.record(inner);
    const progress = (...looking: string[]): void => ports.progress?.({ total: 2, looking, waiting: 0, changing: [], ended: {} });
    progress('a', 'b');
    clock.advance(100);
    await ports.ended?.({ host: 'b', status: 'unreachable', plan: null, error: null });
    progress();
    clock.advance(100);
    await ports.begins?.('a');
    clock.advance(100);
    ports.reporterOf('a').report({ level: 'info', message: '', ...RESTARTED });
    clock.advance(100);
    await ports.ended?.({ host: 'a', status: 'changed', plan: null, error: null });
    const [a, b] = recorder.timelines(1);
    expect(a?.phases).toEqual([
      { phase: 'planning', startMs: 0, endMs: 100 },
      { phase: 'queued', startMs: 100, endMs: 200 },
      { phase: 'restarting', startMs: 200, endMs: 300 },
      { phase: 'verifying', startMs: 300, endMs: 400 },
    ]);
    expect(a).toMatchObject({ isCanary: true, batch: 1, status: 'changed' });
    expect(b).toMatchObject({ phases: [{ phase: 'planning', startMs: 0, endMs: 100 }], batch: null, status: 'unreachable' });
    expect(calls).toEqual(['looking a,b', 'ended b', 'looking ', 'begins a', 'ended a']);
    expect(reporter.codes()).toEqual(['CHANGE_DONE']);
  });
});
