import { describe, expect, it } from 'vitest';
import { interrupted } from '../../../../src/base/errors.ts';
import { batchGates, type EndedBatch, type GateAnswer, type GateRecord } from '../../../../src/maintenance/gates/batch-gates.ts';
import type { PreparedGate, PreparedRollout } from '../../../../src/maintenance/gates/rollout-settings.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const GATE: PreparedGate = { name: 'smoke-test', directory: '/etc', command: ['true'] };
const PASSED: GateAnswer = { isPassed: true, answer: 'exit code 0' };
const FAILED: GateAnswer = { isPassed: false, answer: 'exit code 3', output: 'first\nno route to shop' };

/** The gates of a run, and what ran; `answers` by gate and batch, otherwise passed. */
function world(
  rollout: Partial<PreparedRollout>,
  {
    answers = {},
    ignoresWindow = false,
    done = [],
    start,
  }: {
    readonly answers?: Readonly<Record<string, GateAnswer>>;
    readonly ignoresWindow?: boolean;
    readonly done?: readonly string[];
    readonly start?: string;
  } = {},
) {
  const clock = fakeClock(start === undefined ? undefined : new Date(start));
  const interruption = new AbortController();
  const ran: string[] = [];
  const records: GateRecord[] = [];
  const reporter = recordingReporter();
  const run = async ({ name }: PreparedGate, { number, names, isLast, isCanary }: EndedBatch) => {
    ran.push(`${name} ${number}: ${names.join(' ')}${isCanary ? ' canary' : ''}${isLast ? ' last' : ''}`);
    clock.advance(5_000);
    interruption.signal.throwIfAborted();
    return { ...(answers[`${name} ${number}`] ?? PASSED), attempts: 1 };
  };
  const gates = batchGates({ clock, signal: interruption.signal, reporter, run }, { gates: [], ...rollout, ignoresWindow, done });
  const pass = (names: readonly string[], more: { readonly isCanary?: boolean; readonly done?: readonly string[] } = {}) =>
    gates.pass({ names, isCanary: false, done: [], ...more }, async (record) => void records.push(record));
  return { pass, clock, ran, records, reporter, interruption };
}

describe('gates between batches', () => {
  it('run after the first batch, each batch and the last one', async () => {
    const gates = (['canary', 'each-batch', 'end'] as const).map((after): PreparedGate => ({ ...GATE, name: after, after }));
    const { pass, ran, records } = world({ gates });
    expect(await pass(['a'], { isCanary: true })).toBeNull();
    expect(await pass(['b', 'c'])).toBeNull();
    expect(await pass(['d'])).toBeNull();
    expect(await pass([])).toBeNull();
    expect(ran).toEqual(['canary 1: a canary', 'each-batch 1: a canary', 'each-batch 2: b c', 'each-batch 3: d last', 'end 3: d last']);
    expect(records[0]).toEqual({ gate: 'canary', kind: 'command', batch: 1, attempts: 1, durationMs: 5_000, ...PASSED });
  });

  it('do not run if no member has the change', async () => {
    const { pass, ran } = world({ gates: [GATE] });
    expect(await pass([])).toBeNull();
    expect(ran).toEqual([]);
  });

  it('stop the run with the last line of the output', async () => {
    const { pass, records, reporter } = world({ gates: [GATE] }, { answers: { 'smoke-test 1': FAILED } });
    await pass(['a']);
    expect(await pass(['b'])).toEqual({
      kind: 'gate',
      reason: 'gate smoke-test failed after batch 1: exit code 3',
      reverts: null,
      problem: expect.objectContaining({
        code: 'GATE_FAILED',
        message: 'gate smoke-test failed after batch 1: exit code 3: no route to shop',
      }),
    });
    expect(records).toHaveLength(1);
    expect(reporter.events.map(({ code, message }) => `${code} ${message}`)).toEqual([
      'GATE_STARTED gate smoke-test: started after batch 1',
      'GATE_FAILED gate smoke-test failed after batch 1 in 5s: exit code 3',
    ]);
  });

  it('run before the first batch if members had the change before: an earlier run may have been stopped by a gate', async () => {
    const first = world({ gates: [GATE] }, { answers: { 'smoke-test 0': FAILED } });
    expect(await first.pass(['b'], { done: ['a'] })).toMatchObject({ reason: 'gate smoke-test failed before batch 1: exit code 3' });
    const second = world({ gates: [GATE, { ...GATE, name: 'last', after: 'end' }] }, { done: ['x'] });
    await second.pass(['b'], { done: ['a'] });
    await second.pass(['c'], { done: ['a', 'b'] });
    expect(second.ran).toEqual(['smoke-test 0: x a', 'smoke-test 1: b']);
  });

  it('run at the end of a run without changes: an earlier run may have ended before its last gates passed', async () => {
    const gates = (['canary', 'each-batch', 'end'] as const).map((after): PreparedGate => ({ ...GATE, name: after, after }));
    const { pass, ran } = world({ gates }, { answers: { 'end 0': FAILED }, done: ['x'] });
    expect(await pass([], { done: ['a'] })).toMatchObject({ reason: 'gate end failed in a run without changes: exit code 3' });
    expect(ran).toEqual(['canary 0: x a last', 'each-batch 0: x a last', 'end 0: x a last']);
  });

  it.each([
    ['revert', true],
    ['stop', false],
    [undefined, null],
  ] as const)('with onFailure %s ask for a revert: %s', async (onFailure, reverts) => {
    const { pass } = world(
      { gates: [{ ...GATE, ...(onFailure === undefined ? {} : { onFailure }) }] },
      { answers: { 'smoke-test 1': FAILED } },
    );
    await pass(['a']);
    expect(await pass([])).toMatchObject({ reverts });
  });

  it('end at once if the run is interrupted', async () => {
    const { pass, interruption } = world({ gates: [GATE] });
    await pass(['a']);
    interruption.abort(interrupted('SIGINT'));
    expect(await pass(['b'])).toMatchObject({ kind: 'interrupted' });
  });
});

describe('maintenance windows between batches', () => {
  const NIGHT = { startTime: '22:00', endTime: '23:00', timeZone: 'Etc/UTC' } as const;

  it('start no batch while they are closed, and name the next opening', async () => {
    const { pass, records } = world({ windows: [NIGHT] }, { start: '2026-07-01T12:00:00Z' });
    const reason = 'no maintenance window is open; the next window opens on Wed 2026-07-01 22:00 Etc/UTC';
    expect(await pass(['a'])).toEqual({
      kind: 'window',
      reason,
      reverts: false,
      problem: expect.objectContaining({ code: 'WINDOW_CLOSED', message: reason }),
    });
    expect(records).toMatchObject([{ gate: 'window', kind: 'window', batch: 1, isPassed: false }]);
  });

  it('start no batch that may not finish: assumed, then as long as the longest batch of the run', async () => {
    const late = world({ windows: [NIGHT] }, { start: '2026-07-01T22:51:00Z' });
    expect((await late.pass(['a']))?.reason).toContain('(assumed for the first batch: 10m0s)');
    const { pass, clock } = world({ windows: [NIGHT] }, { start: '2026-07-01T22:00:00Z' });
    expect(await pass(['a'])).toBeNull();
    clock.advance(25 * 60_000);
    expect(await pass(['b'])).toBeNull();
    clock.advance(20 * 60_000);
    expect((await pass(['c']))?.reason).toBe(
      'batch 3 may not finish before the maintenance window closes on Wed 2026-07-01 23:00 Etc/UTC (the longest batch took 25m0s); the next window opens on Thu 2026-07-02 22:00 Etc/UTC',
    );
  });

  it('use the declared duration, and say if no window is that long', async () => {
    const { pass } = world({ windows: [NIGHT], batchDuration: '2h0m0s' }, { start: '2026-07-01T22:00:00Z' });
    expect((await pass(['a']))?.reason).toContain('no window is as long as a batch (the declared duration is 2h0m0s)');
  });

  it('are ignored on request, which is recorded', async () => {
    const { pass, records, reporter } = world({ windows: [NIGHT] }, { start: '2026-07-01T12:00:00Z', ignoresWindow: true });
    expect(await pass(['a'])).toBeNull();
    expect(records).toMatchObject([
      { gate: 'window', isPassed: true, answer: expect.stringMatching(/^ignored: no maintenance window is open/) },
    ]);
    expect(reporter.events).toMatchObject([{ level: 'warning', code: 'WINDOW_IGNORED' }]);
  });
});
