import { DEFAULT_CA_CERT_PATH } from '../core/config/defaults.ts';
import { AppError } from '../core/errors.ts';
import type { Question } from '../core/facts/question.ts';
import { differingOperations, type Operations, operationsOf } from '../core/fleet/operations.ts';
import type { PlannedHost } from '../core/fleet/saved-plan.ts';
import { isUndeclared } from '../core/install/model.ts';
import { loadCatalogue } from '../core/kubelet/catalogue.ts';
import type { FleetMember } from '../engine/fleet.ts';
import type { PhaseContext } from '../engine/phase.ts';
import { planStale, planWorkflow } from '../engine/run-workflow.ts';
import { workflowMember } from '../engine/workflow-member.ts';
import type { Host } from '../ports/host.ts';
import type { HostTarget, Services } from '../ports/services.ts';
import { readClusterBaseline } from '../workflows/cluster-baseline.ts';
import { type JoinOptions, joinWorkflow } from '../workflows/join.ts';
import { prepareHostWorkflow } from '../workflows/prepare-host.ts';
import type { FleetAccess } from './fleet-cluster.ts';
import { installSources } from './install-sources.ts';
import type { CommandOptions } from './program.ts';
import { flagList, readSshOptions } from './read-options.ts';
import { readWriting } from './writing-options.ts';

/** A host, and where a saved plan is applied what exactly is to be done on it. */
export interface FleetTask {
  readonly host: PlannedHost;
  readonly operations?: Operations;
}

export interface FleetMembersInput {
  readonly tasks: readonly FleetTask[];
  /** Relative key files count from there. */
  readonly directory: string;
  readonly access: FleetAccess;
  readonly dryRun: boolean;
  /** In place of a plain connection: who wants to know more of a host. Control planes are then looked at, too. */
  readonly connect?: (target: HostTarget, host: PlannedHost, questions: readonly Question[]) => Promise<Host>;
}

/**
 * The hosts of a fleet as members of a run: workers join, and those that have joined get what the file and the cluster say now. What the cluster says is read once.
 * @throws what reading the cluster throws
 */
export async function fleetMembers(services: Services, options: CommandOptions, input: FleetMembersInput): Promise<readonly FleetMember[]> {
  const { access, dryRun, tasks } = input;
  const targetOf = await fleetTargets(services, options, input.directory);
  const catalogue = await loadCatalogue();
  const ignorePreflightErrors = flagList(options, 'ignorePreflightErrors');
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
    takeOver: options.takeOver === true,
    waitReadyMs: null,
    admin: access.admin,
  } satisfies Partial<JoinOptions>;
  const writing = readWriting(services, options);
  const sources = installSources(services, input.directory);
  const memberOf = async ({ host, operations }: FleetTask): Promise<FleetMember> => {
    const { name, role, nodeRegistration, declared, overlays, preparation } = host;
    const target = targetOf(host);
    const own = { ...shared, nodeRegistration, declared, overlays: overlays.map(({ document }) => document) };
    const connect = async (): Promise<Host> =>
      input.connect?.(target, host, joinWorkflow.questions?.(own) ?? []) ?? services.connectHost(target);
    if (role === 'control-plane') return controlPlane(name, input.connect === undefined ? null : connect);
    const run = { dryRun, skipPhases: [], exact: operations !== undefined };
    const prepareHost = { ...sources, preparation };
    const member = workflowMember({
      name,
      workflow: joinWorkflow,
      options: own,
      ...(isUndeclared(preparation)
        ? {}
        : { first: (context: PhaseContext) => planWorkflow(prepareHostWorkflow(preparation), context, prepareHost, run) }),
      run,
      connect,
      cluster: access.cluster,
      clock: services.clock,
      writing: dryRun ? null : await writing(target),
    });
    return operations === undefined ? member : exactly(member, operations);
  };
  return Promise.all(tasks.map(memberOf));
}

/** A host that is refused when anything else than this would be done on it. Where nothing is left to do, all is well. */
function exactly(member: FleetMember, operations: Operations): FleetMember {
  return {
    name: member.name,
    open: async (ports) => {
      const open = await member.open(ports);
      const now = operationsOf(open.planned.host);
      const different = now.length === 0 ? [] : differingOperations(operations, now);
      if (different.length === 0) return open;
      await open.close();
      const shown = different.slice(0, 5).join('; ');
      throw planStale(member.name, `something changed since the plan was made: ${shown}${different.length > 5 ? '; …' : ''}`, 3);
    },
  };
}

/** How each host is reached, by fleet file and command line. */
export async function fleetTargets(
  services: Services,
  options: CommandOptions,
  directory: string,
): Promise<(host: Pick<PlannedHost, 'name' | 'ssh'>) => HostTarget> {
  const ssh = await readSshOptions(services, options);
  return ({ name, ssh: own }) => ({ member: { name, ssh: own, directory }, ssh });
}

/** Nothing is done on a control plane; it may be looked at. */
function controlPlane(name: string, connect: (() => Promise<Host>) | null): FleetMember {
  return {
    name,
    open: async () => {
      await (await connect?.())?.close();
      throw noControlPlane(name);
    },
  };
}

function noControlPlane(host: string): AppError {
  const message = 'control planes are not set up from a fleet file yet';
  const mend = 'Set it up with kubeadm, and leave it out with --limit';
  return new AppError({ host, code: 'NOT_BUILT', message, mend }, { exitCode: 3 });
}
