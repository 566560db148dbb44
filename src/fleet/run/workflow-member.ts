import type { Clock } from '../../base/clock.ts';
import { AppError, isAppError, settle, unlessRefused } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { API_PAUSE, type WaitContext, waitUntil } from '../../base/wait-until.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import type { NodeClaimRegistration } from '../../host/node-claim.ts';
import type { Operation } from '../../host/operation/operation.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { type HostPlan, hasChanges, impactOfPlan } from '../../host/plan/document.ts';
import { needsDrain } from '../../host/plan/impact.ts';
import type { PlanStep } from '../../host/plan-after.ts';
import type { WriterOptions } from '../../host/run-host.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { WorkflowResult } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import { isNodeReady, leaseRef } from '../../kube/node-conditions.ts';
import type { NodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import { textAt } from '../../kubelet/documents/values.ts';
import { drainForecastWarning, drainUnknownWarning, nodeLeftBefore } from '../../maintenance/drain/drain-problems.ts';
import { requireEtcdMembers } from '../../maintenance/drain/etcd-members.ts';
import { nodeRef } from '../../maintenance/drain/hold.ts';
import type { PlannedDrains } from '../../maintenance/drain/planned-drains.ts';
import type { RunForecast } from '../../maintenance/drain/run-forecast.ts';
import { whileDrained } from '../../maintenance/drain/while-drained.ts';
import { cordonOwner, isCordoned } from '../../maintenance/node-hold.ts';
import { type ChangeStart, hostHistory, type RunAttribution, recordChange, recordStart } from '../history/host-history.ts';
import type { FleetMember } from './fleet-member.ts';
import type { HostResult } from './member-results.ts';

export interface WorkflowMember {
  readonly name: string;
  /** Plans the workflow of the host. */
  readonly planHost: PlanStep;
  /** Opens a new connection each time, whose requests the reporter logs. */
  readonly connect: (reporter: Reporter) => Promise<Host>;
  readonly cluster: Cluster | null;
  /** Replaces `cluster` if the host has its own route to the API server; closed when the host has ended. */
  readonly clusterOf?: ((host: Host) => Promise<Cluster | null>) | undefined;
  readonly clock: Clock;
  /** Null: files are staged, or nothing is changed. */
  readonly writing?: MemberWriteOptions | null;
  /** Node claims of the run. */
  readonly claims?: NodeClaims | undefined;
  /** Absent: nodes are not drained. */
  readonly draining?: Draining | undefined;
}

/** How nodes of a run are drained before their change. */
export interface Draining {
  readonly policy: NonNullable<RunSettings['drain']>;
  /** Absent: the drains are only forecast. */
  readonly planned?: PlannedDrains;
  /** Reads the cluster once for all hosts. Absent: nodes are drained. */
  readonly forecast?: (cluster: Cluster) => Promise<RunForecast>;
  /** The Nodes that are control planes, read once for all hosts. */
  readonly controlPlanes?: (cluster: Cluster) => Promise<ReadonlySet<string>>;
  /** The Nodes that earlier runs left cordoned, read once for all hosts. */
  readonly leftCordoned?: (cluster: Cluster) => Promise<ReadonlySet<string>>;
}

/** Settings for writing to a host; changes are confirmed over a new connection made by `connect`. */
export interface MemberWriteOptions extends Omit<WriterOptions, 'confirm'> {
  /** Time limit for confirming a kubelet change; null: final at once. */
  readonly confirmMs: number | null;
  /** Recorded on the host when it was changed; absent: changes are not recorded. */
  readonly note?: RunAttribution | undefined;
}

/** A host of a fleet run with its workflow. */
export function workflowMember(member: WorkflowMember): FleetMember {
  const { name, clock } = member;
  return {
    name,
    open: async ({ reporter, signal, parseText, connection }) => {
      const host = connection ?? (await member.connect(reporter));
      let own: Cluster | null = null;
      const release = async (): Promise<Host> => {
        const closing = own;
        own = null;
        await closing?.close();
        return host;
      };
      const close = async (): Promise<void> => (await release()).close();
      try {
        own = (await member.clusterOf?.(host)) ?? null;
        const hasOwn = own !== null;
        const claim = rememberedClaim(member.claims?.of(name));
        const ports = { clock, reporter, parseText, claim };
        const start = startRecord(member);
        const context = { host, cluster: own ?? member.cluster, ...ports, ...writingOf(member, reporter, start.opening) };
        let hasFailed = false;
        const { apply, ...planned } = await member.planHost({ ...context, signal });
        if (hasChanges(planned.host)) await requireFirstApply(host, member.writing?.note, signal);
        else await warnOfLeftCordon(member.draining, claim.node(), context);
        // The credentials of a node, which `clusterOf` opens, may not drain it.
        if (own === null) await planDrain(member.draining, planned.host, { cluster: member.cluster, node: claim.node() });
        return {
          planned: await withForecast(member.draining, { planned, node: claim.node(), context }),
          apply: (until): Promise<HostPlan> => {
            const change = (): Promise<HostPlan> => {
              start.begins(planned.host);
              const done = apply(until === undefined ? context : { ...context, signal: until });
              return recorded(member, { context, start, planned: planned.host, node: claim.node }, done);
            };
            const input = { context, plan: planned.host, node: claim.node(), signal: until ?? signal, start };
            return drained(member.draining, input, change).catch((error: unknown) => {
              // After exit codes 3 and 5, the host has its previous configuration.
              hasFailed = !(isAppError(error) && [3, 5].includes(error.exitCode));
              throw error;
            });
          },
          isNodeDown: async (waitMs) => {
            // Closed: its Node cannot be read any more.
            if (hasOwn && own === null) return true;
            const node = { cluster: own ?? member.cluster, node: claim.node(), run: member.draining?.planned?.run.run ?? null, hasFailed };
            return isNodeDown({ ...ports, signal, host }, { ...node, waitMs });
          },
          release,
          close,
        };
      } catch (error) {
        await close();
        throw error;
      }
    },
  };
}

interface NodeState {
  readonly cluster: Cluster | null;
  readonly node: string | null;
  /** The run whose cordons make a node unavailable; null: it cordons none. */
  readonly run: string | null;
  /** The change of the host failed and was not rolled back: its kubelet must renew its Lease, because a Node stays Ready for a while without one. */
  readonly hasFailed: boolean;
}

/** A host whose state cannot be read is down; after a failed change, only if it has a Node. */
async function isNodeDown(
  context: WaitContext,
  { cluster, node, run, hasFailed, waitMs }: NodeState & { readonly waitMs: number },
): Promise<boolean> {
  if (cluster === null || node === null) return !hasFailed;
  let renewed: string | null = null;
  const down = waitUntil(context, {
    probe: async () => {
      const found = await settle(cluster.get(nodeRef(node)));
      const object = 'value' in found ? found.value : null;
      if (hasFailed && 'value' in found && object === null) return { done: false };
      const isInService = object !== null && isNodeReady(object) && !(isCordoned(object) && cordonOwner(object)?.run === run);
      if (!isInService) return { pending: `Node ${node} to be Ready` };
      if (!hasFailed) return { done: false };
      const pending = `the kubelet of Node ${node} to renew its Lease`;
      const lease = await settle(cluster.get(leaseRef(node)));
      if ('error' in lease && isTemporaryError(lease.error)) return { pending };
      if ('error' in lease || lease.value === null) return { done: false };
      const before = renewed;
      renewed = textAt(lease.value, 'spec.renewTime');
      return before !== null && before !== renewed ? { done: false } : { pending };
    },
    timeoutMs: waitMs,
    pauseMs: API_PAUSE,
    timedOut: () => true,
    describe: (pending, waitedMs) => `waiting for ${pending}, ${Math.round(waitedMs / 1000)} s`,
  });
  const result = await settle(down);
  return 'error' in result || result.value;
}

/** Adds the forecast of the drain, and a warning if the drain would be refused or wait. What cannot be read causes none. */
async function withForecast(
  draining: Draining | undefined,
  { planned, node, context }: { readonly planned: WorkflowResult; readonly node: string | null; readonly context: PhaseContext },
): Promise<HostResult> {
  const { cluster, reporter, host } = context;
  const isNeeded = needsDrain(impactOfPlan(planned.host));
  if (draining?.forecast === undefined || !draining.policy.isAllowed || node === null || cluster === null || !isNeeded) return planned;
  const forecast = await unlessRefused(draining.forecast(cluster));
  if (forecast === null) return planned;
  const drain = forecast.ofNode(node);
  const warning = drainForecastWarning(drain);
  if (warning === null) return { ...planned, drain };
  reporter.report({ level: 'warning', ...warning, host: host.name });
  return { ...planned, drain, warnings: [...planned.warnings, warning] };
}

/** Warns of a node that an earlier run left cordoned: a run that does not change the node does not uncordon it either. */
async function warnOfLeftCordon(
  draining: Draining | undefined,
  node: string | null,
  { cluster, reporter, host }: PhaseContext,
): Promise<void> {
  if (draining?.leftCordoned === undefined || node === null || cluster === null) return;
  const left = await unlessRefused(draining.leftCordoned(cluster));
  if (left?.has(node) === true) reporter.report({ level: 'warning', ...nodeLeftBefore(node), host: host.name });
}

/** Marks a node that will be drained. */
async function planDrain(
  draining: Draining | undefined,
  plan: HostPlan,
  { cluster, node }: { readonly cluster: Cluster | null; readonly node: string | null },
): Promise<void> {
  if (draining?.policy.isAllowed !== true || cluster === null || node === null || !needsDrain(impactOfPlan(plan))) return;
  await draining.planned?.add(cluster, [node]);
}

/** Performs a change, on a drained node if it needs one. */
async function drained(
  draining: Draining | undefined,
  {
    context,
    plan,
    node,
    signal,
    start,
  }: {
    readonly context: PhaseContext;
    readonly plan: HostPlan;
    readonly node: string | null;
    readonly signal: AbortSignal;
    readonly start: StartRecord;
  },
  change: () => Promise<HostPlan>,
): Promise<HostPlan> {
  const { cluster, reporter } = context;
  const impact = impactOfPlan(plan);
  const { planned } = draining ?? {};
  if (draining === undefined || planned === undefined) return change();
  const { run } = planned;
  if (draining.controlPlanes !== undefined && cluster !== null && node !== null && hasChanges(plan)) {
    const controlPlanes = await unlessRefused(draining.controlPlanes(cluster));
    if (controlPlanes?.has(node) === true) await requireEtcdMembers({ cluster, run, signal, reporter }, node);
  }
  if (!needsDrain(impact)) return change();
  if (cluster === null || node === null) {
    const why = cluster === null ? 'the cluster is not reached' : 'the name of its Node is unknown';
    reporter.report({ level: 'warning', ...drainUnknownWarning(context.host.name, why) });
    return change();
  }
  // Exit code 5: rolled back, and verified; 2 and 3: refused before any change.
  const isRestored = ({ exitCode }: AppError): boolean => [2, 3, 5].includes(exitCode) || start.isUnused();
  try {
    return await whileDrained({ cluster, run, signal, reporter }, { node, impact, isRestored }, draining.policy, change);
  } finally {
    await planned.remove(node);
  }
}

/**
 * Refuses a host that the same saved plan has changed before, by the journal of the host. A failed, rolled-back or
 * unfinished change may be repeated.
 * @throws AppError PLAN_ALREADY_APPLIED (exit code 3)
 */
async function requireFirstApply(host: Host, note: RunAttribution | undefined, signal: AbortSignal): Promise<void> {
  if (note?.planDigest === undefined || note.again === true) return;
  const history = await observe(host, hostHistory, signal);
  const applied = history.findLast(({ planDigest, result }) => planDigest === note.planDigest && result === 'changed');
  if (applied === undefined) return;
  const message = `the plan was applied to this host at ${applied.time} by ${applied.operator}, and the host differs from it again`;
  const hint = `See kubeletadm fleet history ${host.name} and kubeletadm fleet drift --limit ${host.name}. Then create a new plan, or pass --again`;
  throw new AppError({ host: host.name, code: 'PLAN_ALREADY_APPLIED', message, hint }, { exitCode: 3 });
}

/** A claim that remembers the Node. */
function rememberedClaim(claim: NodeClaimRegistration | undefined): NodeClaimRegistration & { node(): string | null } {
  let name: string | null = null;
  return {
    set: (host, node) => {
      name = node.nodeName;
      claim?.set(host, node);
    },
    problems: () => claim?.problems() ?? [],
    node: () => name,
  };
}

/** The record of the start of a change, written with its first operation. */
interface StartRecord {
  /** The id of the change; null: nothing was recorded. */
  id(): string | null;
  /** A record was to be written, and no operation was started. */
  isUnused(): boolean;
  begins(planned: HostPlan): void;
  opening(): readonly Operation[];
}

function startRecord({ writing, clock }: WorkflowMember): StartRecord {
  let change: ChangeStart | null = null;
  let isWritten = false;
  return {
    id: () => (isWritten ? (change?.id ?? null) : null),
    isUnused: () => change !== null && !isWritten,
    begins: (planned) => {
      if (writing?.note === undefined) return;
      const { owner, note } = writing;
      const time = clock.now();
      change = { id: `${owner.id}-${time.getTime()}`, note, operator: owner.name, time, plan: planned };
    },
    opening: () => {
      if (change === null) return [];
      isWritten = true;
      return [recordStart(change)];
    },
  };
}

interface Recording {
  readonly context: PhaseContext;
  readonly start: StartRecord;
  readonly planned: HostPlan;
  readonly node: () => string | null;
}

/** Records the change when it has ended, and returns or throws its result. */
async function recorded(
  { writing, connect }: WorkflowMember,
  { context, start, planned, node }: Recording,
  done: Promise<HostPlan>,
): Promise<HostPlan> {
  const note = writing?.note;
  if (context.writing === undefined || note === undefined) return done;
  const { reporter } = context;
  const recorder = { ...context, writing: context.writing, note, connect: () => connect(reporter) };
  const record = (plan: HostPlan, error: AppError | null): Promise<void> => {
    // A change of the cluster alone has no start on the host.
    const id = start.id() ?? `${recorder.writing.owner.id}-${context.clock.now().getTime()}`;
    return recordChange({ ...recorder, id, node: node() }, plan, error);
  };
  try {
    const plan = await done;
    await record(plan, null);
    return plan;
  } catch (error) {
    // Exit codes 2 and 3: refused before any change, unless a start was recorded.
    if (isAppError(error) && (start.id() !== null || (error.exitCode !== 2 && error.exitCode !== 3))) await record(planned, error);
    throw error;
  }
}

function writingOf(
  { writing, connect }: WorkflowMember,
  reporter: Reporter,
  opening: () => readonly Operation[],
): { readonly writing?: WriterOptions } {
  if (writing === undefined || writing === null) return {};
  const { confirmMs, note: _, ...lock } = writing;
  return {
    writing: { ...lock, opening, confirm: confirmMs === null ? null : { timeoutMs: confirmMs, reconnect: () => connect(reporter) } },
  };
}
