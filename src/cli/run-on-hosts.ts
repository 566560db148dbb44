import { type ExitCode, formatProblem } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { joinLines, type Text } from '../base/text/styled.ts';
import { isLocalHost, targetName } from '../fleet/host-target.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import { problemsOf } from '../fleet/run/fleet-failure.ts';
import { runApproved } from '../fleet/use-cases/approve-hosts.ts';
import { fleetRules } from '../fleet/use-cases/fleet-rules.ts';
import {
  type CommandScope,
  closingOpened,
  type HostsCommand,
  type HostsResult,
  type HostsSettings,
  isShown,
  runTargets,
} from '../fleet/use-cases/run-hosts.ts';
import type { Change } from '../host/plan/change.ts';
import { hasChangesOrDeferred, planDocument, planIsEmpty } from '../host/plan/document.ts';
import type { WorkflowResult } from '../host/run-workflow.ts';
import type { Services } from './output/services.ts';
import { type PlanRequest, renderPlan, requireTerminal, showPlanText, type WithPlan } from './output/show-plan.ts';
import { shownBefore } from './output/shown-before.ts';
import type { RunPage } from './report/run-page.ts';
import type { ShownRun } from './report/run-source.ts';
import { type RunWatch, watchRun } from './watch-run.ts';

/**
 * Opens a command, runs it on its hosts, prints the plan (dry run) or the results, and closes what it opened. With
 * several hosts the output of each host stays together, and unchanged phases are shown with `-v`.
 * @param command.title the command, as the live display names it: `join`
 * @param command.afterwards prints further results of a command that has changed its hosts
 * @param command.page shows the run; null: none
 * @param command.applied prints them as text
 */
export async function runOnHosts<Command extends HostsCommand>(
  services: Services,
  request: WithPlan<HostsSettings>,
  {
    title,
    approval,
    open,
    afterwards,
    applied,
    page = null,
  }: {
    readonly title: string;
    /** Asks before the hosts are changed. Absent: the command does not ask, or has asked already. */
    readonly approval?: { readonly question: string } | undefined;
    readonly open: (scope: CommandScope) => Promise<Command>;
    readonly afterwards?: (command: Command) => void | Promise<void>;
    readonly applied?: (
      command: Command,
      done: { readonly results: readonly WorkflowResult[]; readonly changes: readonly Change[] },
    ) => void;
    readonly page?: RunPage | null;
  },
): Promise<ExitCode> {
  const { plan: output } = request;
  const shown = services.reporter({ verbosity: output.verbosity, format: 'text' });
  const reporter = page === null ? shown : page.namingCluster(shown);
  return closingOpened(async (opened) => {
    const command = await open({ reporter, opened });
    for (const { code, message } of command.warnings) reporter.report({ level: 'warning', code, message });
    const { targets, run } = command;
    const isSingle = targets.length <= 1;
    const subject = isSingle ? targets.map((target) => (isLocalHost(target) ? '' : targetName(target))) : [];
    const watchAs = (reads: boolean, own: Reporter): RunWatch =>
      watchRun(services, output, {
        title: [title, ...subject].join(' ').trim(),
        reporter: own,
        reads,
        isSingle,
        interruption: reads ? undefined : { hosts: targets.map(targetName), retryCommand: null },
        page: page === null || reads !== run.dryRun ? null : { of: page, command: title, ...shownTargets(command, request) },
      });
    const { result, watch } = await runWatched(services, command, request, { title, approval, reporter, watchAs });
    const { outcomes, failure } = result;
    const results = outcomes.flatMap((outcome) => (outcome.plan !== null && isShown(outcome, run) ? [outcome.plan] : []));
    if (isSingle && failure !== null && results.length === 0) throw failure;
    const plan = documentOf(command, { ...result, results }, output);
    if (run.dryRun || output.format !== 'text') {
      const lines = isSingle || output.format !== 'text' ? undefined : await linesOfHosts(results, result, output);
      showPlanText(services.output, renderPlan(plan, output, lines), output);
    } else if (!isSingle) watch.showEnd(result);
    else if (planIsEmpty(plan)) (services.programName === 'kubeadm' ? services.output.stderr : services.output.stdout)('Nothing to do.\n');
    if (failure !== null) throw failure;
    if (run.dryRun) return output.failsIfChanged && !planIsEmpty(plan) ? 6 : 0;
    await afterwards?.(command);
    if (output.format === 'text')
      applied?.(command, { results, changes: results.flatMap(({ host }) => host.phases.flatMap((phase) => phase.plan.changes)) });
    return 0;
  });
}

/** The plans of several hosts, equal ones together, and the order in which the hosts would be changed. */
async function linesOfHosts(
  results: readonly WorkflowResult[],
  { batches }: Pick<HostsResult, 'batches'>,
  output: PlanRequest,
): Promise<readonly Text[]> {
  const { foldedPlanLines, orderLine } = await import('./fleet-report.ts');
  return [...foldedPlanLines(results.map(({ host }) => host).filter(hasChangesOrDeferred), output), ...orderLine(batches)];
}

/** The hosts as their page shows them. */
function shownTargets({ targets, run }: HostsCommand, { rules }: HostsSettings): Omit<ShownRun, 'command'> {
  const canary = rules === undefined ? 0 : fleetRules(rules, targets.length).canary;
  return { state: run.dryRun ? 'planning' : 'changing', hosts: targets.map(targetName), canary };
}

/** Runs the command, after the operator has approved its plan if it asks. */
async function runWatched(
  services: Services,
  command: HostsCommand,
  request: WithPlan<HostsSettings>,
  {
    title,
    approval,
    reporter,
    watchAs,
  }: {
    readonly title: string;
    readonly approval: { readonly question: string } | undefined;
    readonly reporter: Reporter;
    readonly watchAs: (reads: boolean, own: Reporter) => RunWatch;
  },
) {
  const { run } = command;
  const { plan: output } = request;
  if (approval === undefined || run.dryRun) {
    const watch = watchAs(run.dryRun, reporter);
    return { watch, result: await runTargets(services, command, request, withReporter(watch)).finally(() => watch.close()) };
  }
  requireTerminal(services, output, title);
  const shown = shownBefore();
  const planning = watchAs(true, shown.record(reporter));
  let watch = planning;
  const result = await runApproved(services, command, request, {
    title,
    planning: withReporter(planning),
    approve: (outcomes) => {
      planning.close();
      return approve(services, outcomes, { ...approval, output });
    },
    applying: () => {
      watch = watchAs(false, shown.omit(reporter));
      return withReporter(watch);
    },
  }).finally(() => watch.close());
  return { watch, result };
}

function withReporter({ ports, reporter }: RunWatch) {
  return { ...ports, reporter };
}

/** Shows the plan with its counts, and asks. */
async function approve(
  services: Services,
  outcomes: readonly HostOutcome[],
  { question, output }: { readonly question: string; readonly output: PlanRequest },
): Promise<boolean> {
  const { foldedLines, planSummary } = await import('./fleet-report.ts');
  const problems = problemsOf(outcomes).map((problem) => `not changed: ${formatProblem(problem)}`);
  services.output.stdout(joinLines([...foldedLines(outcomes, output), ...problems, planSummary(outcomes)]));
  return (await services.confirm(`${question} [y/N] `)) === true;
}

function documentOf(
  { warnings, cluster, skippedPhases, changesNoHost = false }: HostsCommand,
  { results, batches, drainForecast }: { readonly results: readonly WorkflowResult[] } & Pick<HostsResult, 'batches' | 'drainForecast'>,
  { showOrigin }: Pick<PlanRequest, 'showOrigin'>,
) {
  const hosts = results.map(({ host: { origins, ...host } }) => (showOrigin && origins !== undefined ? { ...host, origins } : host));
  const inOrder = batches.length > 1 ? { batches: batches.map(({ names }) => names) } : {};
  const document = planDocument(hosts, [...warnings, ...results.flatMap((result) => result.warnings)], cluster);
  return {
    ...document,
    ...(changesNoHost ? { hosts: [] } : {}),
    ...(skippedPhases === undefined ? {} : { skippedPhases }),
    ...inOrder,
    ...(drainForecast === null ? {} : { drainForecast }),
  };
}
