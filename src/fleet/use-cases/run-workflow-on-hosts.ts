import type { RunTime } from '../../base/clock.ts';
import { type AppError, type ExitCode, interrupted, isAppError, type Problem } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { PlanOnHost, WorkflowResult } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type NodeClaims, nodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import { type HostTarget, targetName } from '../host-target.ts';
import type { HostConnections, LockOwnerPorts } from '../ports.ts';
import { type FleetMember, type FleetPorts, type HostOutcome, runFleet } from '../run/fleet.ts';
import { fleetStopped } from '../run/fleet-failure.ts';
import { type MemberWriteOptions, workflowMember } from '../run/workflow-member.ts';
import { fleetRules, type RulesRequest } from './fleet-rules.ts';
import { hostWriteOptions, type WritingRequest } from './host-writing.ts';

/** A workflow and its hosts. */
export interface HostsWorkflow {
  readonly planHost: PlanOnHost;
  readonly targets: readonly HostTarget[];
  readonly cluster: Cluster | null;
  /** Replaces `cluster` if each host has its own route to the API server; closed when the host is done. */
  readonly clusterOf?: (host: Host) => Promise<Cluster | null>;
  /**
   * Null: only new files are written, which no other run changes. This requires only permission for the
   * directories.
   */
  readonly writing: WritingRequest | null;
  /** Absent: the default limits; the command has no options for them. */
  readonly rules?: RulesRequest;
  readonly run: RunSettings;
  /** The skipped phases, for the document of the run. Absent: it has no list of them. */
  readonly skippedPhases?: readonly string[];
  /**
   * The workflow changes the Nodes of the hosts: all hosts are inspected first, and a host whose Node another
   * host claims is not changed.
   */
  readonly oneHostPerNode?: boolean;
}

/** A command that is ready to run on its hosts. */
export interface OpenedCommand {
  readonly workflow: HostsWorkflow;
  /** Warnings about the configuration and the cluster. */
  readonly warnings: readonly Warning[];
  /** Closes the connections of the command, after its run. */
  close(): Promise<void>;
}

/** Results of the hosts. */
interface HostsResult {
  readonly outcomes: readonly HostOutcome[];
  /** Results of the hosts that did not fail. */
  readonly results: readonly WorkflowResult[];
  /** Null: no host failed. */
  readonly failure: HostsFailure | null;
}

/** Problems of the hosts. */
interface HostsFailure {
  readonly problems: readonly Problem[];
  /** 4 when some hosts succeeded, otherwise their common exit code. */
  readonly exitCode: ExitCode;
}

/** Ports for running a workflow on hosts. */
type HostsPorts = RunTime & HostConnections & LockOwnerPorts;

/** No canary, and the default limit of failed hosts. */
const DEFAULT_RULES: RulesRequest = { parallel: 50, canary: { hosts: 0 }, maxUnavailable: null, maxFail: null };

/**
 * Runs a workflow on the hosts in parallel, within the limits of a fleet run: a canary, and a number of hosts that may
 * fail before the remaining hosts are skipped.
 * @param watch creates the observer of the run, given its members
 * @throws AppError the error of the host if it is the only one
 */
export async function runWorkflowOnHosts(
  ports: HostsPorts,
  command: HostsWorkflow,
  watch: (members: readonly FleetMember[]) => Pick<FleetPorts, 'reporterOf' | 'begins' | 'ended' | 'progress'>,
): Promise<HostsResult> {
  const { run, targets } = command;
  const writing = command.writing === null ? null : hostWriteOptions(ports, command.writing);
  const observesFirst = command.oneHostPerNode === true;
  const { parallel, ...limits } = fleetRules({ rules: command.rules ?? DEFAULT_RULES, run }, targets.length);
  const maxOpen = observesFirst ? Math.max(parallel, targets.length) : parallel;
  const claims = nodeClaims();
  const members = await Promise.all(
    targets.map(async (target) =>
      memberOf(ports, command, { target, claims, writing: run.dryRun || writing === null ? null : await writing(target) }),
    ),
  );
  const { outcomes, stopped } = await runFleet(
    members,
    { ...limits, parallel, maxOpen, verifyUnchanged: true, observesFirst },
    { ...watch(members), signal: ports.signal, claims },
  );
  const shown = outcomes.filter(({ plan, status, error }) => plan !== null && !isSkipped(status) && (error === null || run.dryRun));
  const skipped = outcomes.filter(({ status }) => status === 'not-started').length;
  const failures = [
    ...new Set(
      outcomes
        .filter((outcome) => !shown.includes(outcome) && outcome.status !== 'not-started')
        .map(({ error }) => error ?? reasonOfInterruption(ports)),
    ),
  ];
  if (targets.length <= 1 && failures[0] !== undefined) throw failures[0];
  const results = shown.flatMap(({ plan }) => plan ?? []);
  if (failures.length === 0) return { outcomes, results, failure: null };
  const exitCode = exitCodeOf(failures, { interrupted: ports.signal.aborted, allFailed: results.length + skipped === 0 });
  const limit = command.rules === undefined ? '' : ', or allow more failures with --max-fail';
  const rest = stopped === null ? [] : [fleetStopped(skipped, stopped, `Fix the cause and run the same command again${limit}`)];
  return { outcomes, results, failure: { problems: [...failures.flatMap(({ problems }) => problems), ...rest], exitCode } };
}

function isSkipped(status: HostOutcome['status']): boolean {
  return status === 'not-started' || status === 'interrupted';
}

function exitCodeOf(failures: readonly AppError[], { interrupted, allFailed }: { interrupted: boolean; allFailed: boolean }): ExitCode {
  const last = failures.at(-1)?.exitCode ?? 1;
  if (interrupted) return last;
  return allFailed && failures.every(({ exitCode }) => exitCode === last) ? last : 4;
}

/** Reason why a host was not started: only an interruption stops this run. */
function reasonOfInterruption({ signal }: Pick<RunTime, 'signal'>): AppError {
  return isAppError(signal.reason) ? signal.reason : interrupted('SIGINT');
}

function memberOf(
  ports: HostsPorts,
  { planHost, cluster, clusterOf, run }: HostsWorkflow,
  { target, claims, writing }: { readonly target: HostTarget; readonly claims: NodeClaims; readonly writing: MemberWriteOptions | null },
): FleetMember {
  const phases = [...new Set(run.skipPhases)];
  return workflowMember({
    name: targetName(target),
    planHost: (context) => planHost(context, { ...run, skipPhases: phases }),
    connect: (reporter) => ports.connectHost(target, reporter),
    cluster,
    clusterOf,
    clock: ports.clock,
    writing,
    claims,
  });
}
