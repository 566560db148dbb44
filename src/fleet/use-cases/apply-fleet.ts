import { AppError, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { quoteShell } from '../../base/text/shell-quote.ts';
import type { RunAttribution } from '../history/host-history.ts';
import type { RunJournal, RunJournals } from '../history/journal.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import { type FleetPorts, type FleetResult, type FleetRules, runFleet } from '../run/fleet.ts';
import { fleetFailure, requireValidValues } from '../run/fleet-failure.ts';
import { type Approval, type ApprovedTasks, approvePlan, downHosts, requireApproval, withPlanned } from './approve-plan.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { canaryRules, fleetRules } from './fleet-rules.ts';
import { type AppliedRequest, type FleetTasks, readTasks } from './fleet-tasks.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import { openFleetRun } from './open-fleet-run.ts';
import { chooseRollout, hasGatesFor, openGates } from './open-gates.ts';
import type { SavedPlanPorts } from './read-saved-plan.ts';
import { journaled, type RetriedHosts, readRetriedHosts, recordRun } from './run-journal.ts';

export interface ApplyFleetRequest extends AppliedRequest, FleetRunRequest {
  /** Apply without asking. A saved plan is always applied without asking. */
  readonly isApproved: boolean;
  /** Inspect all hosts of a fleet file before the first is changed; an approved plan always does. */
  readonly inspectsFirst: boolean;
  /** Only the hosts that earlier runs did not finish. */
  readonly retriesFailed: boolean;
}

/** Ports of `fleet apply`. */
interface ApplyFleetPorts extends FleetRunPorts, FleetFilePorts, SavedPlanPorts {
  /** Records of runs over fleets. */
  runJournals(): Promise<RunJournals>;
}

/** Shown when a second interruption stops the run immediately. */
export interface InterruptedRun {
  /** All hosts of the run, in its order. */
  readonly hosts: readonly string[];
  /** The command that processes the unfinished hosts; null: the same command again. */
  readonly retryCommand: string | null;
}

/** A run that changes hosts. */
interface StartedRun extends InterruptedRun {
  /** Number of hosts that are changed first. */
  readonly canary: number;
  /** The saved plan, with its verified signer; null: a fleet file is applied. */
  readonly plan: { readonly id: string; readonly signer: string | null } | null;
}

/** An observer of a run. */
interface ApplyFleetView {
  /** Warnings about the fleet file, before the run. */
  warning(problem: Problem): void;
  /** No host has to be processed. */
  nothing(work: NothingToApply): void;
  /** Asks the operator, unless the request is approved already. */
  readonly approval: Approval;
  /**
   * The run begins. Of hosts that ended while they were planned for the approval, the ports of the run receive only the end.
   */
  begin(run: StartedRun): FleetRunView;
}

/** An observer of the hosts of a run. */
export interface FleetRunView {
  readonly ports: FleetPorts;
  /** Reporter of messages that concern no single host. */
  readonly reporter: Reporter;
  /** All hosts are done. */
  done(result: FleetResult): void;
  /** The hosts are done, or the run failed; may be called several times. */
  close(): void;
}

/** Why a run has no hosts. */
export interface NothingToApply extends Pick<FleetTasks, 'unplanned' | 'unchanged'> {
  /** The unfinished hosts of earlier runs were requested; null: all hosts were. */
  readonly retry: RetriedHosts | null;
}

/**
 * Applies a fleet file or a saved plan, and records the run in a journal.
 * @returns the failure of the run; null when all hosts succeeded
 * @throws AppError with exit code 2 for an invalid file, plan or selection; errors of the journal and the cluster
 */
export async function applyFleet(services: ApplyFleetPorts, request: ApplyFleetRequest, view: ApplyFleetView): Promise<AppError | null> {
  const { planFile } = request;
  const work = await readTasks(services, request);
  for (const warning of work.warnings) view.warning(warning);
  const { subject } = work;
  const journals = await services.runJournals();
  const retry = request.retriesFailed ? await readRetriedHosts(journals, { subject, command: 'apply', name: planFile ?? work.file }) : null;
  const tasks = retry === null ? work.tasks : work.tasks.filter(({ host }) => retry.hosts.includes(host.name));
  const kept = work.tasks.filter((task) => !tasks.includes(task)).map(({ host }) => host.name);
  const done = [...work.unchanged, ...kept];
  const rollout = await chooseRollout(services, work.request.rules.gates, { declared: work.rollout, reverts: false });
  if (tasks.length === 0) {
    view.nothing({ ...work, retry });
    if (!hasGatesFor(rollout, done)) return withUnplanned(work, null);
  }
  const changed = tasks.map(({ host }) => host);
  const canaries = canaryRules(work.request.rules, changed, work.canaries);
  const rules = { ...fleetRules(work.request.rules, tasks.length), ...canaries };
  const asks = planFile === undefined && !request.isApproved && tasks.length > 0;
  if (asks) requireApproval(view.approval);
  const inspectsFirst = !asks && planFile === undefined && request.inspectsFirst && tasks.length > 1;
  const approved = asks ? await approvePlan(services, { ...work, tasks }, { approval: view.approval, canaries }) : { tasks, outcomes: [] };
  const hosts = tasks.map(({ host }) => host.name);
  const run = { subject, fleet: work.fleetFile, hosts, note: { command: 'apply', ...work.request.writing.note } };
  return recordRun(services, journals, run, async (journal, note) => {
    const running = view.begin({
      hosts,
      retryCommand: retryCommandOf(planFile, work.request.file),
      canary: approved.tasks.length === 1 ? 0 : rules.canary,
      plan:
        planFile === undefined
          ? null
          : { id: subject, signer: work.signer === null ? null : `${work.signer.principal}, key ${work.signer.fingerprint}` },
    });
    const writing = { ...work.request.writing, note };
    const noted = { ...work, request: { ...work.request, writing } };
    const result = await applyTasks(services, noted, { journal, note, rules, rollout, done, inspectsFirst, view: running, approved });
    return withUnplanned(work, fleetFailure(result, services));
  });
}

interface RunParts {
  readonly journal: RunJournal;
  readonly note: RunAttribution;
  readonly rules: FleetRules;
  readonly rollout: Awaited<ReturnType<typeof chooseRollout>>;
  /** Selected hosts that have the change already: the plan changes nothing, or `--retry` leaves them out. */
  readonly done: readonly string[];
  readonly inspectsFirst: boolean;
  readonly view: FleetRunView;
  readonly approved: ApprovedTasks;
}

async function applyTasks(
  services: ApplyFleetPorts,
  work: FleetTasks,
  { journal, note, rules, rollout, done: before, inspectsFirst, view, approved }: RunParts,
): Promise<FleetResult> {
  const { reporter } = view;
  const { tasks, outcomes: planned } = approved;
  const ports = journaled(view.ports, journal, services, note);
  try {
    for (const outcome of planned) if (outcome.status !== 'pending') await ports.ended?.(outcome);
    const done = [...before, ...planned.flatMap(({ host, status }) => (status === 'unchanged' ? [host] : []))];
    const hasFailed = planned.some(({ error }) => error !== null);
    if (tasks.length === 0 && (hasFailed || !hasGatesFor(rollout, done))) {
      const result = { outcomes: planned, stopped: null };
      view.close();
      view.done(result);
      return result;
    }
    const run = await openFleetRun(services, work.request, { ...work, tasks, reporter });
    try {
      if (run.access !== null) requireSameServer(work, run.access);
      // Hosts that wait for the bootstrap of a cluster cannot be inspected.
      const stopsIfRefused = inspectsFirst && run.access !== null;
      const gates = openGates(services, { rollout, cluster: run.access?.cluster ?? null, reporter, done });
      const observesFirst = run.access !== null && (inspectsFirst || gates !== undefined);
      const inspected = (outcomes: FleetResult['outcomes']): void => requireValidValues({ outcomes });
      const othersDown = await downHosts(run.access?.cluster ?? null, planned);
      const own = { ...rules, othersDown, observesFirst, stopsIfRefused };
      await run.announce(planned);
      const applied = await runFleet(run.members, own, { ...ports, gates, claims: run.claims, inspected });
      view.close();
      await run.finish(applied);
      const result = planned.length === 0 ? applied : withPlanned(applied, planned);
      view.done(result);
      return result;
    } finally {
      view.close();
      await run.close();
    }
  } finally {
    view.close();
  }
}

/** Fleet file or plan, as the user named it. */
function retryCommandOf(planFile: string | undefined, file: string | undefined): string {
  const subject = planFile !== undefined ? [quoteShell(planFile)] : file === undefined ? [] : ['-f', quoteShell(file)];
  return ['kubeletadm apply', ...subject, '--retry failed'].join(' ');
}

/** The failure of a run; hosts that the saved plan does not cover are failures too. */
function withUnplanned({ unplanned }: FleetTasks, failure: AppError | null): AppError | null {
  if (unplanned.length === 0) return failure;
  if (failure === null) return new AppError(unplanned, { exitCode: 4 });
  const exitCode = failure.exitCode > 128 ? failure.exitCode : 4;
  return new AppError([...unplanned, ...failure.problems], { exitCode, cause: failure });
}

function requireSameServer({ server }: FleetTasks, { apiServer }: FleetAccess): void {
  if (server === null || server === apiServer.server) return;
  const message = `the plan was created for the API server ${server}, but the kubeconfig names ${apiServer.server}`;
  throw new AppError(
    {
      code: 'PLAN_STALE',
      message,
      hint: 'Pass a kubeconfig of the cluster for which the plan was created, or create a new plan: kubeletadm plan --out FILE',
    },
    { exitCode: 2 },
  );
}
