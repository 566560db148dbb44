import { AppError, isAppError } from '../base/errors.ts';
import type { PhaseContext } from './phase.ts';
import { type HostPlan, hasChanges, type NamedPhasePlan } from './plan/document.ts';
import type { PlannedWorkflow } from './run-workflow.ts';

export type PlanStep = (context: PhaseContext) => Promise<PlannedWorkflow>;

interface StepsInOrder {
  readonly first: PlanStep;
  readonly then: PlanStep;
  /** Names of the phases of the second workflow, for the list of deferred phases. */
  readonly thenPhases: readonly string[];
}

/**
 * Plans two workflows, the second of which depends on the first: the kubelet must be installed before it can
 * be queried. If the first one plans changes, the phases of the second are planned when they are applied.
 */
export async function planAfter(context: PhaseContext, { first, then, thenPhases }: StepsInOrder): Promise<PlannedWorkflow> {
  const before = await first(context);
  if (before.refusals.length > 0 || !hasChanges(before.host)) return together(before, await then(context));
  const reason = `waits for ${changedPhases(before.host).join(', ')}`;
  const waiting = thenPhases.map((phase): NamedPhasePlan => ({ phase, plan: { changes: [], deferred: reason } }));
  return {
    host: { ...before.host, phases: [...before.host.phases, ...waiting] },
    warnings: before.warnings,
    refusals: before.refusals,
    apply: async (applyContext) => {
      const prepared = await before.apply(applyContext);
      return joined(prepared, await changedAlready(() => applyNow(then, applyContext)));
    },
  };
}

async function applyNow(then: PlanStep, context: PhaseContext): Promise<HostPlan> {
  context.signal?.throwIfAborted();
  const planned = await then(context);
  return planned.apply(context);
}

/** If the second workflow is refused, the host was nevertheless changed by the first one. */
async function changedAlready<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isAppError(error) || (error.exitCode !== 2 && error.exitCode !== 3)) throw error;
    throw new AppError(error.problems, { exitCode: 1, cause: error, detail: error.detail });
  }
}

function together(before: PlannedWorkflow, next: PlannedWorkflow): PlannedWorkflow {
  return {
    host: joined(before.host, next.host),
    warnings: [...before.warnings, ...next.warnings],
    refusals: [...before.refusals, ...next.refusals],
    apply: async (context) => joined(await before.apply(context), await next.apply(context)),
  };
}

function joined(before: HostPlan, next: HostPlan): HostPlan {
  return { ...before, ...next, phases: [...before.phases, ...next.phases] };
}

function changedPhases({ phases }: HostPlan): readonly string[] {
  return phases.filter(({ plan }) => plan.changes.length > 0).map(({ phase }) => phase);
}
