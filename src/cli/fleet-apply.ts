import { type ExitCode, formatProblem } from '../base/errors.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { type ApplyFleetRequest, applyFleet, type NothingToApply } from '../fleet/use-cases/apply-fleet.ts';
import { countByStatus, summaryLine } from './fleet-report.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './services.ts';
import type { OutputRequest } from './show-document.ts';

export interface FleetApplyRequest extends ApplyFleetRequest {
  /** JSON: one event per line. */
  readonly output: OutputRequest;
}

/** `fleet apply [PLAN]`, `apply [PLAN]`. */
export async function runFleetApply(services: Services, request: FleetApplyRequest): Promise<ExitCode> {
  const { output } = request;
  const failure = await applyFleet(services, request, {
    warning: (problem) => services.output.stderr(`warning: ${formatProblem(problem)}\n`),
    nothing: (work) => {
      if (output.format !== 'json') services.output.stdout(nothingToDo(work));
    },
    begin: (interruption) => {
      const watch = watchFleet(services, output, { events: true, interruption });
      return {
        ...watch,
        done: ({ outcomes }) => {
          const message = summaryLine(outcomes);
          if (watch.asEvents) watch.reporter.report({ level: 'info', code: 'RUN_ENDED', message, data: { ...countByStatus(outcomes) } });
          else services.output.stdout(`${message}\n`);
        },
      };
    },
  });
  if (failure !== null) throw failure;
  return 0;
}

/** Limits the summary to hosts that the saved plan and the selection cover. */
function nothingToDo({ unplanned, unchanged, retry }: NothingToApply): string {
  if (retry === null && unplanned.length === 0) return 'Nothing to do.\n';
  if (retry === null)
    return unchanged === 0 ? '' : `Nothing to do on the ${unchanged === 1 ? '1 host' : `${unchanged} hosts`} that were planned.\n`;
  const { hosts, last } = retry;
  // The last run may have covered other hosts than the user expects.
  if (hosts.length === 0)
    return `Nothing to do: no host to retry; the last run, of ${last.startedAt} over ${namesText(last.hosts)}, is complete.\n`;
  return `Nothing to do on the selected hosts: earlier runs, the last of ${last.startedAt}, left ${namesText(hosts)} unfinished.\n`;
}
