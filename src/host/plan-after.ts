import { AppError, isAppError } from '../base/errors.ts';
import type { PhaseContext } from './phase.ts';
import { type HostPlan, hasChanges, type NamedPhasePlan } from './plan/document.ts';
import type { PlannedWorkflow } from './run-workflow.ts';

export type PlanStep = (context: PhaseContext) => Promise<PlannedWorkflow>;

/**
 * Plans two workflows, the second of which depends on the first: the kubelet must be installed before it can
 * be queried. If the first one plans changes, the phases of the second are planned when they are applied.
 */
export async function planAfter(
  context: PhaseContext,
  { first, then, thenPhases }: { readonly first: PlanStep; readonly then: PlanStep; readonly thenPhases: readonly string[] },
): Promise<PlannedWorkflow> {
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
      const applyNext = async (): Promise<HostPlan> => {
        applyContext.signal?.throwIfAborted();
        return (await then(applyContext)).apply(applyContext);
      };
      return joined(prepared, await changedAlready(applyNext));
    },
  };
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
    ...next,
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
