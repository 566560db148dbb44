import type { AgentEffect, AgentEvent } from '../core/dynamic/agent/next.ts';
import { type AgentState, neededHashes } from '../core/dynamic/agent/state.ts';
import { messageOf } from '../core/errors.ts';
import type { CheckpointStore } from '../engine/checkpoint-store.ts';
import type { Host } from '../ports/host.ts';
import { CheckpointDamagedError, switchKubelet } from './kubelet-control.ts';
import type { KubeletWatch } from './kubelet-watch.ts';
import type { NodeReport } from './node-report.ts';
import type { StatusReporter } from './report-status.ts';

export interface CarryOutOptions {
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
export async function carryOut(effect: AgentEffect, state: AgentState, options: CarryOutOptions): Promise<AgentEvent | null> {
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
  { host, store, watch, report, signal }: CarryOutOptions,
): Promise<AgentEvent> {
  try {
    const before = await watch.leave(state);
    const { restarts, wasRestarted, runs } = await switchKubelet(host, store, to);
    const what = to === null ? 'the local configuration' : `payload ${to.slice(0, 12)}`;
    if (wasRestarted) report('info', 'KUBELET_RESTARTED', `the kubelet was restarted with ${what}`);
    return { kind: 'switched', id, before, restarts, runs };
  } catch (error) {
    if (signal.aborted) throw error;
    report('warning', 'KUBELET_NOT_SWITCHED', messageOf(error));
    return { kind: 'switch-failed', id, why: messageOf(error), damaged: error instanceof CheckpointDamagedError };
  }
}
