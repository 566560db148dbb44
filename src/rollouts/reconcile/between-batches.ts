import { present } from '../../base/present.ts';
import { isDue, whenText } from '../../maintenance/gates/batch-gates.ts';
import { whyWindowClosed } from '../../maintenance/gates/batch-window.ts';
import { type Gate, type GateResult, MAX_ANSWER, MAX_GATE_RESULTS } from '../api/between-batches.ts';
import type { RolloutSpec, RolloutStatus } from '../api/schema.ts';
import type { Member } from './members.ts';
import type { Observed } from './observed.ts';

/** A gate to attempt now, as the status records it. */
export interface GateRun {
  readonly gate: Gate;
  readonly result: GateResult;
}

/** What happens between two batches. */
export interface BetweenBatches extends Pick<RolloutStatus, 'batch' | 'gates'> {
  /** The members of the next batch. */
  readonly start: readonly Member[];
  /** Why no further node is started: a failed gate; null: none has failed. */
  readonly failed: string | null;
  readonly waiting: { readonly reason: 'GateRunning' | 'OutsideWindow'; readonly message: string } | null;
  readonly run: GateRun | null;
}

/** Whether nodes are changed in batches: a batch starts when the previous one has ended. */
export function isInBatches({ rollout: { spec } }: Observed): boolean {
  const { gates = [], windows = [] } = spec.strategy;
  return gates.length + windows.length > 0;
}

/**
 * What the status records of batches and gates; nothing of an earlier revision. A batch ends with its last member, also if the
 * rollout does not continue. After a revert, batches are counted from 1 again.
 */
export function recordedBatches(
  { rollout: { spec, status }, revision, now }: Observed,
  members: readonly Member[],
): Pick<RolloutStatus, 'batch' | 'gates'> {
  const { failedRevision, updateRevision, batch, gates } = status;
  if (updateRevision !== revision.name) return {};
  if (failedRevision === revision.name) return { gates };
  return { batch: members.some(({ state }) => state === 'InProgress') ? batch : endedBatch(batch, spec, now), gates };
}

/**
 * Decides whether the next batch starts: all gates after the previous one have passed, and it is expected to finish in a maintenance
 * window. A gate is recorded before it is attempted, and continues after a restart.
 * @param next the members that may start
 */
export function betweenBatches(
  observed: Observed,
  members: readonly Member[],
  next: readonly Member[],
  { mayBegin }: { readonly mayBegin: boolean },
): BetweenBatches {
  const none = { start: [], failed: null, waiting: null, run: null };
  if (!isInBatches(observed)) return { ...none, start: next };
  const { batch, gates = [] } = recordedBatches(observed, members);
  if (members.some(({ state }) => state === 'InProgress')) return { ...none, batch, gates };
  const { rollout, now, localTime } = observed;
  const { windows = [], batchDurationSeconds = 0 } = rollout.spec.strategy;
  const passed = passGates({ ...observed, isLast: !members.some(({ state }) => state === 'Pending') }, members, {
    number: batch?.number ?? 0,
    // Results of later batches were recorded before a revert.
    results: gates.filter((result) => result.batch <= (batch?.number ?? 0)),
    mayBegin,
  });
  const results = passed.results.slice(-MAX_GATE_RESULTS);
  const recorded = { batch, gates: results.length === 0 ? undefined : results };
  if (!passed.isPassed) return { ...none, ...recorded, ...passed.stop };
  if (next.length === 0) return { ...none, ...recorded };
  const number = (batch?.number ?? 0) + 1;
  const why = whyWindowClosed(windows, {
    nowMs: localTime.getTime(),
    batch: number,
    longestMs: (batch?.longestSeconds ?? 0) * 1000,
    declaredMs: batchDurationSeconds * 1000,
  });
  if (why !== null) return { ...none, ...recorded, waiting: { reason: 'OutsideWindow', message: why } };
  const started = { number, startedAt: now.toISOString(), ...present({ longestSeconds: batch?.longestSeconds }) };
  return { ...none, ...recorded, start: next, batch: started };
}

/** A batch takes no longer than its nodes may: the controller may not have run at its end. */
function endedBatch(batch: RolloutStatus['batch'], spec: RolloutSpec, now: Date): RolloutStatus['batch'] {
  if (batch === undefined || batch.endedAt !== undefined) return batch;
  const elapsed = Math.max(0, Math.round((now.getTime() - Date.parse(batch.startedAt)) / 1000));
  const seconds = Math.min(elapsed, spec.progressDeadlineSeconds + spec.strategy.drain.settleSeconds);
  return { ...batch, endedAt: now.toISOString(), longestSeconds: Math.max(batch.longestSeconds ?? 0, seconds) };
}

interface Gates {
  readonly number: number;
  readonly results: readonly GateResult[];
  /** A gate may be started; those that run continue. */
  readonly mayBegin: boolean;
}

type Stop = Pick<BetweenBatches, 'failed' | 'waiting' | 'run'>;

/** Passes the gates after a batch in their order, up to one that runs or has failed. */
function passGates(
  observed: Observed & { readonly isLast: boolean },
  members: readonly Member[],
  { number, results, mayBegin }: Gates,
): { readonly isPassed: boolean; readonly results: readonly GateResult[]; readonly stop: Stop } {
  const { rollout, now, isLast } = observed;
  const all = [...results];
  const stop = { failed: null, waiting: null, run: null };
  for (const gate of dueGates(observed, members, number)) {
    const index = all.findLastIndex(({ name, batch }) => name === gate.name && batch === number);
    const found = all[index];
    if (found?.state === 'Passed') continue;
    const when = `gate ${gate.name}, ${whenText({ number, isLast })}`;
    const isOver = found === undefined || (found.state === 'Failed' && found.generation !== rollout.generation);
    const waiting = { reason: 'GateRunning', message: when } as const;
    if (isOver && !mayBegin) return { isPassed: false, results: all, stop: { ...stop, waiting } };
    if (isOver) {
      const result = { name: gate.name, batch: number, generation: rollout.generation, attempts: 0, startedAt: now.toISOString() };
      const running: GateResult = { ...result, state: 'Running' };
      all.push(running);
      return { isPassed: false, results: all, stop: { ...stop, waiting, run: { gate, result: running } } };
    }
    const result = found.state === 'Failed' ? found : answered(gate, found, observed);
    all[index] = result;
    if (result.state === 'Passed') continue;
    const message = result.answer === undefined ? when : `${when}: ${result.answer}`;
    if (result.state === 'Failed') return { isPassed: false, results: all, stop: { ...stop, failed: message } };
    return { isPassed: false, results: all, stop: { ...stop, waiting: { ...waiting, message }, run: { gate, result } } };
  }
  return { isPassed: true, results: all, stop };
}

/** The gates after a batch. A return to the revision that all nodes had last has no gates. */
function dueGates(
  { rollout: { spec, status }, revision, isLast }: Observed & { readonly isLast: boolean },
  members: readonly Member[],
  number: number,
): readonly Gate[] {
  if (status.currentRevision === revision.name) return [];
  if (number === 0 && !members.some(({ state, target }) => state === 'Updated' && target !== undefined)) return [];
  const after = { Canary: 'canary', EachBatch: 'each-batch', End: 'end' } as const;
  return (spec.strategy.gates ?? []).filter((gate) => isDue({ after: after[gate.after] }, { number, isLast }));
}

/** The attempts of a gate have a name that depends on nothing else, so that a restarted controller continues with them. */
export function gateKey({ name, batch, startedAt }: GateResult): string {
  return `${name} ${batch} ${startedAt}`;
}

/** The result with the answer of its last attempt. The time limit takes effect only after an attempt: the controller may have been down. */
function answered({ timeoutSeconds, prometheus }: Gate, result: GateResult, { attempt, now }: Observed): GateResult {
  if (attempt === null || attempt.key !== gateKey(result)) return result;
  const leftMs = Date.parse(result.startedAt) + timeoutSeconds * 1000 - now.getTime();
  const { retries = 0, intervalSeconds = 0 } = prometheus ?? {};
  const seen: GateResult = { ...result, attempts: attempt.attempts, answer: attempt.answer.slice(0, MAX_ANSWER) };
  const ended = (state: 'Passed' | 'Failed', suffix = ''): GateResult => ({
    ...seen,
    state,
    endedAt: now.toISOString(),
    answer: `${attempt.answer.slice(0, MAX_ANSWER - suffix.length)}${suffix}`,
  });
  if (attempt.isPassed === true) return ended('Passed');
  if (attempt.isPassed === false && attempt.attempts > retries) return ended('Failed');
  const isLate = attempt.isPassed === null ? leftMs <= 0 : leftMs <= intervalSeconds * 1000;
  return isLate ? ended('Failed', ' (time limit reached)') : seen;
}
