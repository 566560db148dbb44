import { messageOf } from '../../base/errors.ts';
import type { AgentOptions } from './agent-options.ts';
import type { StoredAgent } from './checkpoint-store.ts';
import { CheckpointDamagedError, runningPayload, type SwitchPorts, switchKubelet } from './kubelet-control.ts';
import type { KubeletWatch } from './kubelet-watch.ts';
import { next } from './next.ts';
import { KubeletNotStartableError } from './prepare-assigned.ts';
import type { statusReporter } from './report-status.ts';
import { type AgentEffect, type AgentEvent, type AgentState, desiredPayload, type EffectOf, neededHashes, newAgentState } from './state.ts';
import { sameOnDisk } from './state-file.ts';
import { agentConditionOf } from './status.ts';

export type ReportAgentMessage = (level: 'info' | 'warning' | 'debug', code: string, message: string) => void;

interface ExecuteOptions extends SwitchPorts, Pick<AgentOptions, 'clock' | 'timing' | 'spareCheckpoints' | 'signal'> {
  readonly status: ReturnType<typeof statusReporter>;
  readonly watch: KubeletWatch;
  readonly report: ReportAgentMessage;
  /** @throws KubeletNotStartableError */
  readonly requireStartable: () => Promise<void>;
  /** The state is on disk. */
  readonly isSaved: boolean;
}

/**
 * Runs the state machine: `dispatch` applies an event and executes the resulting effects. A decision is written to disk
 * before its effects are executed.
 * @param onState called when the reported state changed
 */
export function agentStateMachine(ports: Omit<ExecuteOptions, 'isSaved'>, loaded: StoredAgent, onState: (state: AgentState) => void) {
  const { store, clock, timing, report } = ports;
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
      const outcome = await execute(effect, state, { ...ports, isSaved: !isStale });
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

/**
 * Executes an effect of the agent's state machine. Every effect can be executed twice.
 * @returns the resulting event; null: none
 * @throws only when the signal was aborted
 */
async function execute(effect: AgentEffect, state: AgentState, options: ExecuteOptions): Promise<AgentEvent | null> {
  const { store, states, status, report, spareCheckpoints } = options;
  switch (effect.kind) {
    case 'announce':
      report(effect.type === 'Normal' ? 'info' : 'warning', 'AGENT_STEP', effect.message);
      status.announce(effect);
      return null;
    case 'collect':
      await store
        .collect(neededHashes(state), spareCheckpoints)
        .then(() => (state.phase === 'good' ? states?.forget() : undefined))
        .catch((error: unknown) => report('warning', 'AGENT_COLLECT', `the agent cannot delete unused checkpoints: ${messageOf(error)}`));
      return null;
    case 'record':
      return record(effect, state, options);
    case 'switch':
      return switchTo(effect, state, options);
  }
}

/** Records the node before a switch, unless an agent that was interrupted has begun the switch. */
async function record({ id, to }: EffectOf<'record'>, state: AgentState, options: ExecuteOptions): Promise<AgentEvent> {
  const { host, store, watch } = options;
  try {
    const isBegun = (await store.readPointer()) === to || (await runningPayload(host)) === to;
    return { kind: 'recorded', id, baseline: isBegun ? null : await watch.recordBaseline() };
  } catch (error) {
    return switchFailed(error, { id, to }, state, options);
  }
}

async function switchTo({ id, to, needsSavedState }: EffectOf<'switch'>, state: AgentState, options: ExecuteOptions): Promise<AgentEvent> {
  const { watch, report, isSaved } = options;
  try {
    if (needsSavedState && !isSaved)
      throw new Error('the state of the node before the change cannot be written, so the trial was not started');
    // Trials were checked before. A rollback must always proceed.
    if ((state.phase === 'local' || state.phase === 'good') && (await options.store.readPointer()) !== to) await options.requireStartable();
    await watch.beginSwitch(state);
    await reserveRollback(to, state, options);
    const { restarts, wasRestarted, runs } = await switchWithSpace(to, state, options);
    const what = to === null ? 'the local configuration' : `checkpoint ${to.slice(0, 12)}`;
    if (wasRestarted) report('info', 'KUBELET_RESTARTED', `the kubelet was restarted with ${what}`);
    return { kind: 'switched', id, restarts, runs };
  } catch (error) {
    return switchFailed(error, { id, to }, state, options);
  }
}

async function switchFailed(
  error: unknown,
  { id, to }: { readonly id: number; readonly to: string | null },
  state: AgentState,
  options: ExecuteOptions,
): Promise<AgentEvent> {
  if (options.signal.aborted) throw error;
  const target = to === null ? 'the local configuration' : `checkpoint ${to.slice(0, 12)}`;
  options.report('warning', 'KUBELET_NOT_SWITCHED', `the kubelet could not be switched to ${target}: ${messageOf(error)}`);
  const damaged = error instanceof CheckpointDamagedError;
  const isKept = damaged || error instanceof KubeletNotStartableError;
  return { kind: 'switch-failed', id, why: messageOf(error), damaged, local: isKept ? null : await leaveUnproven(state, options) };
}

/** Retries a switch with the disk space reserved for rollbacks if the pointer cannot be written. */
async function switchWithSpace(to: string | null, state: AgentState, options: ExecuteOptions): ReturnType<typeof switchKubelet> {
  const { store, signal } = options;
  try {
    return await switchKubelet(options, to);
  } catch (error) {
    if (signal.aborted || error instanceof CheckpointDamagedError || to === null || (await store.readPointer()) === to) throw error;
    await store.freeReserve(neededHashes(state));
    return switchKubelet(options, to);
  }
}

/** A trial starts only if its rollback needs no further disk space. A trial that already runs continues regardless. */
async function reserveRollback(to: string | null, state: AgentState, { store }: ExecuteOptions): Promise<void> {
  if (state.phase !== 'trial' || to !== state.assigned.hash || (await store.readPointer()) === to) return;
  await store.reserveRollback(state.lastKnownGood?.hash ?? null, neededHashes(state)).catch((cause: unknown) => {
    throw new Error(`no disk space could be reserved for a rollback, so the trial was not started: ${messageOf(cause)}`, { cause });
  });
}

/**
 * Removes the pointer, which needs no disk space, and starts the kubelet with its local configuration if the
 * kubelet would otherwise keep an unproven configuration because the pointer to the desired one cannot be
 * written.
 * @returns null: the kubelet was not changed
 */
async function leaveUnproven(state: AgentState, options: ExecuteOptions): Promise<{ readonly isObserved: boolean } | null> {
  const { store, report, signal } = options;
  try {
    const pointer = await store.readPointer();
    if (pointer === null || pointer === state.lastKnownGood?.hash || pointer === desiredPayload(state)?.hash) return null;
    const { runs } = await switchKubelet(options, null);
    report(
      'warning',
      'KUBELET_RUNS_LOCAL',
      'the kubelet was switched to its local configuration, because the file that selects another configuration cannot be written',
    );
    return { isObserved: runs === 'local' };
  } catch (error) {
    if (signal.aborted) throw error;
    report('warning', 'KUBELET_NOT_SWITCHED', `the kubelet could not be switched to the local configuration: ${messageOf(error)}`);
    return null;
  }
}
