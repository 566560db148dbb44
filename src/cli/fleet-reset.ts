import { type ExitCode, formatProblem } from '../base/errors.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import { type ResetFleetRequest, type ResetQuestion, resetFleet } from '../fleet/use-cases/reset-fleet.ts';
import { planDocument } from '../host/plan/document.ts';
import { countOutcomes } from '../maintenance/member-outcome.ts';
import { planLines, retryLine, summaryLine } from './fleet-report.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import { renderPlan } from './output/show-plan.ts';
import { showDuration, showRecap } from './recap.ts';

export interface FleetResetRequest extends ResetFleetRequest {
  /** JSON: the plan of a dry run, otherwise one event per line. */
  readonly output: OutputRequest;
  /** Exit code 6 for a dry run with pending changes. */
  readonly failsIfChanged: boolean;
}

/** `fleet reset`. */
export async function runFleetReset(services: Services, request: FleetResetRequest): Promise<ExitCode> {
  const {
    output,
    run: { dryRun },
  } = request;
  const { format, verbosity } = output;
  const { isPending, failure } = await resetFleet(services, request, {
    warning: (problem) => services.output.stderr(`warning: ${formatProblem(problem)}\n`),
    nothing: (retry) => {
      if (format === 'text') services.output.stdout(`${retryLine(retry)}\n`);
    },
    confirm: (question) => services.confirm(questionText(question)),
    begin: (interruption) => {
      const title = 'fleet reset';
      const watch = watchFleet(services, output, dryRun ? { title, reads: true } : { title, events: true, interruption });
      return {
        ...watch,
        done: ({ outcomes, stopped }, cluster) => {
          const message = summaryLine(outcomes);
          if (dryRun && format !== 'text') {
            const plans = outcomes.flatMap(({ plan }) => plan ?? []);
            const warnings = plans.flatMap((plan) => plan.warnings);
            const document = planDocument(
              plans.map(({ host }) => host),
              warnings,
              cluster,
            );
            services.output.stdout(renderPlan(document, format));
          } else if (dryRun) services.output.stdout(joinLines([...planLines(outcomes, { origins: false, verbosity }), message]));
          else if (watch.asEvents)
            watch.reporter.report({
              level: 'info',
              code: 'RUN_ENDED',
              message,
              data: { ...countOutcomes(outcomes.map(({ status }) => status)) },
            });
          else {
            const elapsedMs = services.clock.now().getTime() - watch.startedAt;
            const recap = { outcomes, stopped, retryCommand: interruption.retryCommand, elapsedMs };
            showRecap(services, recap);
            services.output.stdout(`${message}\n`);
            showDuration(services, recap);
          }
        },
      };
    },
  });
  if (failure !== null) throw failure;
  return isPending && request.failsIfChanged ? 6 : 0;
}

function questionText({ hosts, orphans }: ResetQuestion): string {
  const what = hosts.length === 1 ? hosts[0] : `${hosts.length} hosts (${namesText(hosts)})`;
  const left = orphans.length === 0 ? '' : ` No control plane remains for ${namesText(orphans)}.`;
  return `Reset ${what}? All changes made by init or join are reverted.${left} [y/N] `;
}
