import type { RunTime } from '../../base/clock.ts';
import type { AppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { PlanOnHost } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { nodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import type { DrainForecastDocument } from '../../maintenance/forecast/forecast-document.ts';
import type { PlannedBatch } from '../../maintenance/next-step.ts';
import type { Selectable } from '../file/select.ts';
import { type HostTarget, targetName } from '../host-target.ts';
import type { HostConnections, LockOwnerPorts } from '../ports.ts';
import { type FleetPorts, type FleetResult, type FleetRules, type HostOutcome, runFleet } from '../run/fleet.ts';
import { fleetFailure } from '../run/fleet-failure.ts';
import type { FleetMember } from '../run/fleet-member.ts';
import { planHosts } from '../run/plan-hosts.ts';
import { plannedBatches } from '../run/planned-batches.ts';
import { workflowMember } from '../run/workflow-member.ts';
import { type ApprovedOperations, approvedMember } from './approved-member.ts';
import { drainingOf, forecastRun } from './draining.ts';
import { fleetRules, namedCanaries, type RulesRequest } from './fleet-rules.ts';
import { hostWriteOptions, type WritingRequest } from './host-writing.ts';
import { chooseRollout, type GatePorts, openGates } from './open-gates.ts';

/** The options of a command over hosts that its run reads. */
export interface HostsSettings {
  readonly run: RunSettings;
  /** Absent: the default limits; the command has no options for them. */
  readonly rules?: RulesRequest;
  /** Absent: the run takes no lock on the hosts and needs no root privileges there, because it only creates new files. */
  readonly writing?: WritingRequest;
}

/** A command that is ready to run on its hosts. */
export interface HostsCommand {
  readonly targets: readonly HostTarget[];
  readonly planHost: PlanOnHost;
  /** The hosts by the fleet file, with the names of the targets, for `--canary`. Absent: the command does not name canaries. */
  readonly hosts?: readonly Selectable[];
  /** The zone of a host, for `--order`. */
  readonly zoneOf?: (host: Selectable) => string | undefined;
  /** Canaries wait for earlier stages, and each stage has its own. */
  readonly hasCanaryPerStage?: boolean;
  readonly cluster: Cluster | null;
  /** The plan of the run lists no host. */
  readonly changesNoHost?: boolean;
  /** Replaces `cluster` if each host has its own route to the API server; closed when the host is done. */
  readonly clusterOf?: (host: Host) => Promise<Cluster | null>;
  /** The settings of the command line and the document. */
  readonly run: RunSettings;
  /** The skipped phases, for the document of the run. Absent: it has no list of them. */
  readonly skippedPhases?: readonly string[];
  /**
   * Inspect all hosts before the first is changed, and plan each again when its change is started. A host whose Node another
   * host claims is not changed; if a host is refused, no host is changed, unless their number is within `--max-fail`.
   */
  readonly inspectsFirst?: boolean;
  /** Change one host after the other, and none after a failure. */
  readonly changesOneAtATime?: boolean;
  /** By name of the host: the operations that the operator has approved. A host with others is refused. Absent: not asked. */
  readonly approved?: ReadonlyMap<string, ApprovedOperations>;
  /** With `inspectsFirst`: change the other hosts if one is refused. */
  readonly skipsRefused?: boolean;
  /** Warnings about the configuration and the cluster. */
  readonly warnings: readonly Warning[];
}

/** The output of a command while it is opened, and the connections that are closed after its run, the last one first. */
export interface CommandScope {
  readonly reporter: Reporter;
  opened<Connection extends { close(): Promise<void> }>(connection: Connection): Connection;
}

/** Performs an action, and then closes what it opened, the last one first. */
export async function closingOpened<Result>(action: (opened: CommandScope['opened']) => Promise<Result>): Promise<Result> {
  const connections: { close(): Promise<void> }[] = [];
  try {
    return await action((connection) => {
      connections.push(connection);
      return connection;
    });
  } finally {
    for (const connection of connections.reverse()) await connection.close();
  }
}

/** Ports for running a workflow on hosts. */
type HostsPorts = RunTime & HostConnections & LockOwnerPorts;

/** A host of a run, its workflow, and its place in the run. */
export interface HostWork extends Pick<FleetMember, 'node' | 'stage' | 'zone' | 'isExclusive'> {
  readonly target: HostTarget;
  readonly planHost: PlanOnHost;
  /** Throws to refuse the host before it is connected. */
  readonly precheck?: (() => void) | undefined;
  readonly approved?: ApprovedOperations | undefined;
}

/** The results of hosts, and the failure of the run; null: all hosts succeeded. */
export interface HostsResult extends FleetResult {
  readonly failure: AppError | null;
  /** Of a dry run: the drains; null: no node is drained, or the drains are not known. */
  readonly drainForecast: DrainForecastDocument | null;
  /** Of a dry run: the hosts in the order in which they would be changed. */
  readonly batches: readonly PlannedBatch[];
}

/** No canary, and the default limit of failed hosts. */
const DEFAULT_RULES: RulesRequest = { parallel: 50, canary: { hosts: 0 }, maxUnavailable: null, maxFail: null };

/** The next host is changed when the previous one has succeeded. */
const ONE_AT_A_TIME: RulesRequest = { ...DEFAULT_RULES, parallel: 1, maxFail: { hosts: 0 } };

/**
 * Runs the hosts of a command line as a fleet without a file: with a canary, and a number of hosts that may fail before
 * the remaining hosts are skipped.
 * @param observer.reporter reports the gates of the run
 * @returns the results, and the failure of the run; null: all hosts succeeded
 */
export async function runTargets(
  ports: HostsPorts & GatePorts,
  command: HostsCommand,
  settings: HostsSettings,
  { reporter, ...observer }: FleetPorts & { readonly reporter: Reporter },
): Promise<HostsResult> {
  const { targets, planHost, inspectsFirst = false, skipsRefused = false, run } = command;
  const { rules } = settings;
  const defaults = command.changesOneAtATime === true ? ONE_AT_A_TIME : DEFAULT_RULES;
  const { parallel, maxOpen, ...limits } = fleetRules(rules ?? defaults, targets.length);
  const named = new Map(command.hosts?.map((host) => [host.name, host]));
  const hosts = targets.map((target) => {
    const host = named.get(targetName(target));
    const zone = host === undefined ? undefined : command.zoneOf?.(host);
    return { target, planHost, zone, approved: command.approved?.get(targetName(target)) };
  });
  const canaries = canariesOf(command, rules, targets.map(targetName));
  const rollout = rules?.gates === undefined ? null : await chooseRollout(ports, rules.gates, { declared: null, reverts: false });
  const gates = openGates(ports, { rollout, cluster: command.cluster, reporter });
  const inspectsAll = inspectsFirst || gates !== undefined;
  const result = await runHosts(
    ports,
    { ...settings, ...command, hosts },
    {
      ...limits,
      ...canaries,
      parallel,
      maxOpen: inspectsAll ? maxOpen : parallel,
      verifyUnchanged: true,
      observesFirst: inspectsAll,
      stopsIfRefused: inspectsFirst && !skipsRefused,
    },
    { ...observer, gates },
  );
  const members = hosts.map(({ target, zone }) => ({ name: targetName(target), zone }));
  const pending = result.outcomes.flatMap(({ host, status }) => (status === 'pending' ? [host] : []));
  const batches = run.dryRun
    ? plannedBatches(members, result.outcomes, { ...limits, ...canariesOf(command, rules, pending), parallel, maxOpen })
    : [];
  return { ...result, batches, failure: failureOf(result, ports, settings, run.dryRun ? 'plans' : undefined) };
}

/**
 * The canaries that `--canary` names. If all of them are up to date, the next host is the canary.
 * @param names of the hosts to change
 */
function canariesOf(
  { hosts, hasCanaryPerStage = false }: Pick<HostsCommand, 'hosts' | 'hasCanaryPerStage'>,
  rules: RulesRequest | undefined,
  names: readonly string[],
): Pick<FleetRules, 'canary' | 'canaryOrder' | 'hasCanaryPerStage'> | { readonly hasCanaryPerStage: boolean } {
  if (rules?.canaryHosts === undefined || hosts === undefined) return { hasCanaryPerStage };
  const chosen = namedCanaries(hosts, rules.canaryHosts, 'Pass names of the hosts of --host; labels are those of the fleet file');
  const canaryOrder = chosen.filter((name) => names.includes(name));
  return { hasCanaryPerStage, canary: names.length <= 1 ? 0 : Math.max(1, canaryOrder.length), canaryOrder };
}

/** With a single host, its error is reported unchanged, without the name of the host. */
export function failureOf(
  result: FleetResult,
  { signal }: { readonly signal: AbortSignal },
  { rules }: Pick<HostsSettings, 'rules'>,
  aim?: 'plans',
): AppError | null {
  const [only, ...others] = result.outcomes;
  if (only !== undefined && only.error !== null && others.length === 0) return only.error;
  const hint = `Fix the cause and run the same command again${rules !== undefined ? ', or allow more failures with --max-fail' : ''}`;
  return fleetFailure(result, { signal, only: aim, hint });
}

/** Whether the plan or the result of a host is shown: refused hosts have a plan in a dry run. */
export function isShown({ plan, status, error }: HostOutcome, { dryRun }: Pick<RunSettings, 'dryRun'>): boolean {
  return plan !== null && status !== 'not-started' && status !== 'interrupted' && (error === null || dryRun);
}

/** Runs workflows on hosts; of two hosts with the same Node, neither is changed. */
export async function runHosts(
  ports: HostsPorts,
  {
    hosts,
    cluster,
    clusterOf,
    run,
    writing,
  }: Pick<HostsCommand, 'cluster' | 'clusterOf'> & HostsSettings & { readonly hosts: readonly HostWork[] },
  rules: FleetRules,
  observer: FleetPorts,
): Promise<FleetResult & Pick<HostsResult, 'drainForecast'>> {
  const claims = nodeClaims();
  const writeOptions = hostWriteOptions(ports, writing);
  const draining = await drainingOf(ports, run, hosts.length);
  const own = { ...run, skipPhases: [...new Set(run.skipPhases)] };
  const members = await Promise.all(
    hosts.map(async ({ target, planHost, precheck, approved, ...place }): Promise<FleetMember> => {
      const exact = approved?.origin;
      const member = workflowMember({
        name: targetName(target),
        planHost: (context) => planHost(context, { ...own, exact }),
        connect: async (reporter) => {
          precheck?.();
          return ports.connectHost(target, reporter);
        },
        cluster,
        clusterOf,
        clock: ports.clock,
        writing: await writeOptions(target),
        claims,
        draining,
      });
      const placed = { ...member, ...place };
      return approved === undefined ? placed : approvedMember(placed, approved, { replan: false });
    }),
  );
  const process = run.dryRun ? planHosts : runFleet;
  const result = await process(members, rules, { ...observer, claims }).finally(() => draining?.planned?.removeAll());
  return { ...result, drainForecast: await forecastRun(draining, cluster, result.outcomes) };
}
