import { type ExitCode, formatProblem } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import type { FleetCluster } from '../fleet/file/model.ts';
import { signatureFileOf } from '../fleet/plan/plan-signatures.ts';
import type { SavedPlan } from '../fleet/plan/saved-plan.ts';
import { fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { type PlanFleetRequest, type PlanFleetResult, planFleet } from '../fleet/use-cases/plan-fleet.ts';
import { canaryLine, clusterLine, planLines, planSummary } from './fleet-report.ts';
import type { Services } from './output/services.ts';
import { renderDocument } from './output/show-document.ts';
import type { PlanRequest } from './output/show-plan.ts';
import type { RunReport } from './report/report-file.ts';
import { withReport } from './report/with-report.ts';
import { watchRun } from './watch-run.ts';

export interface FleetPlanRequest extends Omit<PlanFleetRequest, 'asDocument'> {
  readonly output: PlanRequest;
  /** The file of the HTML report; undefined: none. */
  readonly report: string | undefined;
}

/** `fleet plan`, `plan`. */
export async function runFleetPlan(services: Services, request: FleetPlanRequest): Promise<ExitCode> {
  const { output: plan, report } = request;
  const { isPending, failure } = await withReport(
    services,
    { command: 'plan', file: report, subject: fleetFileOf(request.file) },
    (recorded) => planAndPrint(services, request, recorded),
  );
  if (failure !== null) throw failure;
  return isPending && plan.failsIfChanged ? 6 : 0;
}

async function planAndPrint(services: Services, request: FleetPlanRequest, report: RunReport | null): Promise<PlanFleetResult> {
  const { output: plan, signingKey } = request;
  const watch = watchRun(services, plan, { title: 'plan', reads: true });
  return planFleet(
    services,
    { ...request, asDocument: plan.format !== 'text' },
    {
      ...watch,
      ports: report?.record(watch.ports) ?? watch.ports,
      warning: (problem) => services.output.stderr(`warning: ${formatProblem(problem)}\n`),
      planned: ({ outcomes, canary, access, document }) => {
        watch.close();
        if (access !== null) report?.useCluster(access.cluster);
        if (document !== null && plan.format !== 'text') services.output.stdout(renderDocument(document, plan.format));
        else {
          const lines = planLines(outcomes, { origins: plan.showOrigin, verbosity: plan.verbosity });
          services.output.stdout(
            joinLines([...(lines.length === 0 ? [] : clusterLine(access)), ...lines, ...canaryLine(canary), planSummary(outcomes)]),
          );
        }
      },
      saved: (file, saved, { cluster }) => {
        services.output.stderr(`${savedLine(file, saved, cluster)}\n`);
        if (signingKey !== undefined) services.output.stderr(`signed with ${signingKey}: ${signatureFileOf(file)}\n`);
      },
    },
  ).finally(() => watch.close());
}

/** Reports the source of the secrets, which the plan does not contain. */
function savedLine(file: string, { id, hosts, validity }: SavedPlan, { token }: FleetCluster): string {
  const pending = hosts.filter(({ status }) => status === 'pending').length;
  const source = token === null ? 'created' : 'env' in token ? `read from ${token.env}` : `read from ${token.file}`;
  return `saved ${file}: ${pending} ${pending === 1 ? 'host' : 'hosts'} to change, plan ID ${id}, valid until ${validity.expiresAt}. The file contains no secrets; apply uses a bootstrap token that is ${source} at that time`;
}
