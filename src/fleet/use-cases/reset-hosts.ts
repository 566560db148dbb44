import { AppError, type Problem, usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import { quoteShell } from '../../base/text/shell-quote.ts';
import { withDocument } from '../../host/run-settings.ts';
import { type PlanOnHost, PREFLIGHT_PHASE, planWorkflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeResetFlags } from '../../kubeadm/config/flags.ts';
import { controlPlaneConnector, etcdConnector } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { type KubeconfigRequest, type OpenedCluster, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { type ResetOptions, resetWorkflow } from '../../kubeadm/workflows/reset.ts';
import { isControlPlane, type ResolvedFleet, type ResolvedHost } from '../file/model.ts';
import { selectHosts } from '../file/select.ts';
import type { RunJournal, RunJournals } from '../history/journal.ts';
import { type HostTarget, isLocalHost, targetName } from '../host-target.ts';
import type { FleetFilePorts, FleetRunPorts, NodeCommandPorts } from '../ports.ts';
import type { FleetResult, FleetRules, HostOutcome } from '../run/fleet.ts';
import { fleetFailure } from '../run/fleet-failure.ts';
import type { FleetRunView, InterruptedRun } from './apply-fleet.ts';
import { confirmChange } from './confirm-change.ts';
import type { FleetHostsRequest } from './fleet-request.ts';
import { fleetRules } from './fleet-rules.ts';
import { subjectOf } from './fleet-tasks.ts';
import { fleetTargets, type HostsRequest } from './host-access.ts';
import { readFleet, refuseDuplicateMachines } from './load-fleet.ts';
import { readHostTargets } from './named-hosts.ts';
import { type FleetAccess, openFleetCluster } from './open-fleet-cluster.ts';
import { clusterRoutes } from './open-fleet-run.ts';
import { chooseRollout, hasGatesFor, openGates } from './open-gates.ts';
import { type CommandScope, closingOpened, type HostsCommand, type HostsSettings, type HostWork, runHosts } from './run-hosts.ts';
import { journaled, type RetriedHosts, readRetriedHosts, recordRun } from './run-journal.ts';

export interface ResetRequest extends HostsSettings {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the document of the file. */
  readonly flags: Flags;
  readonly hosts: HostsRequest;
  /** Reset without a confirmation. */
  readonly force: boolean;
  /** The cluster to delete the Node from, and the Node; undefined: the Node registered by the host. Null: keep the Node. */
  readonly deleteNode: { readonly cluster: KubeconfigRequest; readonly nodeName: string | undefined } | null;
}

/**
 * Prepares `reset` and `reset phase NAME...`. Asks the operator before a cluster is contacted, unless it is forced
 * or a dry run.
 * @param confirm asks whether to reset hosts; null: the program has no terminal
 * @throws AppError: problems of the configuration, all at once, or no confirmation (exit code 2)
 */
export async function openReset(
  services: NodeCommandPorts,
  request: ResetRequest,
  { reporter, opened, confirm }: CommandScope & { readonly confirm: (hosts: readonly string[]) => Promise<boolean | null> },
): Promise<HostsCommand> {
  const config = mergeResetFlags(await loadConfigFile(services, request.config, ['ResetConfiguration']), request.flags);
  const warnings = requireValid(config);
  const reset = config.reset ?? {};
  const run = withDocument(request.run, reset);
  const { onlyPhase } = run;
  const targets = await readHostTargets(services, request.hosts);
  // As in kubeadm, preflight asks for the confirmation. Other phases on other hosts are confirmed as well.
  const isConfirmed = onlyPhase !== undefined && onlyPhase !== PREFLIGHT_PHASE.name && targets.every(isLocalHost);
  const ask = () => confirm(targets.map(describeTarget));
  await confirmChange(run, request.force || reset.force === true || isConfirmed, ask, { command: 'reset', flag: '--force' });
  const deletion = await openForDeletion(services, { request, targets, reporter });
  const cluster = deletion?.cluster ?? null;
  if (cluster !== null) opened(cluster);
  const deleteNode =
    deletion === null ? undefined : { trust: operatorNodeTrust(services, deletion), nodeName: request.deleteNode?.nodeName };
  const planHost = resetPlanner(services, { reset, run, opened, deleteNode });
  return { targets, cluster, planHost, run, inspectsFirst: deletion !== null, skipsRefused: true, warnings };
}

function resetPlanner(services: NodeCommandPorts, options: Omit<ResetOptions, 'connect' | 'connectEtcd'>): PlanOnHost {
  const connected = { ...options, connect: controlPlaneConnector(services), connectEtcd: etcdConnector(services) };
  return (context, run) => planWorkflow(resetWorkflow, context, connected, run);
}

/** The cluster with `--delete-node`; otherwise no cluster is contacted. */
async function openForDeletion(
  services: NodeCommandPorts,
  {
    request: { deleteNode },
    targets,
    reporter,
  }: { readonly request: ResetRequest; readonly targets: readonly HostTarget[]; readonly reporter: Reporter },
): Promise<OpenedCluster | null> {
  if (deleteNode === null) return null;
  if (deleteNode.nodeName !== undefined && targets.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Reset the hosts one by one');
  return openCluster(services, deleteNode.cluster, { writes: reporter });
}

/** A host of a fleet file with the address that the file gives it. */
function describeTarget(target: HostTarget): string {
  if (isLocalHost(target)) return 'the local host';
  const name = targetName(target);
  const address = target.member?.ssh.address;
  return address === undefined || address === name ? name : `${name} (${address})`;
}

export interface ResetFleetRequest extends Required<HostsSettings> {
  readonly hosts: FleetHostsRequest;
  /** Reset without a confirmation. */
  readonly isApproved: boolean;
  /** Only the hosts that earlier resets did not finish. */
  readonly retriesFailed: boolean;
  /** The cluster to delete the Nodes from; null: keep the Nodes. */
  readonly deleteNodes: KubeconfigRequest | null;
  /** The settings of each host. */
  readonly reset: Pick<ResetOptions['reset'], 'cleanupTmpDir' | 'certificatesDir'>;
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
  plan(): ResetRunView;
  begin(run: InterruptedRun): ResetRunView;
}

interface ResetRunView extends Omit<FleetRunView, 'done'> {
  /**
   * All hosts are done.
   * @param cluster null: no cluster was contacted
   */
  done(result: FleetResult, cluster: Cluster | null): void;
}

/**
 * Resets the selected hosts of a fleet: the workers first, then the control planes one by one, and the first control
 * plane of the file last. Records the run in a journal, unless it is a dry run.
 * @returns whether a dry run found changes, and the failure; null: all hosts succeeded
 * @throws AppError with exit code 2 for an invalid file or selection, and without a confirmation; errors of the journal
 * and the cluster
 */
export async function resetFleet(
  services: ResetFleetPorts,
  request: ResetFleetRequest,
  view: ResetFleetView,
): Promise<{ readonly isPending: boolean; readonly failure: AppError | null }> {
  const fleet = await readFleet(services, request.hosts);
  for (const warning of fleet.warnings) view.warning(warning);
  const { file } = fleet;
  const subject = subjectOf(services, file);
  const selected = selectHosts(fleet.hosts, request.hosts.selection);
  const retry = request.retriesFailed
    ? await readRetriedHosts(await services.runJournals(), { subject, command: 'reset', name: file })
    : null;
  const hosts = retry === null ? selected : selected.filter(({ name }) => retry.hosts.includes(name));
  const rollout = await chooseRollout(services, request.rules.gates, { declared: null, reverts: false });
  const done = selected.flatMap((host) => (hosts.includes(host) ? [] : [host.name]));
  if (hosts.length === 0 && retry !== null) {
    view.nothing(retry);
    if (request.run.dryRun || !hasGatesFor(rollout, done)) return { isPending: false, failure: null };
  }
  await refuseDuplicateMachines(services, { ...fleet, hosts }, request.hosts.connection.configFile);
  const input = { request, fleet, hosts, rollout, done, rules: fleetRules(request.rules, hosts.length) };
  const names = hosts.map(({ name }) => name);
  const run = { hosts: names, retryCommand: `kubeletadm fleet reset -f ${quoteShell(file)} --retry failed` };
  if (request.run.dryRun) {
    const result = await resetHosts(services, input, view.plan());
    return { isPending: result.outcomes.some(({ status }) => status === 'pending'), failure: fleetFailure(result, services) };
  }
  const ask = () => view.confirm({ hosts: names, orphans: orphansOf(fleet, hosts) });
  await confirmChange(request.run, request.isApproved || hosts.length === 0, ask, { command: 'fleet reset', flag: '--yes' });
  const started = { subject, hosts: names, note: { command: 'reset', ...request.writing.note } };
  const failure = await recordRun(services, await services.runJournals(), started, async (journal, note) => {
    const noted = { ...request, writing: { ...request.writing, note } };
    return fleetFailure(await resetHosts(services, { ...input, request: noted, journal }, view.begin(run)), services);
  });
  return { isPending: false, failure };
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
  readonly rollout: Awaited<ReturnType<typeof chooseRollout>>;
  /** Selected hosts that `--retry` leaves out. */
  readonly done: readonly string[];
  /** Absent: a dry run. */
  readonly journal?: RunJournal;
}

function resetHosts(services: ResetFleetPorts, input: ResetInput, view: ResetRunView): Promise<FleetResult> {
  const { request, rules, rollout, done, journal } = input;
  return closingOpened(async (opened) => {
    try {
      const access = await openFleetForDeletion(services, input, view.reporter);
      if (access !== null) opened(access);
      const outcomes: HostOutcome[] = [];
      const hosts = await hostsToReset(services, input, { access, outcomes, opened });
      const ports =
        journal === undefined ? view.ports : journaled(view.ports, journal, services, { command: 'reset', ...request.writing.note });
      const cluster = access?.cluster ?? null;
      const gates = openGates(services, { rollout, cluster, reporter: view.reporter, done });
      const own = { ...rules, observesFirst: gates !== undefined };
      const result = await runHosts(services, { ...request, hosts, cluster }, own, {
        ...ports,
        gates,
        ended: async (outcome) => {
          outcomes.push(outcome);
          await ports.ended?.(outcome);
        },
      });
      view.close();
      view.done(result, cluster);
      return result;
    } finally {
      view.close();
    }
  });
}

/** The cluster with `--delete-node`; otherwise no cluster is contacted. */
async function openFleetForDeletion(
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

async function hostsToReset(
  services: ResetFleetPorts,
  { request, fleet, hosts }: ResetInput,
  {
    access,
    outcomes,
    opened,
  }: { readonly access: FleetAccess | null; readonly outcomes: readonly HostOutcome[] } & Pick<CommandScope, 'opened'>,
): Promise<readonly HostWork[]> {
  const targetOf = await fleetTargets(services, request.hosts.connection, fleet.file);
  // The first control plane of the file is the one that created the cluster, and the usual address of the API server.
  const last = hosts.find(isControlPlane);
  const isGuarded = removesCluster(fleet, hosts) && !request.run.dryRun;
  const trust = access?.trust ?? null;
  return hosts.map((host): HostWork => {
    const { name: node, criSocket } = host.nodeRegistration;
    const reset = { ...request.reset, ...(criSocket === undefined ? {} : { criSocket }) };
    const deleteNode = trust === null ? undefined : { trust, nodeName: node };
    const planHost = resetPlanner(services, { reset, run: request.run, opened, deleteNode });
    const work = { target: targetOf(host), planHost, node };
    if (!isControlPlane(host)) return { ...work, stage: WORKERS };
    if (host !== last) return { ...work, stage: OTHER_CONTROL_PLANES, isExclusive: true };
    const precheck = isGuarded ? () => requireOthersReset(host.name, outcomes) : undefined;
    return { ...work, stage: LAST_CONTROL_PLANE, isExclusive: true, precheck };
  });
}

/**
 * Refuses the last control plane if another host was not reset: without an API server the Node of that host could not
 * be deleted, and an etcd member could not leave its cluster.
 * @param outcomes those of the run so far
 */
function requireOthersReset(host: string, outcomes: readonly HostOutcome[]): void {
  const left = outcomes.filter(({ status }) => status !== 'changed' && status !== 'unchanged').map((outcome) => outcome.host);
  if (left.length === 0) return;
  const [names, them] = left.length === 1 ? [`the host "${left[0]}"`, 'that host'] : [`the hosts ${namesText(left)}`, 'those hosts'];
  const message = `not reset: kubeletadm resets this control plane only after all other hosts, and ${names} could not be reset`;
  const hint = `Fix ${names} and run kubeletadm fleet reset --retry failed, or exclude ${them} with --limit '!${left[0]}'`;
  throw new AppError({ host, code: 'RESET_LAST_CONTROL_PLANE', message, hint }, { exitCode: 3 });
}
