import { AppError, type Problem, usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import { quoteShell } from '../../base/text/shell-quote.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { nodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import { controlPlaneConnector, etcdConnector } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import type { ApiAccess } from '../../kubeadm/workflows/control-plane/api-access.ts';
import { type ResetOptions, resetWorkflow } from '../../kubeadm/workflows/reset.ts';
import { isControlPlane, type ResolvedFleet, type ResolvedHost } from '../file/model.ts';
import { selectHosts } from '../file/select.ts';
import type { RunJournal, RunJournals } from '../history/journal.ts';
import type { FleetFilePorts, FleetRunPorts } from '../ports.ts';
import { type FleetMember, type FleetPorts, type FleetResult, type FleetRules, type HostOutcome, runFleet } from '../run/fleet.ts';
import { fleetFailure } from '../run/fleet-failure.ts';
import { workflowMember } from '../run/workflow-member.ts';
import type { InterruptedRun } from './apply-fleet.ts';
import type { FleetHostsRequest } from './fleet-request.ts';
import { fleetRules, type RulesRequest } from './fleet-rules.ts';
import { fleetTargets } from './host-access.ts';
import { hostWriteOptions, type WritingRequest } from './host-writing.ts';
import { readFleet, refuseDuplicateMachines } from './load-fleet.ts';
import { type FleetAccess, openFleetCluster } from './open-fleet-cluster.ts';
import { clusterRoutes } from './open-fleet-run.ts';
import { journaled, type RetriedHosts, readRetriedHosts } from './run-journal.ts';

export interface ResetFleetRequest {
  readonly hosts: FleetHostsRequest;
  readonly rules: RulesRequest;
  readonly writing: WritingRequest;
  readonly run: RunSettings;
  /** Reset without a confirmation. */
  readonly isApproved: boolean;
  /** Only the hosts that earlier resets did not finish. */
  readonly retriesFailed: boolean;
  /** The cluster to delete the Nodes from; null: keep the Nodes. */
  readonly deleteNodes: KubeconfigRequest | null;
  /** Also empty the directory of temporary files of kubeadm. */
  readonly cleanupTmpDir: boolean;
  /** Undefined: kubeadm's default. */
  readonly certificatesDir: string | undefined;
}

/** Ports of `fleet reset`. */
interface ResetFleetPorts extends FleetRunPorts, FleetFilePorts {
  /** Records of runs over fleets. */
  runJournals(): Promise<RunJournals>;
}

/** The hosts of a reset, for the question to the operator. */
export interface ResetQuestion {
  readonly hosts: readonly string[];
  /** Hosts of the file that lose their cluster, because all control planes are reset but not these hosts. */
  readonly orphans: readonly string[];
}

/** An observer of a reset. */
interface ResetFleetView {
  /** Warnings about the fleet file, before the run. */
  warning(problem: Problem): void;
  /** Earlier resets left no selected host unfinished. */
  nothing(retry: RetriedHosts): void;
  /** Asks the operator; null: the program has no terminal. */
  confirm(question: ResetQuestion): Promise<boolean | null>;
  begin(run: InterruptedRun): ResetRunView;
}

interface ResetRunView {
  readonly ports: FleetPorts;
  /** Reporter of messages that concern no single host. */
  readonly reporter: Reporter;
  /**
   * All hosts are done.
   * @param cluster null: no cluster was contacted
   */
  done(result: FleetResult, cluster: Cluster | null): void;
  /** The hosts are done, or the run failed; may be called twice. */
  close(): void;
}

interface ResetFleetResult {
  /** A dry run found changes. */
  readonly isPending: boolean;
  /** Null: all hosts succeeded. */
  readonly failure: AppError | null;
}

/**
 * Resets the selected hosts of a fleet: the workers first, then the control planes one by one, and the first control
 * plane of the file last. Records the run in a journal, unless it is a dry run.
 * @throws AppError with exit code 2 for an invalid file or selection, and without a confirmation; errors of the journal
 * and the cluster
 */
export async function resetFleet(services: ResetFleetPorts, request: ResetFleetRequest, view: ResetFleetView): Promise<ResetFleetResult> {
  const fleet = await readFleet(services, request.hosts);
  for (const warning of fleet.warnings) view.warning(warning);
  const { file } = fleet;
  const subject = file === '-' ? '-' : services.absolutePath(file);
  const selected = selectHosts(fleet.hosts, request.hosts.selection);
  const retry = request.retriesFailed
    ? await readRetriedHosts(await services.runJournals(), { subject, command: 'reset', name: file })
    : null;
  const hosts = retry === null ? selected : selected.filter(({ name }) => retry.hosts.includes(name));
  if (hosts.length === 0 && retry !== null) {
    view.nothing(retry);
    return { isPending: false, failure: null };
  }
  await refuseDuplicateMachines(services, { ...fleet, hosts }, request.hosts.connection.configFile);
  const input = { request, fleet, hosts, rules: fleetRules(request, hosts.length) };
  const names = hosts.map(({ name }) => name);
  const run = { hosts: names, retryCommand: `kubeletadm fleet reset -f ${quoteShell(file)} --retry failed` };
  if (request.run.dryRun) {
    const result = await resetHosts(services, input, view.begin(run));
    return { isPending: result.outcomes.some(({ status }) => status === 'pending'), failure: fleetFailure(result, services) };
  }
  if (!request.isApproved) requireConfirmation(await view.confirm({ hosts: names, orphans: orphansOf(fleet, hosts) }));
  const started = services.clock.now();
  const journal = await (await services.runJournals()).begin(started);
  try {
    await journal.write({ event: 'run-started', time: started.toISOString(), command: 'reset', subject, hosts: names });
    const result = await resetHosts(services, { ...input, journal }, view.begin(run));
    const failure = fleetFailure(result, services);
    await journal.write({ event: 'run-ended', time: services.clock.now().toISOString(), exitCode: failure?.exitCode ?? 0 });
    return { isPending: false, failure };
  } finally {
    await journal.close();
  }
}

function requireConfirmation(answer: boolean | null): void {
  if (answer === null) throw usageError('fleet reset asks before it changes anything, but standard input is not a terminal', 'Add --yes');
  if (!answer) throw usageError('fleet reset was declined', 'Nothing was changed');
}

/** Whether a reset of these hosts leaves the fleet without a control plane. */
function removesCluster(fleet: ResolvedFleet, hosts: readonly ResolvedHost[]): boolean {
  const controlPlanes = fleet.hosts.filter(isControlPlane);
  return controlPlanes.length > 0 && controlPlanes.every((host) => hosts.includes(host));
}

function orphansOf(fleet: ResolvedFleet, hosts: readonly ResolvedHost[]): readonly string[] {
  return removesCluster(fleet, hosts) ? fleet.hosts.filter((host) => !hosts.includes(host)).map(({ name }) => name) : [];
}

interface ResetInput {
  readonly request: ResetFleetRequest;
  readonly fleet: ResolvedFleet;
  /** In file order. */
  readonly hosts: readonly ResolvedHost[];
  readonly rules: FleetRules;
  /** Absent: a dry run. */
  readonly journal?: RunJournal;
}

async function resetHosts(services: ResetFleetPorts, input: ResetInput, view: ResetRunView): Promise<FleetResult> {
  const { fleet, rules, journal } = input;
  const accesses: ApiAccess[] = [];
  let access: FleetAccess | null = null;
  try {
    access = await openForDeletion(services, input, view.reporter);
    const claims = nodeClaims();
    const outcomes: HostOutcome[] = [];
    const own = await resetMembers(services, input, { access, claims, opened: (one) => accesses.push(one) });
    const members = removesCluster(fleet, input.hosts) && !rules.dryRun ? guardLast(own, outcomes) : own;
    const ports = journal === undefined ? view.ports : journaled(view.ports, journal, services);
    const result = await runFleet(members, rules, {
      ...ports,
      claims,
      ended: async (outcome) => {
        outcomes.push(outcome);
        await ports.ended?.(outcome);
      },
    });
    view.close();
    view.done(result, access?.cluster ?? null);
    return result;
  } finally {
    view.close();
    for (const one of accesses) await one.close();
    await access?.close();
  }
}

/** The cluster with `--delete-node`; otherwise no cluster is contacted. */
async function openForDeletion(
  services: ResetFleetPorts,
  { request, fleet, hosts }: ResetInput,
  reporter: Reporter,
): Promise<FleetAccess | null> {
  const { deleteNodes, run } = request;
  if (deleteNodes === null) return null;
  const { cluster, file } = fleet;
  const through = await clusterRoutes(services, request.hosts, fleet, hosts);
  const access = await openFleetCluster(services, { cluster: deleteNodes, run }, { cluster, file, reporter, writes: true, through });
  if (access.admin !== null) return access;
  await access.close();
  throw usageError(
    '--delete-node needs the kubeconfig of an administrator',
    'Pass --kubeconfig, or set cluster.kubeconfig in the fleet file',
  );
}

/** Stages of a reset. The workers need the API server of a control plane to delete their Nodes. */
const WORKERS = 0;
const OTHER_CONTROL_PLANES = 1;
const LAST_CONTROL_PLANE = 2;

async function resetMembers(
  services: ResetFleetPorts,
  { request, fleet, hosts }: ResetInput,
  {
    access,
    claims,
    opened,
  }: { readonly access: FleetAccess | null; readonly claims: ReturnType<typeof nodeClaims>; readonly opened: ResetOptions['opened'] },
): Promise<readonly FleetMember[]> {
  const targetOf = await fleetTargets(services, request.hosts.connection, fleet.file);
  const writing = hostWriteOptions(services, request.writing);
  // The first control plane of the file is the one that created the cluster, and the usual address of the API server.
  const last = hosts.find(isControlPlane);
  const trust = access?.trust ?? null;
  return Promise.all(
    hosts.map(async (host): Promise<FleetMember> => {
      const { name, nodeRegistration } = host;
      const { certificatesDir, cleanupTmpDir } = request;
      const options: ResetOptions = {
        reset: {
          cleanupTmpDir,
          ...(certificatesDir === undefined ? {} : { certificatesDir }),
          ...(nodeRegistration.criSocket === undefined ? {} : { criSocket: nodeRegistration.criSocket }),
        },
        run: request.run,
        connect: controlPlaneConnector(services),
        connectEtcd: etcdConnector(services),
        opened,
        deleteNode: trust === null ? undefined : { trust, nodeName: nodeRegistration.name },
      };
      const target = targetOf(host);
      const planned = workflowMember({
        name,
        planHost: (context) => planWorkflow(resetWorkflow, context, options, request.run),
        connect: (reporter) => services.connectHost(target, reporter),
        cluster: access?.cluster ?? null,
        clock: services.clock,
        writing: request.run.dryRun ? null : await writing(target),
        claims,
      });
      const member = { ...planned, node: nodeRegistration.name };
      if (!isControlPlane(host)) return { ...member, stage: WORKERS };
      return { ...member, stage: host === last ? LAST_CONTROL_PLANE : OTHER_CONTROL_PLANES, isExclusive: true };
    }),
  );
}

/**
 * Refuses the last control plane if another host was not reset: without an API server the Node of that host could not
 * be deleted, and an etcd member could not leave its cluster.
 * @param outcomes those of the run so far
 */
function guardLast(members: readonly FleetMember[], outcomes: readonly HostOutcome[]): readonly FleetMember[] {
  return members.map((member) =>
    member.stage !== LAST_CONTROL_PLANE
      ? member
      : {
          ...member,
          open: async (ports) => {
            const left = outcomes.filter(({ status }) => status !== 'changed' && status !== 'unchanged').map(({ host }) => host);
            if (left.length > 0) throw lastControlPlaneKept(member.name, left);
            return member.open(ports);
          },
        },
  );
}

function lastControlPlaneKept(host: string, left: readonly string[]): AppError {
  const [names, them] = left.length === 1 ? [`the host "${left[0]}"`, 'that host'] : [`the hosts ${namesText(left)}`, 'those hosts'];
  const message = `not reset: kubeletadm resets this control plane only after all other hosts, and ${names} could not be reset`;
  const hint = `Fix ${names} and run kubeletadm fleet reset --retry failed, or exclude ${them} with --limit '!${left[0]}'`;
  return new AppError({ host, code: 'RESET_LAST_CONTROL_PLANE', message, hint }, { exitCode: 3 });
}
