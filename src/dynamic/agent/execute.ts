import { messageOf } from '../../base/errors.ts';
import type { Host } from '../../host/host.ts';
import type { CheckpointStore } from '../checkpoint-store.ts';
import { CheckpointDamagedError, type Switched, switchKubelet } from './kubelet-control.ts';
import type { KubeletWatch } from './kubelet-watch.ts';
import type { AgentEffect, AgentEvent } from './next.ts';
import type { NodeReport } from './node-report.ts';
import type { StatusReporter } from './report-status.ts';
import { type AgentState, desiredPayload, neededHashes } from './state.ts';

export interface ExecuteOptions {
  readonly host: Host;
  readonly store: CheckpointStore;
  readonly status: StatusReporter;
  readonly watch: KubeletWatch;
  readonly report: NodeReport;
  /** How many checkpoints are kept besides those that are needed. */
  readonly spareCheckpoints: number;
  readonly signal: AbortSignal;
}

/**
 * Does what an agent has decided. Everything may be done twice.
 * @returns what came of it; null: nothing the agent waits for
 * @throws only when the signal was aborted
 */
export async function execute(effect: AgentEffect, state: AgentState, options: ExecuteOptions): Promise<AgentEvent | null> {
  const { store, status, report, spareCheckpoints } = options;
  switch (effect.kind) {
    case 'announce':
      report(effect.type === 'Normal' ? 'info' : 'warning', 'AGENT_STEP', effect.message);
      status.announce(effect);
      return null;
    case 'collect':
      await store
        .collect(neededHashes(state), spareCheckpoints)
        .catch((error: unknown) => report('warning', 'AGENT_COLLECT', messageOf(error)));
      return null;
    case 'switch':
      return switchTo(effect, state, options);
  }
}

async function switchTo(
  { id, to }: Extract<AgentEffect, { readonly kind: 'switch' }>,
  state: AgentState,
  options: ExecuteOptions,
): Promise<AgentEvent> {
  const { watch, report, signal } = options;
  try {
    const before = await watch.leave(state);
    await reserveRollback(to, state, options);
    const { restarts, wasRestarted, runs } = await switchWithSpace(to, state, options);
    const what = to === null ? 'the local configuration' : `payload ${to.slice(0, 12)}`;
    if (wasRestarted) report('info', 'KUBELET_RESTARTED', `the kubelet was restarted with ${what}`);
    return { kind: 'switched', id, before, restarts, runs };
  } catch (error) {
    if (signal.aborted) throw error;
    report('warning', 'KUBELET_NOT_SWITCHED', messageOf(error));
    const damaged = error instanceof CheckpointDamagedError;
    return { kind: 'switch-failed', id, why: messageOf(error), damaged, local: damaged ? null : await leaveUnproven(state, options) };
  }
}

/** Where the pointer cannot be written, once more with the space that was reserved for it. */
async function switchWithSpace(to: string | null, state: AgentState, { host, store, signal }: ExecuteOptions): Promise<Switched> {
  try {
    return await switchKubelet(host, store, to);
  } catch (error) {
    if (signal.aborted || error instanceof CheckpointDamagedError || to === null || (await store.readPointer()) === to) throw error;
    await store.freeReserve(neededHashes(state));
    return switchKubelet(host, store, to);
  }
}

/** A trial starts only where its rollback needs no more space. One that runs already is watched, whatever the disk is like. */
async function reserveRollback(to: string | null, state: AgentState, { store }: ExecuteOptions): Promise<void> {
  if (state.phase !== 'trial' || to !== state.assigned.hash || (await store.readPointer()) === to) return;
  await store.reserveRollback(state.lastKnownGood?.hash ?? null, neededHashes(state)).catch((cause: unknown) => {
    throw new Error(`no trial without a rollback: its space on the disk cannot be reserved: ${messageOf(cause)}`, { cause });
  });
}

/**
 * Where the kubelet would go on with a configuration that is neither wanted nor proven, because the pointer to the wanted one cannot be written: removes
 * the pointer, which needs no space, and starts the kubelet with its local configuration.
 * @returns null: the kubelet was left as it is
 */
async function leaveUnproven(
  state: AgentState,
  { host, store, report, signal }: ExecuteOptions,
): Promise<{ readonly isObserved: boolean } | null> {
  try {
    const pointer = await store.readPointer();
    if (pointer === null || pointer === state.lastKnownGood?.hash || pointer === desiredPayload(state)?.hash) return null;
    const { runs } = await switchKubelet(host, store, null);
    report('warning', 'KUBELET_RUNS_LOCAL', 'the kubelet was given its local configuration: the pointer to another cannot be written');
    return { isObserved: runs === 'local' };
  } catch (error) {
    if (signal.aborted) throw error;
    report('warning', 'KUBELET_NOT_SWITCHED', messageOf(error));
    return null;
  }
}
