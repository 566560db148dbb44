import { DEFAULT_CA_CERT_PATH } from '../core/config/defaults.ts';
import { AppError } from '../core/errors.ts';
import type { FleetOverlay, ResolvedHost } from '../core/fleet/model.ts';
import { loadCatalogue } from '../core/kubelet/catalogue.ts';
import type { FleetMember } from '../engine/fleet.ts';
import { workflowMember } from '../engine/workflow-member.ts';
import type { HostTarget, Services } from '../ports/services.ts';
import { readClusterBaseline } from '../workflows/cluster-baseline.ts';
import { type JoinOptions, joinWorkflow } from '../workflows/join.ts';
import type { FleetAccess } from './fleet-cluster.ts';
import type { CommandOptions } from './program.ts';
import { flagList, readSshOptions } from './read-options.ts';
import { readWriting } from './writing-options.ts';

/** What of a host of a fleet its node is made of. */
export type FleetHost = Pick<ResolvedHost, 'name' | 'role' | 'groups' | 'ssh' | 'nodeRegistration' | 'declared'> & {
  readonly overlays: readonly Pick<FleetOverlay, 'document'>[];
};

export interface FleetMembersInput {
  readonly hosts: readonly FleetHost[];
  /** Relative key files count from there. */
  readonly directory: string;
  readonly access: FleetAccess;
  readonly dryRun: boolean;
}

/**
 * The hosts of a fleet as members of a run: workers join, and those that have joined get what the file and the cluster say now. What the cluster says is read once.
 * @throws what reading the cluster throws
 */
export async function fleetMembers(services: Services, options: CommandOptions, input: FleetMembersInput): Promise<readonly FleetMember[]> {
  const { access, dryRun, hosts } = input;
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
  const member = async (host: FleetHost): Promise<FleetMember> => {
    const { name, role, nodeRegistration, declared, overlays } = host;
    if (role === 'control-plane') return { name, open: () => Promise.reject(noControlPlane(name)) };
    const target = targetOf(host);
    return workflowMember({
      name,
      workflow: joinWorkflow,
      options: { ...shared, nodeRegistration, declared, overlays: overlays.map(({ document }) => document) },
      run: { dryRun, skipPhases: [] },
      connect: () => services.connectHost(target),
      cluster: access.cluster,
      clock: services.clock,
      writing: dryRun ? null : await writing(target),
    });
  };
  return Promise.all(hosts.map(member));
}

/** How each host is reached, by fleet file and command line. */
export async function fleetTargets(
  services: Services,
  options: CommandOptions,
  directory: string,
): Promise<(host: Pick<FleetHost, 'name' | 'ssh'>) => HostTarget> {
  const ssh = await readSshOptions(services, options);
  return ({ name, ssh: own }) => ({ member: { name, ssh: own, directory }, ssh });
}

function noControlPlane(host: string): AppError {
  const message = 'control planes are not set up from a fleet file yet';
  const mend = 'Set it up with kubeadm, and leave it out with --limit';
  return new AppError({ host, code: 'NOT_BUILT', message, mend }, { exitCode: 3 });
}
