import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { FactQuery } from '../../host/facts/query.ts';
import type { Host } from '../../host/host.ts';
import { type HostChanges, sharedChangesOf } from '../../host/plan/fold.ts';
import { planDifference } from '../../host/plan/plan-difference.ts';
import { planStale, reportDifference } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { DEFAULT_CA_CERT_PATH } from '../../kubeadm/config/defaults.ts';
import type { NodeClaims } from '../../kubeadm/node-claims.ts';
import { isForKubelet } from '../../kubeadm/use-cases/node-options.ts';
import { readClusterBaseline } from '../../kubeadm/workflows/cluster-baseline.ts';
import { controlPlaneStateOver } from '../../kubeadm/workflows/control-plane/plane-state.ts';
import { type JoinOptions, joinWorkflow } from '../../kubeadm/workflows/join.ts';
import { upgradeNodeWorkflow } from '../../kubeadm/workflows/upgrade-node.ts';
import { loadCatalogue } from '../../kubelet/catalogue.ts';
import type { FleetMember } from '../fleet.ts';
import type { HostTarget } from '../host-target.ts';
import type { FleetCluster } from '../model.ts';
import { differingOperations, type Operations, operationsOf } from '../operations.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { PlannedHost } from '../saved-plan.ts';
import { workflowMember } from '../workflow-member.ts';
import { type ControlPlaneSettings, readControlPlaneSettings } from './fleet-configuration.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { type ConnectionRequest, commandLimit, readSshOptions } from './host-access.ts';
import { hostWriting } from './host-writing.ts';
import { installSources } from './install-sources.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import { planAfterPreparation } from './plan-prepared.ts';

/** A host, and where a saved plan is applied what exactly is to be done on it. */
export interface FleetTask {
  readonly host: PlannedHost;
  readonly operations?: Operations;
  /** The same as the saved plan shows it. */
  readonly planned?: HostChanges;
}

export interface FleetMembersInput {
  readonly tasks: readonly FleetTask[];
  readonly cluster: FleetCluster;
  /** The fleet file: relative paths count from there. */
  readonly file: string;
  /** Relative key files count from there. */
  readonly directory: string;
  readonly access: FleetAccess;
  readonly dryRun: boolean;
  readonly reporter: Reporter;
  /** The control planes of the fleet: one that is there uploads the certificates that others join by. */
  readonly controlPlanes?: readonly PlannedHost[];
  /** The Nodes of the hosts of the run. */
  readonly claims?: NodeClaims | undefined;
  /** In place of a plain connection: who wants to know more of a host. */
  readonly connect?: (target: HostTarget, host: PlannedHost, queries: readonly FactQuery[]) => Promise<Host>;
}

/**
 * The hosts of a fleet as members of a run: workers join, and those that have joined get what the file and the cluster say now. What the cluster says is read once.
 * @throws what reading the cluster throws
 */
export async function fleetMembers(
  services: FleetRunPorts,
  request: FleetRunRequest,
  input: FleetMembersInput,
): Promise<readonly FleetMember[]> {
  const { access, dryRun, tasks } = input;
  const targetOf = await fleetTargets(services, request.connection, input.directory);
  const catalogue = await loadCatalogue();
  const { ignorePreflightErrors, takeOver, replan } = request;
  const shared = {
    templates: await services.templates(),
    catalogue,
    baseline: await readClusterBaseline(access.cluster, catalogue),
    settings: [],
    patches: [],
    ignorePreflightErrors,
    skipPreflight: false,
    dryRun,
    staged: false,
    kubeletHealthCheckMs: 240_000,
    apiServer: access.apiServer,
    credentials: () => access.credentials(),
    caCertPath: DEFAULT_CA_CERT_PATH,
    controlPlane: false,
    tlsBootstrapMs: 300_000,
    takeOver,
    removesMarks: true,
    waitReadyMs: null,
    admin: access.admin,
    trust: access.trust,
  } satisfies Partial<JoinOptions>;
  const writing = hostWriting(services, request.writing);
  const sources = await installSources(services, input.directory);
  const certificateKey = lazily(async () => {
    const { uploadFleetCerts } = await import('./upload-certs.ts');
    return uploadFleetCerts(services, {
      ignorePreflightErrors,
      verbosity: request.verbosity,
      controlPlanes: input.controlPlanes ?? [],
      connectTo: (host) => services.connectHost(targetOf(host)),
      cluster: access.cluster,
      file: input.file,
    });
  });
  const controlPlaneSettings = lazily(() => readControlPlaneSettings(services, input));
  const memberOf = async ({ host, operations, planned }: FleetTask): Promise<FleetMember> => {
    const { name, role, nodeRegistration, declared, overlays, preparation } = host;
    const target = targetOf(host);
    const own = { ...shared, nodeRegistration, declared, overlays: overlays.map(({ document }) => document) };
    const connect = async (): Promise<Host> =>
      input.connect?.(target, host, joinWorkflow.queries?.(own) ?? []) ?? services.connectHost(target);
    const run = { dryRun, skipPhases: [], exact: operations !== undefined && !replan };
    const common = {
      name,
      connect,
      cluster: access.cluster,
      clock: services.clock,
      writing: dryRun ? null : await writing(target),
      claims: input.claims,
    };
    const planOf = planAfterPreparation(preparation, sources, run);
    const workerMember = (): FleetMember => ({ ...workflowMember({ ...common, planHost: planOf(joinWorkflow, own) }), stage: WORKERS });
    const controlPlaneMemberOf = (settings: ControlPlaneSettings): FleetMember => {
      const patches = settings.patches?.filter(isForKubelet) ?? null;
      const present = workflowMember({
        ...common,
        planHost: planOf(upgradeNodeWorkflow, { ...own, patches, forget: false, nodeName: nodeRegistration.name ?? null }),
      });
      const joining = async (): Promise<FleetMember> => {
        const { joiningMember } = await import('./join-control-plane.ts');
        return joiningMember(services, { common, planOf, join: own, settings, certificateKey: await certificateKey() });
      };
      return controlPlaneMember({ name, connect, cluster: access.cluster, present, joining: dryRun ? null : joining });
    };
    const member = role === 'control-plane' ? controlPlaneMemberOf(await controlPlaneSettings()) : workerMember();
    return operations === undefined ? member : exactly(member, { operations, planned, replan });
  };
  return Promise.all(tasks.map(memberOf));
}

function lazily<T>(query: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => {
    asked ??= query();
    return asked;
  };
}

/** Stages of a run: the control plane that makes the cluster, the others, the workers. */
export const FIRST_CONTROL_PLANE = 0;
export const OTHER_CONTROL_PLANES = 1;
export const WORKERS = 2;

interface SavedForHost {
  readonly operations: Operations;
  readonly planned: HostChanges | undefined;
  /** Another plan is shown and applied, in place of refusing the host. */
  readonly replan: boolean;
}

/** A host that is refused, with the difference, when anything else than planned would be done on it. Where nothing is left to do, all is well. */
function exactly(member: FleetMember, { operations, planned, replan }: SavedForHost): FleetMember {
  return {
    ...member,
    open: async (ports) => {
      const open = await member.open(ports);
      const { host } = open.planned;
      const now = operationsOf(host);
      const different = now.length === 0 ? [] : differingOperations(operations, now);
      if (different.length === 0) return open;
      const { reporter } = ports;
      const difference = planned === undefined ? '' : planDifference(planned, JSON.parse(sharedChangesOf(host)) as HostChanges);
      const shown = `${different.slice(0, 5).join('; ')}${different.length > 5 ? '; …' : ''}`;
      if (replan) {
        const message = `the host or the cluster changed since the plan was saved: ${shown}; planned again`;
        reporter.report({ level: 'warning', code: 'PLAN_CHANGED', host: member.name, message });
        reportDifference(reporter, { host: member.name }, { difference, between: 'the saved plan and what is applied now' });
        return open;
      }
      reportDifference(reporter, { host: member.name }, { difference, between: 'the saved plan and what would be applied now' });
      await open.close();
      throw planStale(member.name, `something changed since the plan was made: ${shown}`, 3);
    },
  };
}

/** How each host is reached, by fleet file and command line. */
export async function fleetTargets(
  services: LocalFiles,
  connection: ConnectionRequest,
  directory: string,
): Promise<(host: Pick<PlannedHost, 'name' | 'ssh'>) => HostTarget> {
  const ssh = await readSshOptions(services, connection);
  const limit = commandLimit(connection);
  return ({ name, ssh: own }) => ({ member: { name, ssh: own, directory }, ssh, ...limit });
}

interface ControlPlaneParts {
  readonly name: string;
  readonly connect: () => Promise<Host>;
  readonly cluster: Cluster;
  /** Where it is a control plane already: its kubelet gets what the file and the cluster say. */
  readonly present: FleetMember;
  /** Where it is none yet, or joining was broken off: it joins. Null: in a plan, for which no certificates are uploaded. */
  readonly joining: (() => Promise<FleetMember>) | null;
}

/** A control plane of a cluster that is there: one after the other, before the workers. The components of one that has joined are not touched. */
function controlPlaneMember({ name, connect, cluster, present, joining }: ControlPlaneParts): FleetMember {
  return {
    name,
    stage: OTHER_CONTROL_PLANES,
    isAlone: true,
    open: async (ports) => {
      const state = await controlPlaneStateOver(connect, cluster, ports.signal);
      if (state === 'present') return present.open(ports);
      const how = state === 'none' ? 'it joins' : 'it goes on joining';
      const member =
        joining === null ? waitingMember(name, `${how} as a control plane, by certificates that apply uploads`) : await joining();
      return member.open(ports);
    },
  };
}

/** A host of which nobody can say yet what it gets. */
export function waitingMember(name: string, deferred: string): FleetMember {
  const host = { name, phases: [{ phase: 'join', plan: { changes: [], deferred } }] };
  return {
    name,
    open: async () => ({
      planned: { host, warnings: [], refusals: [] },
      apply: async () => host,
      close: async () => undefined,
    }),
  };
}
