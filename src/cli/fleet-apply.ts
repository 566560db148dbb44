import { type AppError, type ExitCode, formatProblem } from '../base/errors.ts';
import type { ReportEvent, Reporter } from '../base/reporter.ts';
import { joinLines } from '../base/text/styled.ts';
import { problemsOf } from '../fleet/run/fleet-failure.ts';
import { type ApplyFleetRequest, applyFleet, type NothingToApply } from '../fleet/use-cases/apply-fleet.ts';
import type { PlanToApprove } from '../fleet/use-cases/approve-plan.ts';
import { fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { canaryLine, clusterLine, planLines, planSummary, retryLine } from './fleet-report.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import type { RunReport } from './report/report-file.ts';
import { withReport } from './report/with-report.ts';
import { watchRun } from './watch-run.ts';

export interface FleetApplyRequest extends ApplyFleetRequest {
  /** JSON: one event per line. */
  readonly output: OutputRequest;
  /** The file of the HTML report; undefined: none. */
  readonly report: string | undefined;
}

/** `fleet apply [PLAN]`, `apply [PLAN]`. */
export async function runFleetApply(services: Services, request: FleetApplyRequest): Promise<ExitCode> {
  const subject = request.planFile ?? fleetFileOf(request.file);
  const { failure } = await withReport(services, { command: 'apply', file: request.report, subject }, async (report) => ({
    failure: await applyAndPrint(services, request, report),
  }));
  if (failure !== null) throw failure;
  return 0;
}

async function applyAndPrint(services: Services, request: FleetApplyRequest, report: RunReport | null): Promise<AppError | null> {
  const { output } = request;
  const shown = shownWarnings();
  return applyFleet(services, request, {
    warning: (problem) => services.output.stderr(`warning: ${formatProblem(problem)}\n`),
    nothing: (work) => {
      if (output.format !== 'json') services.output.stdout(nothingToDo(work));
    },
    approval: {
      obstacle: output.format === 'json' ? '-o json prints only events' : services.canAsk ? null : 'standard input is not a terminal',
      planning: () => {
        const watch = watchRun(services, output, { title: 'plan', reads: true, events: true });
        return { ...watch, ports: { ...watch.ports, reporterOf: (host) => shown.record(watch.ports.reporterOf(host)) } };
      },
      approve: (plan) => approve(services, plan, output.verbosity),
    },
    begin: (interruption, canary) => {
      const title = ['apply', request.planFile ?? request.file ?? ''].join(' ').trim();
      const watch = watchRun(services, output, { title, events: true, interruption });
      report?.useCanary(canary);
      const ports = { ...watch.ports, reporterOf: (host: string) => shown.omit(watch.ports.reporterOf(host)) };
      return {
        ...watch,
        ports: report?.record(ports) ?? ports,
        done: watch.showEnd,
      };
    },
  });
}

/** The warnings of hosts that were shown while the hosts were planned: the run does not repeat them. */
function shownWarnings() {
  const keys = new Set<string>();
  const keyOf = ({ host, phase, code, message }: ReportEvent): string => [host, phase, code, message].join('\0');
  return {
    record: (reporter: Reporter): Reporter => ({
      ...reporter,
      report: (event) => {
        if (event.level === 'warning') keys.add(keyOf(event));
        reporter.report(event);
      },
    }),
    omit: (reporter: Reporter): Reporter => ({
      ...reporter,
      report: (event) => {
        if (event.level !== 'warning' || !keys.has(keyOf(event))) reporter.report(event);
      },
    }),
  };
}

/** Shows the folded plan with its counts, and asks. */
async function approve(services: Services, { outcomes, canary, access }: PlanToApprove, verbosity: number): Promise<boolean> {
  const problems = problemsOf(outcomes).map((problem) => `not changed: ${formatProblem(problem)}`);
  const lines = planLines(outcomes, { origins: false, verbosity });
  services.output.stdout(joinLines([...clusterLine(access), ...lines, ...problems, ...canaryLine(canary), planSummary(outcomes)]));
  return (await services.confirm('Apply these changes? [y/N] ')) === true;
}

/** Limits the summary to hosts that the saved plan and the selection cover. */
function nothingToDo({ unplanned, unchanged, retry }: NothingToApply): string {
  if (retry === null && unplanned.length === 0) return 'Nothing to do.\n';
  if (retry === null)
    return unchanged === 0 ? '' : `Nothing to do on the ${unchanged === 1 ? '1 host' : `${unchanged} hosts`} that were planned.\n`;
  return `${retryLine(retry)}\n`;
}
