import { AppError, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { namesText, sortedNames } from '../../base/text/name-ranges.ts';
import { hasChangesOrDeferred } from '../../host/plan/document.ts';
import type { WorkflowResult } from '../../host/run-workflow.ts';
import type { NodeForecast } from '../../maintenance/forecast/forecast.ts';

/** Why no further host is changed although the failures permit it; null: none is down. */
export function blockedReason(down: readonly string[]): string | null {
  if (down.length === 0) return null;
  const are = down.length === 1 ? 'is' : 'are';
  return `${namesText(sortedNames(down))} ${are} unreachable or not Ready, and --max-unavailable permits no further host`;
}

/** Reports equal warnings once. */
export function warningOnce(reporter: Reporter): Reporter {
  const reported = new Set<string>();
  return {
    ...reporter,
    report: (event) => {
      const key = JSON.stringify([event.phase, event.code, event.message]);
      if (event.level === 'warning' && reported.size === reported.add(key).size) return;
      reporter.report(event);
    },
  };
}

const NO_ROUTE = /^HOST_(UNREACHABLE|TIMEOUT|CONNECTION_LOST|AUTH_FAILED|KEY_[A-Z]+)$/;

/** Whether a host failed before it was reached. */
export function isUnreachable({ code }: Pick<Problem, 'code'>): boolean {
  return NO_ROUTE.test(code);
}

export function countByStatus<S extends string>(outcomes: readonly { readonly status: S }[]): Readonly<Partial<Record<S, number>>> {
  const counts: Partial<Record<S, number>> = {};
  for (const { status } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** The status of a host that could not be inspected. */
export function unopenedStatus({ error }: { readonly error: AppError }, { aborted }: AbortSignal) {
  return aborted ? 'interrupted' : isUnreachable(error) ? 'unreachable' : 'refused';
}

/** The plan of a host, and what its change needs in the cluster. */
export interface HostResult extends WorkflowResult {
  /** The drain before the change. Absent: the node is not drained, or the drain was not forecast. */
  readonly drain?: NodeForecast;
}

/** The result of a host that is only planned. `clashes`: problems with the Nodes of other hosts of the run. */
export function plannedOutcome(planned: HostResult, clashes: readonly Problem[]) {
  const refusals = clashes.length > 0 ? [...planned.refusals.filter(isOther(clashes)), ...clashes] : planned.refusals;
  const error = refusals.length > 0 ? new AppError(refusals, { exitCode: 3 }) : null;
  const status = error ? ('refused' as const) : hasChangesOrDeferred(planned.host) ? ('pending' as const) : ('unchanged' as const);
  return { status, plan: { ...planned, refusals }, error };
}

/** Filters out problems that were already reported when the host was planned. */
function isOther(problems: readonly Problem[]): (problem: Problem) => boolean {
  return ({ code, message }) => !problems.some((one) => one.code === code && one.message === message);
}
