import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Timing } from '../../kubelet/health/assess.ts';
import type { CheckpointStore, StoredAgent } from './checkpoint-store.ts';
import { type AgentEffect, type AgentEvent, next } from './next.ts';
import type { ReportAgentMessage } from './node-event-reporter.ts';
import { type AgentState, neededHashes, newAgentState } from './state.ts';
import { sameOnDisk } from './state-file.ts';
import { agentConditionOf } from './status.ts';

/** The state of an agent. */
interface AgentStateMachine {
  readonly state: AgentState;
  /** Applies an event and executes the resulting effects. */
  dispatch(event: AgentEvent): Promise<void>;
}

interface AgentMachineOptions {
  readonly store: Pick<CheckpointStore, 'saveState' | 'freeReserve'>;
  readonly loaded: Pick<StoredAgent, 'state' | 'generation'>;
  readonly clock: Clock;
  readonly timing: Timing;
  readonly report: ReportAgentMessage;
  /**
   * Executes an effect. Returns its result as an event; null: none.
   * @param isSaved the state is on disk
   */
  readonly execute: (effect: AgentEffect, state: AgentState, isSaved: boolean) => Promise<AgentEvent | null>;
  /** Called when the reported state changed. */
  readonly onState: (state: AgentState) => void;
}

/** Runs the state machine. A decision is written to disk before its effects are executed. */
export function agentStateMachine({ store, loaded, clock, timing, report, execute, onState }: AgentMachineOptions): AgentStateMachine {
  const now = (): number => clock.now().getTime();
  let { generation } = loaded;
  let state: AgentState = loaded.state ?? newAgentState(now());

  /** The state on disk is older than `state`. */
  let isStale = false;

  const write = async (): Promise<void> => {
    await store.saveState(state, generation + 1);
    generation++;
    isStale = false;
  };
  const save = async (): Promise<void> => {
    try {
      await write().catch(async () => {
        await store.freeReserve(neededHashes(state));
        await write();
      });
    } catch (error) {
      // The decision is executed anyway. The file on disk is older but intact, and is written again with the
      // next event.
      if (!isStale) report('warning', 'AGENT_STATE_NOT_WRITTEN', `the agent cannot write its state: ${messageOf(error)}`);
      isStale = true;
    }
  };

  const dispatch = async (event: AgentEvent): Promise<void> => {
    const before = state;
    const step = next(state, event, now(), timing);
    state = step.state;
    if (!sameOnDisk(before, state) || event.kind === 'booted' || isStale) await save();
    for (const effect of step.effects) {
      const outcome = await execute(effect, state, !isStale);
      if (outcome !== null) await dispatch(outcome);
    }
    if (isReportedOtherwise(before, state)) onState(state);
  };

  return {
    get state() {
      return state;
    },
    dispatch,
  };
}

function isReportedOtherwise(before: AgentState, after: AgentState): boolean {
  return (
    !sameOnDisk(before, after) ||
    before.sync !== after.sync ||
    before.switching !== after.switching ||
    before.notObservedReason !== after.notObservedReason ||
    JSON.stringify(agentConditionOf(before)) !== JSON.stringify(agentConditionOf(after))
  );
}
