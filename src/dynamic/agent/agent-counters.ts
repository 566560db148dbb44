import type { Signal } from '../../kubelet/health/signals.ts';
import type { AgentState, Fault } from './state.ts';

/** What happened since the start of the agent. */
export interface AgentCounters {
  readonly trials: number;
  readonly rollbacks: Readonly<Partial<Record<Signal, number>>>;
  readonly rejections: Readonly<Partial<Record<Fault['code'], number>>>;
}

export const NO_COUNTERS: AgentCounters = { trials: 0, rollbacks: {}, rejections: {} };

/**
 * Counts a change of the state of an agent: the start of a trial, a rollback of a configuration that ran, or the rejection of one
 * that does not run.
 * @param before null: the agent has just started, and continues in its state
 */
export function countChange(counters: AgentCounters, before: AgentState | null, after: AgentState): AgentCounters {
  if (before === null || after.phase === 'local' || after.phase === 'good') return counters;
  const isSame = before.phase !== 'local' && before.assigned.hash === after.assigned.hash;
  if (isSame && before.phase === after.phase && before.since === after.since) return counters;
  if (after.phase === 'trial') return { ...counters, trials: counters.trials + 1 };
  const { code, signal } = after.fault;
  const hasRun = isSame && (before.phase === 'trial' || before.phase === 'good');
  if (after.phase === 'fallen-back' && hasRun && signal !== undefined)
    return { ...counters, rollbacks: { ...counters.rollbacks, [signal]: (counters.rollbacks[signal] ?? 0) + 1 } };
  return { ...counters, rejections: { ...counters.rejections, [code]: (counters.rejections[code] ?? 0) + 1 } };
}
