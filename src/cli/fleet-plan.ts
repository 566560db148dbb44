import { AppError, type ExitCode, formatProblem } from '../base/errors.ts';
import { joinLines, styled, type Text } from '../base/text/styled.ts';
import { type HostOutcome, runFleet } from '../fleet/fleet.ts';
import { fleetFailure, problemsOf } from '../fleet/fleet-failure.ts';
import type { FleetCluster, ResolvedFleet } from '../fleet/model.ts';
import { type PlanContext, type PlanOutcome, type SavedPlan, savePlan } from '../fleet/saved-plan.ts';
import { selectHosts } from '../fleet/select.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { fleetRules } from '../fleet/use-cases/fleet-rules.ts';
import { directoryOf, readFleet } from '../fleet/use-cases/load-fleet.ts';
import type { FleetAccess } from '../fleet/use-cases/open-fleet-cluster.ts';
import { openFleetRun } from '../fleet/use-cases/open-fleet-run.ts';
import { formatClusterName } from '../host/plan/document.ts';
import { planLines, summaryLine } from './fleet-report.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './services.ts';
import { renderDocument } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

export interface FleetPlanRequest {
  readonly run: FleetRunRequest;
  readonly output: PlanRequest;
  /** The file that the plan is saved to; undefined: none. */
  readonly out: string | undefined;
}

/** `fleet plan`, `plan`. */
export async function runFleetPlan(services: Services, { run: request, output: plan, out }: FleetPlanRequest): Promise<ExitCode> {
  const watch = watchFleet(services, plan, { reads: true });
  const { reporter } = watch;
  const fleet = await readFleet(services, request);
  for (const warning of fleet.warnings) services.output.stderr(`warning: ${formatProblem(warning)}\n`);
  const hosts = selectHosts(fleet.hosts, request.selection);
  const rules = fleetRules(request.rules, { total: hosts.length, dryRun: true });
  const { file, cluster } = fleet;
  const tasks = hosts.map((host) => ({ host }));
  const input = { tasks, hosts: fleet.hosts, cluster, file, directory: directoryOf(services, file), dryRun: true, reporter };
  const run = await openFleetRun(services, request, input);
  const { access } = run;
  try {
    if (access === null && out !== undefined) throw notToBeSaved();
    const result = await runFleet(run.members, rules, { ...watch.ports, claims: run.claims });
    watch.close();
    const planned = hosts.map((host, i) => [host, outcomeOf(result.outcomes[i] as HostOutcome)] as const);
    const saved = plan.format === 'text' && out === undefined ? null : savePlan(contextOf(services, request, { fleet, access }), planned);
    if (saved !== null && plan.format !== 'text') services.output.stdout(renderDocument(saved, plan.format));
    else {
      const lines = planLines(result.outcomes, { origins: plan.showOrigin, verbosity: plan.verbosity });
      services.output.stdout(joinLines([...(lines.length === 0 ? [] : clusterLine(access)), ...lines, summaryLine(result.outcomes)]));
    }
    if (saved !== null && out !== undefined) {
      await services.writeLocalFile(out, `${JSON.stringify(saved)}\n`);
      services.output.stderr(`${savedLine(out, saved, fleet.cluster)}\n`);
    }
    const pending = result.outcomes.some(({ status }) => status === 'pending');
    const failure = fleetFailure(result, services);
    if (failure !== null) throw failure;
    return pending && plan.failsIfChanged ? 6 : 0;
  } finally {
    watch.close();
    await run.close();
  }
}

/** Which cluster the changes are for. */
function clusterLine(access: FleetAccess | null): readonly Text[] {
  return access === null ? [] : [[styled('bold', 'cluster'), ` ${formatClusterName(access.cluster)}`]];
}

function notToBeSaved(): AppError {
  const message = 'the cluster does not exist yet: the changes of the hosts that join it are unknown and cannot be saved';
  return new AppError({ code: 'USAGE', message, hint: 'Apply the fleet file directly, or run plan without --out' }, { exitCode: 2 });
}

function contextOf(
  services: Services,
  { takeOver, ignorePreflightErrors }: FleetRunRequest,
  { fleet, access }: { readonly fleet: ResolvedFleet; readonly access: FleetAccess | null },
): PlanContext {
  return {
    fleet: { file: fleet.file, directory: directoryOf(services, fleet.file), name: fleet.name },
    cluster: fleet.cluster,
    server: access?.apiServer.server ?? '',
    takeOver,
    ignorePreflightErrors,
  };
}

function outcomeOf(outcome: HostOutcome): PlanOutcome {
  const { status, plan } = outcome;
  const problems = problemsOf([outcome]).map(formatProblem);
  switch (status) {
    case 'pending':
    case 'unchanged':
    case 'unreachable':
    case 'interrupted':
      return { status, plan: plan?.host ?? null, problems };
    default:
      return { status: 'refused', plan: plan?.host ?? null, problems };
  }
}

/** Reports the source of the secrets, which the plan does not contain. */
function savedLine(file: string, { id, hosts }: SavedPlan, { token }: FleetCluster): string {
  const pending = hosts.filter(({ status }) => status === 'pending').length;
  const source = token === null ? 'created' : 'env' in token ? `read from ${token.env}` : `read from ${token.file}`;
  return `saved ${file}, ${pending} ${pending === 1 ? 'host' : 'hosts'} to change, ${id}. The file contains no secrets; a bootstrap token is ${source} during apply`;
}
