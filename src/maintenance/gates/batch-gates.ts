import type { RunTime } from '../../base/clock.ts';
import type { Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { goDurationMs } from '../../base/text/go-duration.ts';
import { durationText, whyWindowClosed } from './batch-window.ts';
import { type GateKind, kindOf, type PreparedGate, type PreparedRollout } from './rollout-settings.ts';

/** A batch of a rollout: its members are changed together. */
export interface Batch {
  /** Empty: the run ends. */
  readonly names: readonly string[];
  readonly isCanary: boolean;
  /** Members that had the change before the run. */
  readonly done: readonly string[];
}

/** The batch that has ended, for a gate. `number` starts at 1; 0: the members that had the change before the run. */
export interface EndedBatch extends Omit<Batch, 'done'> {
  readonly number: number;
  readonly isLast: boolean;
}

/** The result of one attempt of a gate. */
export interface GateAnswer {
  readonly isPassed: boolean;
  /** A clause for messages: `exit code 3`, `value 0.2`. */
  readonly answer: string;
  /** The last lines of its output; absent: it has none. */
  readonly output?: string;
}

/** A gate that has ended, as it is recorded. */
export interface GateRecord extends GateAnswer {
  readonly gate: string;
  /** `window`: a maintenance window that a batch does not fit into; passed if it is ignored. */
  readonly kind: GateKind | 'window';
  readonly batch: number;
  readonly attempts: number;
  readonly durationMs: number;
}

/** Why a rollout starts no further batch. */
export interface GateStop {
  readonly kind: 'gate' | 'window' | 'interrupted';
  /** A clause. */
  readonly reason: string;
  readonly problem: Problem;
  /** Undo the changes of the run; null: as after other failures. */
  readonly reverts: boolean | null;
}

/** Gates and windows of one run. */
export interface BatchGates {
  /**
   * Called when no member is in progress, before a batch starts and after the last batch: runs the gates after the
   * previous batch, and checks that the next one fits into a window. Before the first batch, and at the end of a run without
   * batches, the gates run if members had the change before: an earlier run may have ended before its last gates passed.
   * @param ended receives each gate that has ended
   * @returns null: the next batch may start
   * @throws errors other than AppError
   */
  pass(next: Batch, ended?: (record: GateRecord) => Promise<void>): Promise<GateStop | null>;
}

interface GatePorts extends RunTime {
  readonly reporter: Reporter;
  /** Attempts a gate until it passes. Rejects with the reason of the signal. */
  run(gate: PreparedGate, batch: EndedBatch): Promise<GateAnswer & { readonly attempts: number }>;
}

/** The gates and windows of a run. */
interface RunGates extends PreparedRollout {
  /** Batches also start outside of the windows. */
  readonly ignoresWindow: boolean;
  /** Members that had the change before the run, in addition to those of the first batch. */
  readonly done: readonly string[];
}

export function batchGates(ports: GatePorts, run: RunGates): BatchGates {
  return new Gates(ports, run);
}

type Ended = Parameters<BatchGates['pass']>[1];

class Gates implements BatchGates {
  readonly #ports: GatePorts;
  readonly #run: RunGates;
  #number = 0;
  #current: (Omit<Batch, 'done'> & { readonly startedAt: number }) | null = null;
  #longestMs: number | null = null;

  constructor(ports: GatePorts, run: RunGates) {
    this.#ports = ports;
    this.#run = run;
  }

  async pass(next: Batch, ended?: Ended): Promise<GateStop | null> {
    try {
      return (await this.#passGates(next, ended)) ?? (next.names.length === 0 ? null : await this.#start(next, ended));
    } catch (error) {
      if (!this.#ports.signal.aborted) throw error;
      return interruptedGate();
    }
  }

  async #passGates(next: Batch, ended: Ended): Promise<GateStop | null> {
    const isLast = next.names.length === 0;
    if (this.#current !== null) {
      const { startedAt, ...batch } = this.#current;
      this.#current = null;
      this.#longestMs = Math.max(this.#longestMs ?? 0, this.#now() - startedAt);
      return this.#runGates({ ...batch, number: this.#number, isLast }, ended);
    }
    const names = this.#number === 0 ? [...this.#run.done, ...next.done] : [];
    return names.length === 0 ? null : this.#runGates({ names, isCanary: false, number: 0, isLast }, ended);
  }

  async #start({ names, isCanary }: Batch, ended: Ended): Promise<GateStop | null> {
    const closed = await this.#checkWindow(ended);
    if (closed !== null) return closed;
    this.#number++;
    this.#current = { names, isCanary, startedAt: this.#now() };
    return null;
  }

  async #runGates(batch: EndedBatch, ended: Ended): Promise<GateStop | null> {
    const { reporter } = this.#ports;
    const when = whenText(batch);
    for (const gate of this.#run.gates.filter((each) => isDue(each, batch))) {
      const { name } = gate;
      reporter.report({ level: 'info', code: 'GATE_STARTED', message: `gate ${name}: started ${when}` });
      const startedAt = this.#now();
      const result = await this.#ports.run(gate, batch);
      const durationMs = this.#now() - startedAt;
      const record: GateRecord = { gate: name, kind: kindOf(gate), batch: batch.number, durationMs, ...result };
      const { isPassed, answer } = record;
      const message = `gate ${name} ${isPassed ? 'passed' : 'failed'} ${when} in ${durationText(durationMs)}: ${answer}`;
      const [level, code] = isPassed ? (['info', 'GATE_PASSED'] as const) : (['warning', 'GATE_FAILED'] as const);
      reporter.report({ level, code, message, data: { ...record } });
      await ended?.(record);
      if (!isPassed) return gateFailed(gate, record, when);
    }
    return null;
  }

  async #checkWindow(ended: Ended): Promise<GateStop | null> {
    const { windows = [], batchDuration, ignoresWindow } = this.#run;
    const batch = this.#number + 1;
    const declaredMs = batchDuration === undefined ? 0 : goDurationMs(batchDuration);
    const why = whyWindowClosed(windows, { nowMs: this.#now(), batch, longestMs: this.#longestMs ?? 0, declaredMs });
    if (why === null) return null;
    const message = `batch ${batch} starts although ${why} (--ignore-window)`;
    if (ignoresWindow) this.#ports.reporter.report({ level: 'warning', code: 'WINDOW_IGNORED', message });
    const answer = `${ignoresWindow ? 'ignored: ' : ''}${why}`;
    await ended?.({ gate: 'window', kind: 'window', batch, isPassed: ignoresWindow, answer, attempts: 1, durationMs: 0 });
    return ignoresWindow ? null : windowClosed(why);
  }

  #now(): number {
    return this.#ports.clock.now().getTime();
  }
}

/** Whether a gate runs after a batch. */
export function isDue(
  { after = 'each-batch' }: Pick<PreparedGate, 'after'>,
  { number, isLast }: Pick<EndedBatch, 'number' | 'isLast'>,
): boolean {
  return after === 'each-batch' || (after === 'canary' ? number <= 1 : isLast);
}

/** `after batch 2`. */
export function whenText({ number, isLast }: Pick<EndedBatch, 'number' | 'isLast'>): string {
  return number > 0 ? `after batch ${number}` : isLast ? 'in a run without changes' : 'before batch 1';
}

function gateFailed({ name, onFailure }: PreparedGate, { answer, output }: GateRecord, when: string): GateStop {
  const reason = `gate ${name} failed ${when}: ${answer}`;
  const last = output?.trim().split('\n').at(-1) ?? '';
  const message = last === '' || answer.includes(last) ? reason : `${reason}: ${last}`;
  const hint =
    'Fix the cause that the output of the gate shows, then run the same command again: hosts that have the change are not changed again';
  return {
    kind: 'gate',
    reason,
    problem: { code: 'GATE_FAILED', message, hint },
    reverts: onFailure === undefined ? null : onFailure === 'revert',
  };
}

function windowClosed(reason: string): GateStop {
  const hint = 'Run the same command again when the window is open, or add --ignore-window';
  return { kind: 'window', reason, problem: { code: 'WINDOW_CLOSED', message: reason, hint }, reverts: false };
}

function interruptedGate(): GateStop {
  const reason = 'the run was interrupted during a gate';
  return { kind: 'interrupted', reason, problem: { code: 'INTERRUPTED', message: reason }, reverts: false };
}
