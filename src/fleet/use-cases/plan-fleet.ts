import { AppError, formatProblem, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { DEFAULT_ALLOWED } from '../../host/plan/impact.ts';
import type { ResolvedFleet } from '../file/model.ts';
import { selectHosts } from '../file/select.ts';
import { signatureFileOf } from '../plan/plan-signatures.ts';
import {
  PLAN_VALID_FOR_MS,
  type PlanContext,
  type PlanOutcome,
  type SavedPlan,
  SIGNED_PLAN_VALID_FOR_MS,
  savePlan,
} from '../plan/saved-plan.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import { type FleetPorts, type HostOutcome, runFleet } from '../run/fleet.ts';
import { fleetFailure, problemsOf, requireValidValues } from '../run/fleet-failure.ts';
import type { PlanToApprove } from './approve-plan.ts';
import { type FleetRunRequest, toPlan } from './fleet-request.ts';
import { canaryRules, fleetRules, plannedCanaries } from './fleet-rules.ts';
import { directoryOf, readValidFleet } from './load-fleet.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import { openFleetRun } from './open-fleet-run.ts';
import type { SavedPlanPorts } from './read-saved-plan.ts';

export interface PlanFleetRequest extends FleetRunRequest {
  readonly out: string | undefined;
  /** Create the document of the plan even if it is not saved. */
  readonly asDocument: boolean;
  /** The key that signs the saved plan, in the file FILE.sig; undefined: the plan is not signed. */
  readonly signingKey?: string | undefined;
  /** Time for which the plan may be applied; undefined: the default. */
  readonly validForMs: number | undefined;
}

/**
 * Plans the selected hosts of a fleet, and saves the plan to a file.
 * @returns whether a host has changes, and the problems of the hosts; null: all hosts are planned
 * @throws AppError with exit code 2 for an invalid file or selection, and for a plan that cannot be saved; errors of
 * opening the cluster
 */
export async function planFleet(
  services: FleetRunPorts & FleetFilePorts & Pick<SavedPlanPorts, 'planSignatures'>,
  given: PlanFleetRequest,
  view: {
    readonly reporter: Reporter;
    readonly ports: FleetPorts;
    /** Warnings about the fleet file, before the hosts are inspected. */
    warning(problem: Problem): void;
    /** All hosts are planned; nothing is saved yet. `document`: null if the request needs none. */
    planned(planned: PlanToApprove & { readonly document: SavedPlan | null }): void;
    saved(file: string, plan: SavedPlan, fleet: ResolvedFleet): void;
  },
) {
  const request = toPlan(given);
  const { out, asDocument, signingKey, validForMs } = request;
  const fleet = await readValidFleet(services, request);
  for (const warning of fleet.warnings) view.warning(warning);
  const hosts = selectHosts(fleet.hosts, request.selection);
  const rules = fleetRules(request, hosts.length);
  const canaries = canaryRules(request.rules, hosts, { selected: hosts });
  const { file, cluster } = fleet;
  const { reporter } = view;
  const tasks = hosts.map((host) => ({ host }));
  const run = await openFleetRun(services, request, { tasks, hosts: fleet.hosts, cluster, file, reporter });
  const { access } = run;
  try {
    if (access === null && out !== undefined) throw notToBeSaved();
    const result = await runFleet(run.members, rules, { ...view.ports, claims: run.claims });
    const { outcomes } = result;
    const canary = access === null ? [] : plannedCanaries(canaries, outcomes);
    const planned = hosts.map((host, i) => [host, outcomeOf(outcomes[i] as HostOutcome)] as const);
    const lifetime = {
      createdAt: services.clock.now(),
      validForMs: validForMs ?? (signingKey === undefined ? PLAN_VALID_FOR_MS : SIGNED_PLAN_VALID_FOR_MS),
    };
    const isChosen = canary.length > 0 || (hosts.length > 1 && canaries.canary === 0);
    const context = { ...contextOf(services, request, { fleet, access }), ...(isChosen ? { canary } : {}) };
    const document = !asDocument && out === undefined ? null : savePlan(context, planned, lifetime);
    view.planned({ outcomes, canary, access, document });
    requireValidValues(result);
    if (document !== null && out !== undefined) {
      const text = `${JSON.stringify(document)}\n`;
      // The signature first: a saved plan is never without the signature that was requested.
      if (signingKey !== undefined)
        await services.writeLocalFile(signatureFileOf(out), await (await services.planSignatures()).sign(text, signingKey));
      await services.writeLocalFile(out, text);
      view.saved(out, document, fleet);
    }
    return { isPending: outcomes.some(({ status }) => status === 'pending'), failure: fleetFailure(result, services) };
  } finally {
    await run.close();
  }
}

function notToBeSaved(): AppError {
  const message = 'cannot save a plan before the cluster exists, because the changes of the joining hosts are still unknown';
  return new AppError(
    { code: 'USAGE', message, hint: 'Apply the fleet file directly: kubeletadm apply -f FILE. Or run kubeletadm plan without --out' },
    { exitCode: 2 },
  );
}

function contextOf(
  services: FleetRunPorts,
  { takeOver, run: { podLoss, allow, ignorePreflightErrors } }: FleetRunRequest,
  { fleet, access }: { readonly fleet: ResolvedFleet; readonly access: FleetAccess | null },
): PlanContext {
  return {
    fleet: { file: fleet.file, directory: directoryOf(services, fleet.file), name: fleet.name },
    cluster: fleet.cluster,
    server: access?.apiServer.server ?? '',
    takeOver,
    ...(podLoss === 'warn' ? { allowPodLoss: true } : {}),
    allow: allow ?? DEFAULT_ALLOWED,
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
