import type { Reporter } from '../../base/reporter.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import type { FactQueries } from '../../host/facts/query.ts';
import { DEFAULT_ALLOWED } from '../../host/plan/impact.ts';
import { DEFAULT_CA_CERT_PATH } from '../../kubeadm/config/defaults.ts';
import type { NodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import { NodeGroups } from '../../kubeadm/render/node-groups.ts';
import { isForKubelet } from '../../kubeadm/use-cases/node-options.ts';
import { connectAndObserveControlPlane, observeControlPlaneState } from '../../kubeadm/workflows/control-plane/control-plane-state.ts';
import { type JoinOptions, joinWorkflow } from '../../kubeadm/workflows/join.ts';
import { readClusterBaseline } from '../../kubeadm/workflows/node/cluster-baseline.ts';
import { upgradeNodeWorkflow } from '../../kubeadm/workflows/upgrade/upgrade-node.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { type FleetCluster, isControlPlane, nodeOptionsOf, type PlannedHost } from '../file/model.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { FleetMember } from '../run/fleet-member.ts';
import { type Draining, workflowMember } from '../run/workflow-member.ts';
import { type ApprovedOperations, approvedMember } from './approved-member.ts';
import { readControlPlaneSettings } from './fleet-configuration.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { fleetTargets } from './host-access.ts';
import { hostPlaces } from './host-places.ts';
import { hostWriteOptions } from './host-writing.ts';
import type { JoiningMemberInput } from './join-control-plane.ts';
import type { FleetAccess } from './open-fleet-cluster.ts';
import { installSources, planAfterPreparation } from './plan-prepared.ts';

/** A host, and for a saved or approved plan its exact operations. */
export interface FleetTask extends ApprovedOperations {
  readonly host: PlannedHost;
}

export interface FleetRunInput {
  /** In the order of the outcomes. */
  readonly tasks: readonly FleetTask[];
  /** All hosts of the file, which include its control planes; of a saved plan, its hosts. */
  readonly hosts: readonly PlannedHost[];
  readonly cluster: FleetCluster;
  /** The fleet file; relative paths are resolved against its directory. */
  readonly file: string;
  readonly reporter: Reporter;
}

export interface FleetMembersInput extends FleetRunInput {
  readonly access: FleetAccess;
  /** Plan without hooks: the run only compares the hosts with the file. */
  readonly ignoresHooks?: boolean;
  readonly claims?: NodeClaims | undefined;
  /** Absent: nodes are not drained. */
  readonly draining?: Draining | undefined;
  /**
   * Reads more about a connected host, before the host is planned.
   * @param queries those of the plan
   * @returns the host that is planned
   */
  readonly inspect?: ((connection: Host, host: PlannedHost, queries: FactQueries) => Promise<Host>) | undefined;
}

/**
 * The hosts of a fleet as members of a run: new workers join, and nodes receive the current settings of the
 * file and the cluster. The settings of the cluster are read once.
 * @throws errors of reading the cluster
 */
export async function fleetMembers(
  services: FleetRunPorts,
  request: FleetRunRequest,
  input: FleetMembersInput,
): Promise<readonly FleetMember[]> {
  const { access, tasks, file, draining } = input;
  const run = { ...request.run, allow: request.run.allow ?? DEFAULT_ALLOWED };
  const targetOf = await fleetTargets(services, request.connection, file);
  const shared = await sharedJoinOptions(services, input, { run, takeOver: request.takeOver });
  const writing = hostWriteOptions(services, request.writing);
  const sources = await installSources(services, {
    file,
    clusterExceptions: shared.baseline.proxyExceptions,
    joinServer: access.apiServer.server,
    bundle: request.bundle,
  });
  const certificateKey = lazily(async () => {
    const { uploadFleetCerts } = await import('./join-control-plane.ts');
    return uploadFleetCerts(services, { ...request, run }, input, (host) => services.connectHost(targetOf(host)));
  });
  const controlPlaneSettings = lazily(() => readControlPlaneSettings(services, input));
  const isPlaced = input.ignoresHooks !== true && (request.rules.order !== undefined || tasks.some(({ host }) => isControlPlane(host)));
  const placeOf = await hostPlaces(isPlaced ? access.cluster : null, input.hosts);
  const memberOf = async (task: FleetTask): Promise<FleetMember> => {
    const { host, operations, origin = 'saved' } = task;
    const { name, role, nodeRegistration } = host;
    const target = targetOf(host);
    const join = { ...shared, ...nodeOptionsOf(host) };
    const connect = async (reporter?: Reporter): Promise<Host> => {
      const connection = await services.connectHost(target, reporter);
      try {
        return (await input.inspect?.(connection, host, joinWorkflow.queries?.(join) ?? {})) ?? connection;
      } catch (error) {
        await connection.close();
        throw error;
      }
    };
    const common = {
      ...{ name, connect, cluster: access.cluster, clock: services.clock, claims: input.claims, draining },
      writing: await writing(target),
    };
    const { hooks: _, ...withoutHooks } = host;
    const exact = operations === undefined || request.replan ? undefined : origin;
    const planOf = planAfterPreparation(input.ignoresHooks === true ? withoutHooks : host, sources, { ...run, exact });
    const member =
      role === 'control-plane'
        ? controlPlaneMember(services, { common, planOf, join, settings: await controlPlaneSettings() }, certificateKey)
        : { ...workflowMember({ ...common, planHost: planOf(joinWorkflow, join) }), stage: WORKERS };
    const { zone, isControlPlane: isPresent } = placeOf(host);
    const place = role === 'control-plane' && isPresent ? { stage: PRESENT_CONTROL_PLANES, zone } : { zone };
    return approvedMember({ ...member, ...place, node: nodeRegistration.name }, task, request);
  };
  return Promise.all(tasks.map(memberOf));
}

/** The options for joining that all hosts of a run have in common. */
async function sharedJoinOptions(
  services: FleetRunPorts,
  { access }: FleetMembersInput,
  { run, takeOver }: Pick<JoinOptions, 'run' | 'takeOver'>,
) {
  const catalogue = await loadCatalogue();
  return {
    templates: await services.templates(),
    catalogue,
    groups: new NodeGroups(),
    baseline: await readClusterBaseline(access.cluster, catalogue),
    settings: [],
    patches: [],
    skipPreflight: false,
    run,
    staged: false,
    kubeletHealthCheckMs: 240_000,
    apiServer: async () => access.apiServer,
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
}

function lazily<T>(query: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => {
    asked ??= query();
    return asked;
  };
}

/**
 * Stages of a run: the control plane that bootstraps the cluster, those that join, the workers, and the existing control
 * planes, whose kubelets are changed when the workers have shown the effect.
 */
export const FIRST_CONTROL_PLANE = 0;
export const OTHER_CONTROL_PLANES = 1;
export const WORKERS = 2;
const PRESENT_CONTROL_PLANES = 3;

/**
 * A control plane of an existing cluster: processed one at a time. The kubelet of a joined one receives the settings of the
 * file and the cluster; its components are not changed. A new or partly joined one joins before the workers.
 * @param certificateKey uploads the certificates
 */
export function controlPlaneMember(services: FleetRunPorts, input: JoiningMemberInput, certificateKey: () => Promise<Secret>): FleetMember {
  const { common, planOf, join, settings } = input;
  const { name } = common;
  const patches = settings.patches?.filter(isForKubelet) ?? null;
  const options = { ...join, patches, ignoreSavedSettings: false, nodeName: join.nodeRegistration.name ?? null };
  const present = workflowMember({ ...common, planHost: planOf(upgradeNodeWorkflow, options) });
  const memberByState = async ({ signal, isInspection, connection }: Parameters<FleetMember['open']>[0]): Promise<FleetMember> => {
    const state = await (connection === undefined
      ? connectAndObserveControlPlane(common.connect, common.cluster, signal)
      : observeControlPlaneState(connection, common.cluster, signal));
    if (state === 'present') return present;
    const how = state === 'none' ? 'joins' : 'resumes joining';
    if (isInspection) return deferredMember(name, `${how} as a control plane after apply has uploaded the certificates`);
    const { joiningMember } = await import('./join-control-plane.ts');
    return joiningMember(services, input, await certificateKey());
  };
  return {
    name,
    stage: OTHER_CONTROL_PLANES,
    isExclusive: true,
    open: async (ports) => {
      let member: FleetMember;
      try {
        member = await memberByState(ports);
      } catch (error) {
        await ports.connection?.close();
        throw error;
      }
      const open = await member.open(ports);
      // The Node may have another name than the host, so that the place of the host is known only now.
      return member === present ? { ...open, planned: { ...open.planned, stage: PRESENT_CONTROL_PLANES } } : open;
    },
  };
}

/** A host whose changes are still unknown. */
export function deferredMember(name: string, deferred: string): FleetMember {
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
