import { AppError, isAppError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { applyEtcdChange } from '../kube/etcd-cluster.ts';
import { describeRef } from '../kube/object.ts';
import { applyClusterChange, applyHostChanges, performChanges } from './apply.ts';
import { type OpenCommit, openCommit } from './confirmed-commit.ts';
import type { Lasts, ObservedPhase, Phase, PhaseContext } from './phase.ts';
import { type Change, type ClusterChange, changedRef, type HostChange, isClusterChange, type PhasePlan } from './plan/change.ts';
import type { NamedPhasePlan } from './plan/document.ts';
import { changesOf, type HostChanges } from './plan/fold.ts';
import type { Impact } from './plan/impact.ts';
import { impactNotAllowed } from './plan/impact-problem.ts';
import { comparableChanges, isSamePlan, type PlanDifference, planDifference, withoutCreated } from './plan/same-plan.ts';

export async function planPhases<Input>(
  phases: readonly Phase<Input>[],
  context: PhaseContext,
  input: Input,
): Promise<readonly NamedPhasePlan[]> {
  const plans: NamedPhasePlan[] = [];
  for (const phase of phases) {
    const own = await phase.contextFor(context, input);
    context.run?.cacheFacts(phase.name);
    const { plan } = await phase.inspect(own, input);
    plans.push({ phase: phase.name, plan });
  }
  return plans;
}

/**
 * Runs the phases in order. Each phase is inspected again just before it is applied. If its new plan differs
 * from the shown one for reasons other than the earlier phases, the difference is reported before the
 * changes. A change that needs a confirmation is confirmed after its child phases.
 * @param planned result of `planPhases`, as shown to the user
 * @returns the applied changes
 * @throws AppError: of the failed phase, or INTERRUPTED. Exit code 5: the previous configuration was restored
 */
export async function applyPhases<Input>(
  phases: readonly Phase<Input>[],
  context: PhaseContext,
  input: Input,
  planned: readonly NamedPhasePlan[],
  { exact, allow }: Pick<PhaseRun<Input>, 'exact' | 'allow'> = {},
): Promise<readonly NamedPhasePlan[]> {
  const applied: NamedPhasePlan[] = [];
  const guard: PhaseRun<Input>['guard'] = { open: null, lasts: null };
  for (let at = 0; at < phases.length; ) {
    const group = groupAt(phases, at);
    at += group.length;
    try {
      context.signal?.throwIfAborted();
      applied.push(...(await applyGroup(group, { context, input, planned, applied, guard, exact, allow })));
      if (phases[at]?.name.startsWith(`${guard.open?.phase}/`)) continue;
      if (guard.open !== null) {
        await guard.open.confirm(guard.lasts);
        guard.lasts = null;
      }
      guard.open = null;
      if (at >= phases.length) await guard.lasts?.();
    } catch (error) {
      const reported = guard.open === null ? error : await guard.open.rollBack(error);
      await runCleanup(phases.slice(at), context, input);
      throw reported;
    }
  }
  return applied;
}

/** The phase at an index, and the following ones that are applied together with it. */
function groupAt<Input>(phases: readonly Phase<Input>[], at: number): readonly Phase<Input>[] {
  const end = phases.findIndex(({ writesFilesOnly }, i) => i >= at && !writesFilesOnly);
  return phases.slice(at, Math.max(end < 0 ? phases.length : end, at + 1));
}

/** A plan that was made before the run, from which a host must not differ. */
export type FixedPlan = 'saved' | 'approved';

interface PhaseRun<Input> {
  readonly context: PhaseContext;
  readonly input: Input;
  readonly planned: readonly NamedPhasePlan[];
  /** Changes made by earlier phases. */
  readonly applied: readonly NamedPhasePlan[];
  readonly guard: {
    /** The change that waits for its confirmation while phases are applied. */
    open: OpenCommit | null;
    /** Of the latest phase that verified a state: a later state replaces an earlier one. */
    lasts: Lasts | null;
  };
  /** Apply exactly this plan: a phase with another plan fails (PLAN_STALE). */
  readonly exact?: FixedPlan | undefined;
  /** The most disruptive impact that is applied; a phase with a higher one fails (IMPACT_NOT_ALLOWED). */
  readonly allow?: Impact | undefined;
}

async function applyGroup<Input>(group: readonly Phase<Input>[], run: PhaseRun<Input>): Promise<readonly NamedPhasePlan[]> {
  const first = group[0] as Phase<Input>;
  const contextOf = (phase: Phase<Input>): Promise<PhaseContext> => phase.contextFor(run.context, run.input);
  if (group.length === 1) {
    const { observed, context, notReady } = await observeBefore(first, { ...run, context: await contextOf(first), group: [first.name] });
    const others = await applyPhase(first, observed, context, run.guard);
    if (notReady !== null) throw notReady.error;
    const changes = observed.plan.changes.filter((change) => !others.includes(change));
    return [{ phase: first.name, plan: { ...observed.plan, changes } }];
  }
  const plans: NamedPhasePlan[] = [];
  const names = group.map(({ name }) => name);
  for (const phase of group) {
    const applied = [...run.applied, ...plans];
    const { observed } = await observeBefore(phase, { ...run, context: await contextOf(phase), applied, group: names });
    const changes = observed.plan.changes.filter((change) => !isMadeBy(change, plans));
    plans.push({ phase: phase.name, plan: { ...observed.plan, changes } });
  }
  for (const { phase, plan } of plans) reportPlan(plan, phase, run.context);
  const owners = plans.flatMap(({ phase, plan }) => plan.changes.map(() => phase));
  const changes = plans.flatMap(({ plan }) => plan.changes as readonly HostChange[]);
  const { host, reporter, signal } = run.context;
  const phaseOf = (index: number): string => owners[index] ?? first.name;
  if (changes.length > 0) await applyHostChanges(host, changes, { reporter, phase: first.name, phaseOf, signal });
  return plans;
}

/** Whether another phase of the same group already creates the directory. */
function isMadeBy(change: Change, plans: readonly NamedPhasePlan[]): boolean {
  if (change.kind !== 'make-directory') return false;
  return plans.some(({ plan }) => plan.changes.some((made) => made.kind === 'make-directory' && made.path === change.path));
}

/**
 * Inspects a phase just before it is applied, and compares its new plan with the shown one.
 * @returns a context with the abort signal, except for cleanup phases after a failure
 */
async function observeBefore<Input>(
  phase: Phase<Input>,
  { context, input, planned, applied, exact, allow, group }: PhaseRun<Input> & { readonly group: readonly string[] },
): Promise<{ readonly observed: ObservedPhase; readonly context: PhaseContext; readonly notReady: { readonly error: unknown } | null }> {
  const { host, reporter } = context;
  reporter.report({ level: 'info', code: 'PHASE_STARTED', host: host.name, phase: phase.name, message: phase.short, verbosity: 1 });
  const notReady = await phase.ready(context, input).then(
    () => null,
    (error: unknown) => ({ error }),
  );
  if (notReady !== null && !phase.runsAfterFailure) throw notReady.error;
  // Cleanup ignores the abort signal, which may be what triggered it.
  const { signal: _, ...uninterrupted } = context;
  const own = notReady === null ? context : uninterrupted;
  context.run?.cacheFacts(phase.name, group);
  const observed = await phase.inspect(own, input).finally(() => context.run?.bypassFactCache());
  const before = planned.find((plan) => plan.phase === phase.name)?.plan;
  const made = applied.flatMap(({ plan }) => plan.changes);
  if (before !== undefined && before.deferred === undefined && !isSamePlan(before, observed.plan, made)) {
    const changes = (plan: PhasePlan): HostChanges =>
      changesOf({ name: host.name, phases: [{ phase: phase.name, plan: { changes: comparableChanges(plan, made) } }] });
    const difference = planDifference(changes(withoutCreated(before, observed.plan)), changes(observed.plan));
    const about = { host: host.name, phase: phase.name };
    if (exact !== undefined) {
      reportDifference(reporter, about, { difference, between: `the ${exact} plan and the current plan` });
      throw planStale(host.name, exact, { message: `${phase.name}: the host or the cluster changed since the plan was ${exact}` });
    }
    const message = 'the host or the cluster changed since the plan was made, so this phase was planned again';
    reporter.report({ level: 'warning', code: 'PLAN_CHANGED', ...about, message });
    reportDifference(reporter, about, { difference, between: 'the plan and the applied changes' });
  }
  // The kubelet may have started since the plan was made.
  const forbidden = impactNotAllowed({ name: host.name, phases: [{ phase: phase.name, plan: observed.plan }] }, allow);
  if (forbidden !== null) throw new AppError(forbidden, { exitCode: made.length > 0 ? 1 : 3 });
  return { observed, context: own, notReady };
}

/** Reports the result of `planDifference`, unless it is empty. */
export function reportDifference(
  reporter: Reporter,
  about: { readonly host: string; readonly phase?: string },
  { difference: { fields, diff }, between }: { readonly difference: PlanDifference; readonly between: string },
): void {
  const lines = diff === '' ? fields : [...fields, diff];
  if (lines.length === 0) return;
  reporter.report({ level: 'info', code: 'PLAN_DIFFERENCE', ...about, message: `difference between ${between}:\n${lines.join('\n')}` });
}

/** A plan that no longer matches. Exit code 3: nothing was changed. */
export function planStale(
  host: string,
  plan: FixedPlan,
  { message, exitCode = 1 }: { readonly message: string; readonly exitCode?: 1 | 3 },
): AppError {
  return new AppError({ host, code: 'PLAN_STALE', message, hint: STALE_HINTS[plan] }, { exitCode });
}

const STALE_HINTS: Readonly<Record<FixedPlan, string>> = {
  saved:
    'Check the difference. Then plan again with kubeletadm plan --out FILE, or apply the current plan with kubeletadm apply FILE --replan',
  approved: 'Check the difference, then rerun kubeletadm apply, which shows the new plan',
};

/** Runs the remaining cleanup phases. Their errors are warnings: the first failure is the one to fix. */
async function runCleanup<Input>(phases: readonly Phase<Input>[], { signal: _, ...context }: PhaseContext, input: Input): Promise<void> {
  for (const phase of phases.filter(({ runsAfterFailure }) => runsAfterFailure)) {
    try {
      const own = await phase.contextFor(context, input);
      const { plan } = await phase.inspect(own, input);
      await applyChanges(plan.changes, phase.name, own);
    } catch (error) {
      const message = `cleanup failed: ${error instanceof Error ? error.message : String(error)}`;
      context.reporter.report({ level: 'warning', code: 'TIDY_UP_FAILED', host: context.host.name, phase: phase.name, message });
    }
  }
}

/** @returns the changes that another client has made meanwhile */
async function applyPhase<Input>(
  phase: Phase<Input>,
  observed: ObservedPhase,
  context: PhaseContext,
  guard: PhaseRun<Input>['guard'],
): Promise<readonly Change[]> {
  const { plan } = observed;
  reportPlan(plan, phase.name, context);
  const hostChanges = plan.changes.filter((change): change is HostChange => !isClusterChange(change));
  const commit = await openCommit({ name: phase.name, observed, changes: hostChanges }, context);
  let madeByOthers: readonly Change[];
  if (commit === null) madeByOthers = await applyChanges(plan.changes, phase.name, context);
  else {
    guard.open = commit;
    const others = plan.changes.filter(({ kind }) => kind !== 'confirm-commit');
    // Also without changes: a pending change is joined.
    if (others.length === 0) await context.host.perform([]);
    madeByOthers = await applyChanges(others, phase.name, context, true);
    commit.wasApplied();
  }
  if (plan.deferred !== undefined) return madeByOthers;
  try {
    const lasts = await observed.verify(plan.changes);
    if (lasts === undefined) return madeByOthers;
    const mustDecide = commit === null && (observed.undo(hostChanges)?.length ?? 0) > 0;
    if (mustDecide) await lasts();
    else guard.lasts = lasts;
  } catch (error) {
    if (commit !== null) throw error;
    await rollBack(phase.name, observed, context, error);
  }
  return madeByOthers;
}

function reportPlan(plan: PhasePlan, phase: string, context: PhaseContext): void {
  const { host, reporter } = context;
  reportWarnings(plan, phase, context);
  if (plan.deferred !== undefined)
    reporter.report({ level: 'info', code: 'PHASE_DEFERRED', host: host.name, phase, message: `later: ${plan.deferred}` });
  if (plan.noop !== undefined && plan.isReportedByVerify !== true)
    reporter.report({ level: 'info', code: 'PHASE_NOOP', host: host.name, phase, message: plan.noop });
}

export function reportWarnings({ warnings = [] }: PhasePlan, phase: string, { host, reporter }: PhaseContext): void {
  for (const { code, message } of warnings) reporter.report({ level: 'warning', code, host: host.name, phase, message });
}

const CLUSTER_VERBS = {
  'create-object': 'created',
  'update-object': 'updated',
  'patch-object': 'patched',
  'mark-node': 'patched',
  'delete-object': 'deleted',
  'add-etcd-learner': 'created',
  'promote-etcd-member': 'patched',
  'remove-etcd-member': 'deleted',
} as const satisfies Record<ClusterChange['kind'], string>;

/** @returns the objects that another client has created meanwhile */
async function applyChanges(
  changes: readonly Change[],
  phase: string,
  context: PhaseContext,
  guarded = false,
): Promise<readonly ClusterChange[]> {
  const { signal } = context;
  const madeByOthers: ClusterChange[] = [];
  for (let i = 0; i < changes.length; ) {
    const change = changes[i] as Change;
    if (isClusterChange(change)) {
      signal?.throwIfAborted();
      const isMade = await applyOutsideHost(context, change, phase);
      if (!isMade) madeByOthers.push(change);
      const object = describeRef(changedRef(change));
      const message = isMade ? `${CLUSTER_VERBS[change.kind]} ${object}` : `${object} was created meanwhile`;
      context.reporter.report({ level: 'info', code: 'CHANGE_DONE', phase, message });
      i++;
      continue;
    }
    const end = changes.findIndex((next, at) => at > i && isClusterChange(next));
    const batch = changes.slice(i, end < 0 ? undefined : end) as HostChange[];
    await applyHostChanges(context.host, batch, { reporter: context.reporter, phase, guarded, signal });
    i += batch.length;
  }
  return madeByOthers;
}

/** Whether it was changed. Uses the cluster of the context: a phase plans such a change only after it has read the cluster. */
async function applyOutsideHost(context: PhaseContext, change: ClusterChange, phase: string): Promise<boolean> {
  const { cluster, etcd = null, host, reporter, signal } = context;
  if ('member' in change) {
    if (etcd === null) throw new Error(`${change.kind} without a connection to etcd`);
    await applyEtcdChange(etcd, change, { host, reporter, signal, phase });
    return true;
  }
  if (cluster === null) throw new Error(`${change.kind} without an API server`);
  return applyClusterChange(cluster, change);
}

async function rollBack(phase: string, observed: ObservedPhase, context: PhaseContext, error: unknown): Promise<never> {
  const applied = observed.plan.changes.filter((change): change is HostChange => !isClusterChange(change));
  const undo = observed.undo(applied);
  if (undo === null || undo.length === 0 || !isAppError(error)) throw error;
  const { host, reporter } = context;
  const message = `rolling back to the ${observed.verifiedState !== null ? 'last working' : 'previous'} configuration`;
  const cause = error.problems[0]?.message ?? null;
  reporter.report({ level: 'warning', code: 'ROLLBACK_STARTED', host: host.name, phase, message, data: { cause } });
  let others: string | undefined;
  try {
    await performChanges(host, undo, { reporter, phase });
    others = await observed.verifyUndone();
  } catch (cause) {
    const why = cause instanceof AppError ? cause.message : String(cause);
    const failed = `${phase}: the rollback to the previous configuration failed: ${why}`;
    const problem = { host: host.name, code: 'ROLLBACK_FAILED', message: failed };
    throw new AppError([...error.problems, problem], { cause: error, detail: error.detail });
  }
  const state = observed.verifiedState === null ? '' : ` and ${observed.verifiedState}`;
  const restored = `${phase}: the previous files were restored${state}${others === undefined ? '' : `. ${others}`}`;
  const problem = { host: host.name, code: 'ROLLED_BACK', message: restored };
  throw new AppError([...error.problems, problem], { exitCode: 5, cause: error, detail: error.detail });
}
