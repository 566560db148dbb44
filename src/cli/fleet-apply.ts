import { AppError, type ExitCode, formatProblem, isAppError, usageError } from '../base/errors.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { type FleetResult, type FleetRules, runFleet } from '../fleet/fleet.ts';
import { hostsToRetry, type JournaledRun } from '../fleet/journal.ts';
import type { RunJournal, RunJournals } from '../fleet/run-journals.ts';
import type { PlannedHost } from '../fleet/saved-plan.ts';
import type { FleetTask } from '../fleet/use-cases/fleet-members.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { fleetRules } from '../fleet/use-cases/fleet-rules.ts';
import { type FleetTasks, readTasks } from '../fleet/use-cases/fleet-tasks.ts';
import type { FleetAccess } from '../fleet/use-cases/open-fleet-cluster.ts';
import { openFleetRun } from '../fleet/use-cases/open-fleet-run.ts';
import { countByStatus, exitOf, summaryLine } from './fleet-report.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './services.ts';
import type { OutputRequest } from './show-document.ts';

export interface FleetApplyRequest {
  /** A saved plan; undefined: the fleet file is applied. */
  readonly planFile: string | undefined;
  readonly run: FleetRunRequest;
  /** Only the hosts that the last run did not finish. */
  readonly retriesFailed: boolean;
  /** JSON: one event per line. */
  readonly output: OutputRequest;
}

/** `fleet apply [PLAN]`, `apply [PLAN]`. */
export async function runFleetApply(services: Services, request: FleetApplyRequest): Promise<ExitCode> {
  const { planFile, output } = request;
  const work = await readTasks(services, planFile, request.run);
  for (const warning of work.warnings) services.output.stderr(`warning: ${formatProblem(warning)}\n`);
  const { subject } = work;
  const journals = await services.runJournals();
  const last = request.retriesFailed ? await lastRun(journals, work, planFile) : null;
  const tasks = last === null ? work.tasks : leftBy(last, work.tasks);
  const rules = fleetRules(work.request.rules, { total: tasks.length, dryRun: false });
  if (tasks.length === 0) {
    if (output.format !== 'json') services.output.stdout(nothingToDo(work, last));
    if (work.unplanned.length > 0) throw new AppError(work.unplanned, { exitCode: 4 });
    return 0;
  }
  const started = services.clock.now();
  const journal = await journals.begin(started);
  try {
    const hosts = tasks.map(({ host }) => host.name);
    const remaining = last === null ? [] : remainingHosts(last, { selected: hosts, all: work.hosts });
    const entry = { event: 'run-started', time: started.toISOString(), command: 'apply', subject, hosts } as const;
    await journal.write({ ...entry, ...(remaining.length === 0 ? {} : { remaining }) });
    const result = await applyTasks(services, { ...work, tasks, planFile }, { journal, rules, output });
    const exit = (): ExitCode => withUnplanned(work, () => exitOf(services, result, 0));
    await journal.write({ event: 'run-ended', time: services.clock.now().toISOString(), exitCode: exitCodeOf(exit) });
    return exit();
  } finally {
    await journal.close();
  }
}

async function applyTasks(
  services: Services,
  work: FleetTasks & { readonly planFile: string | undefined },
  { journal, rules, output }: { readonly journal: RunJournal; readonly rules: FleetRules; readonly output: OutputRequest },
): Promise<FleetResult> {
  const { request } = work;
  const interruption = { hosts: work.tasks.map(({ host }) => host.name), retryCommand: retryCommandOf(work.planFile, request.file) };
  const watch = watchFleet(services, output, { journal, events: true, interruption });
  const { reporter } = watch;
  const run = await openFleetRun(services, request, { ...work, dryRun: false, reporter });
  try {
    if (run.access !== null) requireSameServer(work, run.access);
    const result = await runFleet(run.members, rules, { ...watch.ports, claims: run.claims });
    watch.close();
    await run.settle(result);
    const message = summaryLine(result.outcomes);
    if (watch.asEvents) reporter.report({ level: 'info', code: 'RUN_ENDED', message, data: { ...countByStatus(result.outcomes) } });
    else services.output.stdout(`${message}\n`);
    return result;
  } finally {
    watch.close();
    await run.close();
  }
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

/** Limits the summary to hosts that the saved plan and the selection cover. */
function nothingToDo({ unplanned, unchanged }: FleetTasks, last: JournaledRun | null): string {
  if (last === null && unplanned.length === 0) return 'Nothing to do.\n';
  if (last === null)
    return unchanged === 0 ? '' : `Nothing to do on the ${unchanged === 1 ? '1 host' : `${unchanged} hosts`} that were planned.\n`;
  const left = hostsToRetry(last);
  // The last run may have covered other hosts than the user expects.
  if (left.length === 0) return `Nothing to do: the last run, of ${last.startedAt} over ${namesText(last.hosts)}, left nothing undone.\n`;
  return `Nothing to do on the selected hosts: the last run, of ${last.startedAt}, left ${namesText(left)} unfinished.\n`;
}

/** The exit code of a run; hosts that the saved plan does not cover are failures too. */
function withUnplanned({ unplanned }: FleetTasks, exit: () => ExitCode): ExitCode {
  if (unplanned.length === 0) return exit();
  try {
    exit();
  } catch (error) {
    if (!isAppError(error)) throw error;
    const exitCode = error.exitCode > 128 ? error.exitCode : 4;
    throw new AppError([...unplanned, ...error.problems], { exitCode, cause: error });
  }
  throw new AppError(unplanned, { exitCode: 4 });
}

function exitCodeOf(exit: () => ExitCode): ExitCode {
  try {
    return exit();
  } catch (error) {
    if (isAppError(error)) return error.exitCode;
    throw error;
  }
}

function requireSameServer({ server }: FleetTasks, { apiServer }: FleetAccess): void {
  if (server === null || server === apiServer.server) return;
  const message = `the plan was made with ${server}, and this is ${apiServer.server}`;
  throw new AppError({ code: 'PLAN_STALE', message, hint: 'Give the credentials of that cluster, or plan again' }, { exitCode: 2 });
}
