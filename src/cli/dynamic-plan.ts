import type { ExitCode } from '../base/errors.ts';
import type { ClusterChange, PhasePlan, Warning } from '../host/plan/change.ts';
import { type ClusterName, planDocument, planIsEmpty } from '../host/plan/document.ts';
import type { Services } from './services.ts';
import { type PlanRequest, renderPlan } from './show-plan.ts';

export interface ClusterPlan {
  readonly phase: string;
  readonly plans: readonly PhasePlan[];
  /** Null: unreachable. */
  readonly cluster: ClusterName | null;
  readonly warnings?: readonly Warning[];
}

/** Prints the planned changes of the cluster; exit code 6 with `--exit-code` when the plan is not empty. */
export function showClusterPlan(
  services: Services,
  { format, failsIfChanged }: Pick<PlanRequest, 'format' | 'failsIfChanged'>,
  { phase, plans, cluster, warnings = [] }: ClusterPlan,
): ExitCode {
  const { hosts: _, ...document } = planDocument([{ name: '', phases: plans.map((plan) => ({ phase, plan })) }], warnings, cluster);
  const shown = { ...document, hosts: [] };
  services.output.stdout(renderPlan(shown, format));
  return failsIfChanged && !planIsEmpty(shown) ? 6 : 0;
}

/** The plan of some changes of the cluster. */
export function plansOf(changes: readonly ClusterChange[]): readonly PhasePlan[] {
  return [{ changes }];
}
