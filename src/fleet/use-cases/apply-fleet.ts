import { AppError, formatProblem, type Problem, usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { quoteShell } from '../../base/text/shell-quote.ts';
import { type FleetPorts, type FleetResult, type FleetRules, runFleet } from '../fleet.ts';
import { fleetFailure, problemsOf } from '../fleet-failure.ts';
import { hostsToRetry, type JournaledRun } from '../journal.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import type { RunJournal, RunJournals } from '../run-journals.ts';
import type { PlannedHost } from '../saved-plan.ts';
import type { FleetTask } from './fleet-members.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { fleetRules } from './fleet-rules.ts';
import { type FleetTasks, readTasks } from './fleet-tasks.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import { openFleetRun } from './open-fleet-run.ts';

export interface ApplyFleetRequest {
  /** A saved plan; undefined: the fleet file is applied. */
  readonly planFile: string | undefined;
  readonly run: FleetRunRequest;
  /** Only the hosts that the last run did not finish. */
  readonly retriesFailed: boolean;
}

/** Ports of `fleet apply`. */
export interface ApplyFleetPorts extends FleetRunPorts, FleetFilePorts {
  /** Records of runs over fleets. */
  runJournals(): Promise<RunJournals>;
}

/** Shown when a second interruption stops the run immediately. */
export interface InterruptedRun {
  /** All hosts of the run, in its order. */
  readonly hosts: readonly string[];
  /** The command that processes the unfinished hosts. */
  readonly retryCommand: string;
}

/** An observer of a run. */
export interface ApplyFleetView {
  /** Warnings about the fleet file, before the run. */
  warning(problem: Problem): void;
  /** No host has to be processed. */
  nothing(work: NothingToApply): void;
  /** The run begins. */
  begin(run: InterruptedRun): FleetRunView;
}

export interface FleetRunView {
  readonly ports: FleetPorts;
  /** Reporter of messages that concern no single host. */
  readonly reporter: Reporter;
  /** All hosts are done. */
  done(result: FleetResult): void;
  /** The hosts are done, or the run failed; may be called twice. */
  close(): void;
}

/** Why a run has no hosts. */
export interface NothingToApply extends Pick<FleetTasks, 'unplanned' | 'unchanged'> {
  /** The run of which the unfinished hosts were requested; null: all hosts were. */
  readonly last: JournaledRun | null;
}

/**
 * Applies a fleet file or a saved plan, and records the run in a journal.
 * @returns the failure of the run; null when all hosts succeeded
 * @throws AppError with exit code 2 for an invalid file, plan or selection; errors of the journal and the cluster
 */
export async function applyFleet(services: ApplyFleetPorts, request: ApplyFleetRequest, view: ApplyFleetView): Promise<AppError | null> {
  const { planFile } = request;
  const work = await readTasks(services, planFile, request.run);
  for (const warning of work.warnings) view.warning(warning);
  const { subject } = work;
  const journals = await services.runJournals();
  const last = request.retriesFailed ? await lastRun(journals, work, planFile) : null;
  const tasks = last === null ? work.tasks : leftBy(last, work.tasks);
  const rules = fleetRules(work.request.rules, { total: tasks.length, dryRun: false });
  if (tasks.length === 0) {
    view.nothing({ ...work, last });
    return withUnplanned(work, null);
  }
  const started = services.clock.now();
  const journal = await journals.begin(started);
  try {
    const hosts = tasks.map(({ host }) => host.name);
    const remaining = last === null ? [] : remainingHosts(last, { selected: hosts, all: work.hosts });
    const entry = { event: 'run-started', time: started.toISOString(), command: 'apply', subject, hosts } as const;
    await journal.write({ ...entry, ...(remaining.length === 0 ? {} : { remaining }) });
    const running = view.begin({ hosts, retryCommand: retryCommandOf(planFile, work.request.file) });
    const result = await applyTasks(services, { ...work, tasks }, { journal, rules, view: running });
    const failure = withUnplanned(work, fleetFailure(result, services));
    await journal.write({ event: 'run-ended', time: services.clock.now().toISOString(), exitCode: failure?.exitCode ?? 0 });
    return failure;
  } finally {
    await journal.close();
  }
}

async function applyTasks(
  services: FleetRunPorts,
  work: FleetTasks,
  { journal, rules, view }: { readonly journal: RunJournal; readonly rules: FleetRules; readonly view: FleetRunView },
): Promise<FleetResult> {
  const { reporter } = view;
  const run = await openFleetRun(services, work.request, { ...work, dryRun: false, reporter });
  try {
    if (run.access !== null) requireSameServer(work, run.access);
    const result = await runFleet(run.members, rules, { ...journaled(view.ports, journal, services), claims: run.claims });
    view.close();
    await run.settle(result);
    view.done(result);
    return result;
  } finally {
    view.close();
    await run.close();
  }
}

/** Records hosts before they start and when they end. */
function journaled(ports: FleetPorts, journal: RunJournal, { clock }: Pick<FleetRunPorts, 'clock'>): FleetPorts {
  const time = (): string => clock.now().toISOString();
  return {
    ...ports,
    begins: async (host) => {
      await ports.begins?.(host);
      await journal.write({ event: 'host-began', time: time(), host });
    },
    ended: async (outcome) => {
      await ports.ended?.(outcome);
      const { host, status } = outcome;
      const problems = problemsOf([outcome]).map(formatProblem);
      await journal.write({ event: 'host-ended', time: time(), host, status, ...(problems.length === 0 ? {} : { problems }) });
    },
  };
}

/** Fleet file or plan, as the user named it. */
function retryCommandOf(planFile: string | undefined, file: string | undefined): string {
  const subject = planFile !== undefined ? [quoteShell(planFile)] : file === undefined ? [] : ['-f', quoteShell(file)];
  return ['kubeletadm apply', ...subject, '--retry failed'].join(' ');
}

async function lastRun(journals: RunJournals, { subject, file }: FleetTasks, plan: string | undefined): Promise<JournaledRun> {
  const last = await journals.latest(subject);
  if (last === null)
    throw usageError(
      `--retry failed: no earlier apply of ${plan ?? file} is recorded in ${journals.directory}`,
      'Run apply without --retry',
    );
  return last;
}

/** Hosts that the last run did not finish. */
function leftBy(last: JournaledRun, tasks: readonly FleetTask[]): readonly FleetTask[] {
  const names = new Set(hostsToRetry(last));
  return tasks.filter(({ host }) => names.has(host.name));
}

/** Unfinished hosts of the last run that the selection leaves out, without hosts that are no longer in the fleet file. */
function remainingHosts(
  last: JournaledRun,
  { selected, all }: { readonly selected: readonly string[]; readonly all: readonly PlannedHost[] },
): readonly string[] {
  const known = new Set(all.map(({ name }) => name));
  return hostsToRetry(last).filter((host) => known.has(host) && !selected.includes(host));
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
  throw new AppError({ code: 'PLAN_STALE', message, hint: 'Use a kubeconfig of the planned cluster, or plan again' }, { exitCode: 2 });
}
