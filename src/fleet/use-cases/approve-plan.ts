import { declined, unlessRefused, usageError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import { type HostChanges, sharedChangesOf } from '../../host/plan/fold.ts';
import { diffEqualTextsOnce } from '../../host/plan/text-diff.ts';
import { toPlan } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import { nodeRef } from '../../maintenance/drain/hold.ts';
import type { PlannedBatch } from '../../maintenance/next-step.ts';
import { operationsOf } from '../plan/operations.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { FleetPorts, FleetResult, HostOutcome } from '../run/fleet.ts';
import { fleetFailure, requireValidValues } from '../run/fleet-failure.ts';
import { planHosts } from '../run/plan-hosts.ts';
import { plannedBatches } from '../run/planned-batches.ts';
import type { ApprovedOperations } from './approved-member.ts';
import type { FleetTask } from './fleet-members.ts';
import { type canaryRules, fleetRules, plannedCanaries } from './fleet-rules.ts';
import type { FleetTasks } from './fleet-tasks.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import { openFleetRun } from './open-fleet-run.ts';

export interface PlanToApprove {
  readonly outcomes: readonly HostOutcome[];
  /** The hosts that are changed first. */
  readonly canary: readonly string[];
  /** The hosts to change in their order. */
  readonly batches: readonly PlannedBatch[];
  /** Null: the first control plane still has to bootstrap the cluster. */
  readonly access: FleetAccess | null;
}

/** Asks the operator between planning and applying. */
export interface Approval {
  /** The reason why the operator cannot be asked, as a clause; null: the operator can be asked. */
  readonly obstacle: string | null;
  /** An observer of the planning of these hosts. */
  planning(hosts: readonly string[]): { readonly reporter: Reporter; readonly ports: FleetPorts; close(): void };
  /** Shows the plan, and asks. Called only if a host has changes, or the run bootstraps a cluster. */
  approve(plan: PlanToApprove): Promise<boolean>;
}

export interface ApprovedTasks {
  /** The hosts to change, each with its approved operations. */
  readonly tasks: readonly FleetTask[];
  /** All hosts as planned, in the order of the run; empty: the results of the run are those of all hosts. */
  readonly outcomes: readonly HostOutcome[];
}

/**
 * Refuses a run without approval if the operator cannot be asked.
 * @throws AppError USAGE (exit code 2)
 */
export function requireApproval({ obstacle }: Approval): void {
  if (obstacle === null) return;
  const message = `apply asks before it changes anything, but ${obstacle}`;
  throw usageError(
    message,
    'Add --yes. Or save the plan with kubeletadm plan --out FILE, check the plan, and apply the plan with kubeletadm apply FILE',
  );
}

/**
 * Plans all hosts and asks the operator to approve the plan. The hosts to change are then treated like those of a saved
 * plan: a host with other changes than the approved ones is refused. A host whose changes are not known yet, because it
 * waits for another host or for certificates, is planned when it is applied. The connections are closed in between, so
 * that no host waits for the answer.
 * @returns no tasks if no host can be changed or has changes
 * @throws AppError DECLINED if the operator declines; errors of opening the cluster; an interruption
 */
export async function approvePlan(
  services: FleetRunPorts,
  work: FleetTasks,
  { approval, canaries }: { readonly approval: Approval; readonly canaries: ReturnType<typeof canaryRules> },
): Promise<ApprovedTasks> {
  const { result, access, batches } = await planTasks(services, work, { approval, canaries });
  const { outcomes } = result;
  throwIfInterrupted(services, result);
  const createsCluster = access === null;
  // Without the host that bootstraps the cluster, no other host can be changed.
  const isBlocked = createsCluster && outcomes.some(({ error }) => error !== null);
  const isPending = createsCluster || outcomes.some(({ status }) => status === 'pending');
  if (isBlocked || !isPending) return { tasks: [], outcomes };
  const canary = createsCluster ? [] : plannedCanaries(canaries, outcomes);
  if (!(await approval.approve({ outcomes, canary, batches: createsCluster ? [] : batches, access }))) throw declined('apply');
  const exactOf = exactTasks();
  // The run has all hosts: only the changes of the first control plane are known, the others are planned after the
  // bootstrap, which may already be complete.
  if (createsCluster)
    return {
      tasks: work.tasks.map((task, i) => {
        const outcome = outcomes[i];
        return outcome === undefined ? task : exactOf(task, outcome);
      }),
      outcomes: [],
    };
  const tasks = work.tasks.flatMap((task, i) => {
    const outcome = outcomes[i];
    return outcome?.status === 'pending' ? [exactOf(task, outcome)] : [];
  });
  return { tasks, outcomes };
}

function throwIfInterrupted(services: FleetRunPorts, result: FleetResult): void {
  const failure = services.signal.aborted ? fleetFailure(result, services) : null;
  if (failure !== null) throw failure;
}

async function planTasks(services: FleetRunPorts, work: FleetTasks, { approval, canaries }: Parameters<typeof approvePlan>[2]) {
  const request = toPlan(work.request);
  const watch = approval.planning(work.tasks.map(({ host }) => host.name));
  try {
    const run = await openFleetRun(services, request, { ...work, reporter: watch.reporter });
    try {
      // All refusals are listed, however many are permitted.
      const rules = { ...fleetRules(request.rules, work.tasks.length), ...canaries, maxFail: null };
      const result = await planHosts(run.members, rules, { ...watch.ports, claims: run.claims });
      requireValidValues(result);
      return { result, access: run.access, batches: plannedBatches(run.members, result.outcomes, rules) };
    } finally {
      await run.close();
    }
  } finally {
    watch.close();
  }
}

/**
 * The hosts that are not changed and use up `--max-unavailable`: those that were down when they were planned, unless their Nodes
 * are Ready now. The operator may have taken long to answer.
 * @param cluster null: it does not exist yet
 */
export async function downHosts(cluster: Cluster | null, planned: readonly HostOutcome[]): Promise<readonly string[]> {
  const down = planned.filter(({ status, plan }) => status === 'unreachable' || (status !== 'pending' && plan?.isDown === true));
  const found = await inParallel(down, AT_ONCE, async ({ host, plan, node: declared }) => {
    const node = plan === null ? undefined : (plan.host.own?.node ?? declared);
    const object = cluster === null || node === undefined ? null : await unlessRefused(cluster.get(nodeRef(node)));
    return object !== null && isNodeReady(object) ? [] : [host];
  });
  return found.flat();
}

const AT_ONCE = 8;

/** Adds the approved operations to a task; equal changes of many hosts are stored once. */
export function exactTasks(): <Task extends object>(task: Task, outcome: HostOutcome) => Task & ApprovedOperations {
  const diffTexts = diffEqualTextsOnce();
  const known = new Map<string, HostChanges>();
  return (task, { plan }) => {
    if (plan === null || plan.host.phases.every(({ plan: { changes } }) => changes.length === 0)) return task;
    const shared = sharedChangesOf(plan.host, diffTexts);
    const planned = known.get(shared) ?? (JSON.parse(shared) as HostChanges);
    known.set(shared, planned);
    return { ...task, operations: operationsOf(plan.host), planned, origin: 'approved' };
  };
}

/** The results of all hosts of a run: of the hosts that were applied, and of the others as planned. */
export function withPlanned(applied: FleetResult, planned: readonly HostOutcome[]): FleetResult {
  const results = new Map(applied.outcomes.map((outcome) => [outcome.host, outcome]));
  return { ...applied, outcomes: planned.map((outcome) => results.get(outcome.host) ?? outcome) };
}
