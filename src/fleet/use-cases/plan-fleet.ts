import { AppError, formatProblem, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { toPlan } from '../../host/run-settings.ts';
import type { DrainForecastDocument } from '../../maintenance/forecast/forecast-document.ts';
import type { PlannedBatch } from '../../maintenance/next-step.ts';
import { formatAmount } from '../amount.ts';
import type { ResolvedFleet } from '../file/model.ts';
import { selectHosts } from '../file/select.ts';
import { signatureFileOf } from '../plan/plan-signatures.ts';
import {
  PLAN_VALID_FOR_MS,
  type PlanContext,
  type PlanOutcome,
  type SavedPlan,
  SIGNED_PLAN_VALID_FOR_MS,
  savedRun,
  savePlan,
} from '../plan/saved-plan.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import type { FleetPorts, FleetRules, HostOutcome } from '../run/fleet.ts';
import { fleetFailure, problemsOf, requireValidValues } from '../run/fleet-failure.ts';
import { planHosts } from '../run/plan-hosts.ts';
import { hasOrder, plannedBatches } from '../run/planned-batches.ts';
import type { PlanToApprove } from './approve-plan.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { canaryRules, fleetRules, plannedCanaries } from './fleet-rules.ts';
import { directoryOf, readValidFleet } from './load-fleet.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import { openFleetRun } from './open-fleet-run.ts';
import { chooseRollout, openGates } from './open-gates.ts';
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
    planned(planned: PlanToApprove & { readonly document: SavedPlan | null; readonly drainForecast: DrainForecastDocument | null }): void;
    saved(file: string, plan: SavedPlan, fleet: ResolvedFleet): void;
  },
) {
  const request = toPlan(given);
  const { out, asDocument, signingKey, validForMs } = request;
  const fleet = await readValidFleet(services, request);
  for (const warning of fleet.warnings) view.warning(warning);
  const hosts = selectHosts(fleet.hosts, request.selection);
  const canaries = canaryRules(request.rules, hosts, { selected: hosts });
  const rules = { ...fleetRules(request.rules, hosts.length), ...canaries };
  const { file, cluster } = fleet;
  const { reporter } = view;
  const tasks = hosts.map((host) => ({ host }));
  const run = await openFleetRun(services, request, { tasks, hosts: fleet.hosts, cluster, file, reporter });
  const { access } = run;
  try {
    const rollout = await chooseRollout(services, request.rules.gates, { declared: fleet.rollout, reverts: false });
    openGates(services, { rollout, cluster: access?.cluster ?? null, reporter });
    if (access === null && out !== undefined) throw notToBeSaved();
    const result = await planHosts(run.members, rules, { ...view.ports, claims: run.claims });
    const { outcomes } = result;
    const canary = access === null ? [] : plannedCanaries(canaries, outcomes);
    const planned = hosts.map((host, i) => [host, outcomeOf(outcomes[i] as HostOutcome)] as const);
    const lifetime = {
      createdAt: services.clock.now(),
      validForMs: validForMs ?? (signingKey === undefined ? PLAN_VALID_FOR_MS : SIGNED_PLAN_VALID_FOR_MS),
    };
    const batches = access === null ? [] : plannedBatches(run.members, outcomes, rules);
    const isChosen = canary.length > 0 || (hosts.length > 1 && canaries.canary === 0);
    const chosen = { ...(isChosen ? { canary } : {}), ...orderOf(rules, batches), ...savedRollout(rollout) };
    const context = { ...contextOf(services, request, { fleet, access }), ...chosen };
    const document = !asDocument && out === undefined ? null : savePlan(context, planned, lifetime);
    view.planned({ outcomes, canary, batches, access, document, drainForecast: await run.forecast(outcomes) });
    requireValidValues(result);
    if (document !== null && out !== undefined) {
      await writePlan(services, document, { out, signingKey });
      view.saved(out, document, fleet);
    }
    return { isPending: outcomes.some(({ status }) => status === 'pending'), failure: fleetFailure(result, services) };
  } finally {
    await run.close();
  }
}

/** The order of a saved plan, and its batches if they are more than a canary and the others. */
function orderOf({ order }: Pick<FleetRules, 'order'>, batches: readonly PlannedBatch[]): Pick<PlanContext, 'order' | 'batches'> {
  return {
    ...(order === undefined ? {} : { order }),
    ...(hasOrder(batches) ? { batches: batches.map(({ names }) => names) } : {}),
  };
}

async function writePlan(
  services: FleetRunPorts & Pick<SavedPlanPorts, 'planSignatures'>,
  document: SavedPlan,
  { out, signingKey }: { readonly out: string; readonly signingKey: string | undefined },
): Promise<void> {
  const text = `${JSON.stringify(document)}\n`;
  // The signature first: a saved plan is never without the signature that was requested.
  if (signingKey !== undefined)
    await services.writeLocalFile(signatureFileOf(out), await (await services.planSignatures()).sign(text, signingKey));
  await services.writeLocalFile(out, text);
}

/** The gates and windows of a saved plan; whether windows are ignored is an option of apply. */
function savedRollout(rollout: Awaited<ReturnType<typeof chooseRollout>>): Pick<PlanContext, 'rollout'> {
  if (rollout === null) return {};
  const { ignoresWindow: _, ...saved } = rollout;
  return { rollout: saved };
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
  { takeOver, rules: { maxUnavailable }, run }: FleetRunRequest,
  { fleet, access }: { readonly fleet: ResolvedFleet; readonly access: FleetAccess | null },
): PlanContext {
  return {
    fleet: { file: fleet.file, directory: directoryOf(services, fleet.file), name: fleet.name },
    cluster: fleet.cluster,
    server: access?.apiServer.server ?? '',
    takeOver,
    ...savedRun(run),
    ...(maxUnavailable === null ? {} : { maxUnavailable: formatAmount(maxUnavailable) }),
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
