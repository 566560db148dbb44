import { onAbort } from '../base/abort.ts';
import { AppError, type ExitCode, type Problem } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { isLocalHost, targetName } from '../fleet/host-target.ts';
import type { FleetMember, FleetProgress, HostOutcome } from '../fleet/run/fleet.ts';
import { type HostsWorkflow, type OpenedCommand, runWorkflowOnHosts } from '../fleet/use-cases/run-workflow-on-hosts.ts';
import type { Change, Warning } from '../host/plan/change.ts';
import { planDocument, planIsEmpty } from '../host/plan/document.ts';
import type { WorkflowResult } from '../host/run-workflow.ts';
import { type InterruptionLog, interruptedMessage, interruptionLog, watchForcedExit } from './fleet-interruption.ts';
import { summaryLine } from './fleet-report.ts';
import { followHosts } from './follow-hosts.ts';
import type { Services } from './output/services.ts';
import { type PlanRequest, renderPlan } from './output/show-plan.ts';
import { showDuration, showRecap } from './recap.ts';

/** A run of one command over hosts, and its output options. */
interface HostsRun extends HostsWorkflow {
  /** The command, as the live display names it: `join`. */
  readonly title: string;
  readonly plan: PlanRequest;
  readonly reporter: Reporter;
  readonly warnings: readonly Warning[];
}

/**
 * Opens a command, runs it on its hosts and closes it.
 * @param command.title the command, as the live display names it: `join`
 * @param command.afterwards prints further results of the command, after these planned or applied changes
 */
export async function runOpened<Command extends OpenedCommand>(
  services: Services,
  plan: PlanRequest,
  command: {
    readonly title: string;
    readonly open: (reporter: Reporter) => Promise<Command>;
    readonly afterwards?: (opened: Command, changes: readonly Change[]) => void;
  },
): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const opened = await command.open(reporter);
  const { workflow, warnings } = opened;
  try {
    const { code, results } = await runOnHosts(services, { ...workflow, title: command.title, plan, reporter, warnings });
    command.afterwards?.(
      opened,
      results.flatMap(({ host }) => host.phases.flatMap((phase) => phase.plan.changes)),
    );
    return code;
  } finally {
    await opened.close();
  }
}

/**
 * Runs a workflow on the hosts, prints the plan (dry run) or the results. With
 * several hosts the output of each host stays together, and unchanged phases are shown with `-v`.
 */
export async function runOnHosts(services: Services, run: HostsRun): Promise<HostsRunResult> {
  for (const { code, message } of run.warnings) run.reporter.report({ level: 'warning', code, message });
  const several = run.targets.length > 1;
  const { verbosity, format } = run.plan;
  const title = [run.title, ...(several ? [] : run.targets.map((target) => (isLocalHost(target) ? '' : targetName(target))))]
    .join(' ')
    .trim();
  const follows = followHosts(services, run.reporter, { title, verbosity, applies: !run.run.dryRun, isSingle: !several });
  let interruption: InterruptionWatch | null = null;
  const { outcomes, results, failure } = await runWorkflowOnHosts(services, run, (members) => {
    const watch = watchInterruption(services, run, members);
    interruption = watch;
    return {
      reporterOf: (host) => watch.of(host, follows.of(host)),
      begins: async (host) => watch.began(host),
      ended: async (outcome) => {
        watch.ended(outcome);
        follows.ended(outcome);
      },
      progress: (progress) => {
        watch.progress(progress);
        follows.progress(progress);
      },
    };
  }).finally(() => {
    interruption?.close();
    follows.close();
  });
  const elapsedMs = services.clock.now().getTime() - follows.startedAt;
  const recap = several && !run.run.dryRun && format === 'text' ? { outcomes, stopped: null, retryCommand: null, elapsedMs } : null;
  if (recap !== null) showRecap(services, recap);
  const code = finish(services, run, { results, outcomes });
  if (recap !== null) showDuration(services, recap);
  if (failure === null) return { code, results };
  throw new AppError(failure.problems, { exitCode: failure.exitCode });
}

interface HostsRunResult {
  readonly code: ExitCode;
  readonly results: readonly WorkflowResult[];
}

interface InterruptionWatch extends Omit<InterruptionLog, 'lines'> {
  progress(progress: FleetProgress): void;
  close(): void;
}

/**
 * Reports a first interruption when several hosts run (a single host reports it itself). A second one reports
 * the state of each host.
 */
function watchInterruption(
  services: Services,
  { run: { dryRun }, reporter }: Pick<HostsRun, 'run' | 'reporter'>,
  members: readonly FleetMember[],
): InterruptionWatch {
  const hosts = interruptionLog(
    services.clock,
    members.map(({ name }) => name),
  );
  if (dryRun) return { ...hosts, progress: () => undefined, close: () => undefined };
  let changing: readonly string[] = [];
  const forget = onAbort(members.length > 1 ? services.signal : undefined, () =>
    reporter.report({ level: 'warning', code: 'INTERRUPTED', message: interruptedMessage(changing) }),
  );
  const removeExitListener = watchForcedExit(services, hosts, { next: 'To continue, rerun the same command.' });
  return {
    ...hosts,
    progress: (progress) => {
      changing = progress.changing;
    },
    close: () => {
      forget();
      removeExitListener();
    },
  };
}

function finish(
  services: Services,
  run: HostsRun,
  { results, outcomes }: { readonly results: readonly WorkflowResult[]; readonly outcomes: readonly HostOutcome[] },
): ExitCode {
  const { dryRun } = run.run;
  const { format, verbosity, showOrigin, failsIfChanged } = run.plan;
  const withOrigins = showOrigin ? results.map(({ host }) => host) : results.map(({ host: { origins: _, ...host } }) => host);
  const { skippedPhases } = run;
  const plan = {
    ...planDocument(withOrigins, [...run.warnings, ...results.flatMap((result) => result.warnings)], run.cluster),
    ...(skippedPhases === undefined ? {} : { skippedPhases }),
  };
  if (dryRun || format !== 'text') {
    const noops = outcomes.length === 1 || verbosity > 0;
    services.output.stdout(renderPlan(plan, format, { noops, verbosity }));
  } else if (outcomes.length > 1) services.output.stdout(`${summaryLine(outcomes)}\n`);
  else if (planIsEmpty(plan)) (services.programName === 'kubeadm' ? services.output.stderr : services.output.stdout)('Nothing to do.\n');
  const refusals: readonly Problem[] = results.flatMap((result) => result.refusals);
  if (refusals.length > 0) throw new AppError(refusals, { exitCode: 3 });
  return dryRun && failsIfChanged && !planIsEmpty(plan) ? 6 : 0;
}
