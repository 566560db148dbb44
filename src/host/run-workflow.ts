import { AppError, type Problem, usageError } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { applyPhases, type FixedPlan, planPhases, reportWarnings } from './apply-phases.ts';
import type { FactQueries } from './facts/query.ts';
import type { NodeClaim } from './node-claim.ts';
import type { Phase, PhaseContext } from './phase.ts';
import type { Warning } from './plan/change.ts';
import type { HostPlan, NamedPhasePlan } from './plan/document.ts';
import { impactNotAllowed } from './plan/impact-problem.ts';
import { runHost } from './run-host.ts';
import { isSelectedBy, type RunSettings } from './run-settings.ts';

export interface CheckResult {
  readonly warnings: readonly Warning[];
  /** Problems that forbid any change. With `--dry-run` the plan is shown all the same. */
  readonly refusals: readonly Problem[];
}

export interface Prepared<Input> extends CheckResult {
  readonly input: Input;
  /** The Node of the host, which no other host of the run may claim. Null: unknown. */
  readonly node?: NodeClaim | null;
  /** The Node of the host is not Ready. Absent: it is, or its state is unknown. */
  readonly isDown?: boolean;
  /** A control plane: changed while no other host of the run is. Default: false. */
  readonly isExclusive?: boolean;
  readonly origins?: HostPlan['origins'];
  readonly own?: HostPlan['own'];
}

/** An ordered list of phases with their preparation, which includes `preflight`. */
export interface Workflow<Options, Input> {
  readonly name: string;
  readonly phases: readonly Phase<Input>[];
  /** Phases of kubeadm's command with this name that the workflow does not have: skipping them is accepted. */
  readonly absentPhases?: readonly string[];
  /** Queries by key (`queryKey`) that are always needed, sent in the first round trip. */
  queries?(options: Options): FactQueries;
  prepare(context: PhaseContext, options: Options): Promise<Prepared<Input>>;
}

/** The settings of a run that a workflow reads itself. */
export interface WorkflowRun extends Pick<RunSettings, 'dryRun' | 'skipPhases' | 'onlyPhase' | 'allow'> {
  /** Apply exactly this plan, or fail. */
  readonly exact?: FixedPlan | undefined;
}

export interface WorkflowResult {
  readonly host: HostPlan;
  readonly warnings: readonly Warning[];
  /** Only with `--dry-run`: a real run would be rejected with these problems. */
  readonly refusals: readonly Problem[];
  /** The Node of the host is not Ready. Absent: it is, or its state is unknown. */
  readonly isDown?: boolean;
  /** A control plane: changed while no other host of the run is. Default: false. */
  readonly isExclusive?: boolean;
  /** Stage of the host in the run, if its inspection shows the stage; it replaces an assumed one. */
  readonly stage?: number;
}

/** Plans a workflow with its options on one host: a call of `planWorkflow`. */
export type PlanOnHost = (context: PhaseContext, run: WorkflowRun) => Promise<PlannedWorkflow>;

export interface PlannedWorkflow extends WorkflowResult {
  /** @param context the context of the plan, possibly with another signal. @returns the applied changes */
  apply(context: PhaseContext): Promise<HostPlan>;
}

/**
 * Prepares and plans a workflow on one host; changes nothing. Warnings are reported immediately.
 * @throws AppError with exit code 3 for preflight problems, unless it is a dry run; 2 for an unknown phase;
 *   those of phases
 */
export async function planWorkflow<Options, Input>(
  workflow: Workflow<Options, Input>,
  context: PhaseContext,
  options: Options,
  run: WorkflowRun,
): Promise<PlannedWorkflow> {
  const phases = selectPhases(workflow, run);
  const host = runHost(context.host, context, workflow.queries?.(options));
  const held = { ...context, host, run: host };
  const prepared = await workflow.prepare(held, options);
  const { reporter } = context;
  for (const { code, message } of prepared.warnings) reporter.report({ level: 'warning', code, host: host.name, message });
  const { input, warnings, origins, own, node = null, isDown = false, isExclusive = false } = prepared;
  if (node !== null) context.claim?.set(host.name, node);
  const refusals = [...prepared.refusals, ...(context.claim?.problems() ?? [])];
  if (!run.dryRun && refusals.length > 0) throw new AppError(refusals, { exitCode: 3 });
  const planned = await planPhases(phases, held, input);
  host.bypassFactCache();
  const forbidden = impactNotAllowed({ name: host.name, phases: planned, origins }, run.allow);
  if (forbidden !== null && !run.dryRun) throw new AppError(forbidden, { exitCode: 3 });
  if (run.dryRun) for (const { phase, plan } of planned) reportWarnings(plan, phase, context);
  const named = (done: readonly NamedPhasePlan[]): HostPlan => ({
    name: context.host.name,
    phases: done,
    ...(origins === undefined ? {} : { origins }),
    ...(own === undefined ? {} : { own }),
  });
  return {
    host: named(planned),
    warnings,
    refusals: forbidden === null ? refusals : [...refusals, forbidden],
    ...(isDown ? { isDown } : {}),
    ...(isExclusive ? { isExclusive } : {}),
    apply: async (applyContext) => {
      try {
        return named(await applyPhases(phases, { ...applyContext, host, run: host }, input, planned, run));
      } finally {
        await host.end();
      }
    },
  };
}

/** All workflows have this phase. It only reads, while the workflow is prepared. */
export const PREFLIGHT_PHASE = { name: 'preflight', short: 'Run the preflight checks' };

export function skipsPreflight({ skipPhases }: Pick<RunSettings, 'skipPhases'>): boolean {
  return skipPhases.includes(PREFLIGHT_PHASE.name);
}

/** Whether a workflow has a phase, or phases below it. All workflows have `preflight`. */
export function hasPhase({ phases }: { readonly phases: readonly { readonly name: string }[] }, name: string): boolean {
  return namesOf(phases).some((phase) => isSelectedBy(phase, name));
}

function namesOf(phases: readonly { readonly name: string }[]): readonly string[] {
  return [PREFLIGHT_PHASE.name, ...phases.map(({ name }) => name)];
}

/** Whether a phase runs: not skipped, and selected if a single phase was requested. A parent includes its children. */
export function phaseSelection({ skipPhases, onlyPhase }: Pick<RunSettings, 'skipPhases' | 'onlyPhase'>): (phase: string) => boolean {
  return (phase) => !skipPhases.some((name) => isSelectedBy(phase, name)) && (onlyPhase === undefined || isSelectedBy(phase, onlyPhase));
}

/** Whether a phase is not skipped, independent of a single requested phase. */
export function keptPhases({ skipPhases }: Pick<RunSettings, 'skipPhases'>): (phase: string) => boolean {
  return phaseSelection({ skipPhases });
}

function selectPhases<Options, Input>(workflow: Workflow<Options, Input>, run: WorkflowRun): readonly Phase<Input>[] {
  const isKnown = (name: string): boolean => hasPhase(workflow, name);
  // kubeadm's names of phases that this workflow does not have are accepted.
  const skipped = run.skipPhases.filter((name) => isKnown(name) || !(workflow.absentPhases ?? []).includes(name));
  for (const name of [...skipped, ...(run.onlyPhase === undefined ? [] : [run.onlyPhase])]) {
    if (isKnown(name)) continue;
    const likely = closestName(name, new Set(namesOf(workflow.phases).flatMap((phase) => [phase, phase.split('/')[0] ?? phase])), 2);
    const hint = likely === null ? `To list the phases, run kubeletadm ${workflow.name} --help --all` : `Did you mean ${likely}?`;
    throw usageError(`${workflow.name} has no phase ${name}`, hint);
  }
  const runs = phaseSelection({ ...run, skipPhases: skipped });
  return workflow.phases.filter(({ name }) => runs(name));
}
