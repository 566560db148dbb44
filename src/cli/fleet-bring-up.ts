import { countMissingTokens } from '../core/config/defaults.ts';
import { mergeInitFlags } from '../core/config/flags.ts';
import type { LoadedConfig } from '../core/config/load.ts';
import { ADMIN_CONF } from '../core/control-plane/paths.ts';
import { AppError } from '../core/errors.ts';
import type { FleetCluster } from '../core/fleet/model.ts';
import type { PlannedHost } from '../core/fleet/saved-plan.ts';
import { loadCatalogue } from '../core/kubelet/catalogue.ts';
import type { FleetMember, FleetResult } from '../engine/fleet.ts';
import { workflowMember } from '../engine/workflow-member.ts';
import type { Host } from '../ports/host.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { Services } from '../ports/services.ts';
import type { ApiAccess } from '../workflows/control-plane/api-access.ts';
import { type InitControlPlaneOptions, initControlPlaneWorkflow } from '../workflows/init-control-plane.ts';
import { type FleetAccess, openFleetCluster } from './fleet-cluster.ts';
import {
  FIRST_CONTROL_PLANE,
  type FleetTask,
  fleetMembers,
  fleetTargets,
  OTHER_CONTROL_PLANES,
  prepareFirst,
  WORKERS,
} from './fleet-members.ts';
import { connectOver, releaseOf } from './init-control-plane.ts';
import { freshTokens, phaseSelection, placeholderTokens } from './init-tokens.ts';
import { installSources } from './install-sources.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { besideFleet } from './load-fleet.ts';
import { durationMs, isForKubelet, readPatches } from './node-options.ts';
import type { CommandOptions } from './program.ts';
import { flagList, kubeadmFlags } from './read-options.ts';
import { readWriting } from './writing-options.ts';

export interface BringUpInput {
  readonly tasks: readonly FleetTask[];
  readonly cluster: FleetCluster;
  readonly file: string;
  readonly directory: string;
  readonly dryRun: boolean;
  readonly reporter: Reporter;
  /** The control plane that makes the cluster. */
  readonly first: PlannedHost;
  /** Where its kubeconfig is written to. */
  readonly kubeconfig: string;
}

/** A cluster that comes to be in a run. */
export interface BringUp {
  readonly first: FleetMember;
  /** A host that is planned once the cluster is there. */
  later(host: PlannedHost): FleetMember;
  /** In a plan: that it waits. */
  waiting(host: PlannedHost): FleetMember;
  /** Writes the kubeconfig, where no other host had need of it. */
  settle(result: FleetResult): Promise<void>;
  close(): Promise<void>;
}

/** Join commands are for people; nodes of a fleet join by a token of their own. */
const LEFT_OUT = ['show-join-command'];

interface After {
  readonly access: FleetAccess;
  readonly members: ReadonlyMap<string, FleetMember>;
}

/**
 * Makes the members of a run that brings up a cluster: the first control plane makes it, the others join when its kubeconfig is here.
 * @throws AppError with exit code 2: what is wrong in `cluster.configuration`
 */
export async function bringUpCluster(services: Services, options: CommandOptions, input: BringUpInput): Promise<BringUp> {
  const { tasks, cluster, file, directory, dryRun, reporter, first, kubeconfig } = input;
  const accesses: ApiAccess[] = [];
  const targetOf = await fleetTargets(services, options, directory);
  const connect = (): Promise<Host> => services.connectHost(targetOf(first));
  const config = await readConfiguration(services, input);
  const workflowOptions = await initOptions(services, options, { input, config, opened: (access) => accesses.push(access) });
  const run = { dryRun, skipPhases: [...LEFT_OUT, ...(config.init?.skipPhases ?? [])] };
  const member = workflowMember({
    name: first.name,
    workflow: initControlPlaneWorkflow,
    options: workflowOptions,
    ...prepareFirst(first.preparation, installSources(services, directory), run),
    run,
    connect,
    cluster: null,
    clock: services.clock,
    writing: dryRun ? null : await readWriting(services, options)(targetOf(first)),
  });
  const openAfter = async (): Promise<After> => {
    await services.writeLocalFile(kubeconfig, await readAdminConf(connect, first.name));
    reporter.report({
      level: 'info',
      code: 'KUBECONFIG_WRITTEN',
      message: `${kubeconfig}: credentials of an administrator of the cluster`,
    });
    const own = { ...options, kubeconfig };
    const access = await openFleetCluster(services, own, { cluster, file, dryRun, reporter, through: connect });
    const others = tasks.filter(({ host }) => host !== first);
    const members = await fleetMembers(services, own, { tasks: others, directory, access, dryRun });
    return { access, members: new Map(members.map((each) => [each.name, each])) };
  };
  let after: Promise<After> | null = null;
  const onceThere = (): Promise<After> => {
    after ??= openAfter();
    return after;
  };
  return {
    first: { ...member, stage: FIRST_CONTROL_PLANE, isNeeded: true },
    later: ({ name, role }) => ({
      name,
      stage: role === 'control-plane' ? OTHER_CONTROL_PLANES : WORKERS,
      isAlone: role === 'control-plane',
      open: async (ports) => {
        const found = (await onceThere()).members.get(name);
        if (found === undefined) throw new Error(`${name} is no member of the run`);
        return found.open(ports);
      },
    }),
    waiting: ({ name }) => waitingMember(name, first.name),
    settle: async ({ outcomes }) => {
      const isThere = outcomes.some(({ host, status }) => host === first.name && (status === 'changed' || status === 'unchanged'));
      if (isThere && !dryRun) await onceThere();
    },
    close: async () => {
      for (const access of accesses) await access.close();
      await (await after?.catch(() => null))?.access.close();
    },
  };
}

/** The kubeadm documents of `cluster.configuration`; without any the endpoint that the file names is that of all control planes. */
async function readConfiguration(services: Services, { cluster, file }: BringUpInput): Promise<LoadedConfig> {
  const path = cluster.configuration && besideFleet(cluster.configuration, file, services.homeDirectory);
  const kinds = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;
  const loaded = await loadConfigFile(services, path === null ? {} : { config: path }, kinds);
  const flags = path === null && cluster.endpoint !== null ? { controlPlaneEndpoint: cluster.endpoint } : {};
  const config = mergeInitFlags(loaded, kubeadmFlags(flags));
  requireValid(config);
  return config;
}

interface InitOptionsInput {
  readonly input: BringUpInput;
  readonly config: LoadedConfig;
  readonly opened: (access: ApiAccess) => void;
}

/** What init takes from its documents, with what the fleet file says of the host over it. */
async function initOptions(
  services: Services,
  options: CommandOptions,
  { input: { first, dryRun, file, reporter }, config, opened }: InitOptionsInput,
): Promise<InitControlPlaneOptions> {
  const init = config.init ?? {};
  const directory = init.patches?.directory;
  const patches =
    directory === undefined ? [] : await readPatches(services, besideFleet(directory, file, services.homeDirectory), reporter);
  const registration = init.nodeRegistration ?? {};
  const selects = phaseSelection({ skipPhases: LEFT_OUT }, init.skipPhases ?? [], undefined);
  const count = countMissingTokens(init);
  return {
    templates: await services.templates(),
    catalogue: await loadCatalogue(),
    nodeRegistration: {
      ...registration,
      ...first.nodeRegistration,
      kubeletExtraArgs: [...(registration.kubeletExtraArgs ?? []), ...(first.nodeRegistration.kubeletExtraArgs ?? [])],
    },
    overlays: first.overlays.map(({ document }) => document),
    declared: first.declared,
    settings: [],
    patches: patches.filter(isForKubelet),
    staticPodPatches: patches.filter((patch) => !isForKubelet(patch)),
    ignorePreflightErrors: flagList(options, 'ignorePreflightErrors'),
    skipPreflight: false,
    dryRun,
    staged: false,
    kubeletHealthCheckMs: durationMs(init.timeouts?.kubeletHealthCheck, 240_000),
    cluster: config.cluster ?? {},
    kubelet: config.kubelet ?? null,
    kubeProxy: config.kubeProxy ?? null,
    localAPIEndpoint: init.localAPIEndpoint ?? {},
    advertisesNodeIP: true,
    timeouts: init.timeouts ?? {},
    proxyEnvironment: [],
    issuer: await services.certificateIssuer(),
    selects,
    routeHere: {},
    connect: connectOver(services),
    given: null,
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    forceUpload: false,
    bootstrapTokens: init.bootstrapTokens ?? [],
    freshTokens: dryRun ? placeholderTokens(count) : await freshTokens(services, count),
    makesTokens: (init.bootstrapTokens ?? []).length > 0,
    uploadCerts: false,
    certificateKey: null,
    certsToken: await services.newToken(),
    showCertificateKey: () => undefined,
    withholdCertificateKey: true,
    withholdToken: true,
    showJoinCommand: () => undefined,
    opened,
  };
}

async function readAdminConf(connect: () => Promise<Host>, name: string): Promise<string> {
  const host = await connect();
  try {
    const { admin } = await host.ask({ admin: { kind: 'file', path: ADMIN_CONF } });
    if (admin?.content !== undefined) return admin.content;
    const message = `there is no ${ADMIN_CONF} on it`;
    throw new AppError({ host: name, code: 'NO_API_SERVER', message, mend: 'Run apply again: it goes on from what is there' });
  } finally {
    await host.close();
  }
}

/** A host of which nobody can say what it gets before the cluster is there. */
function waitingMember(name: string, first: string): FleetMember {
  const deferred = `it joins the cluster that ${first} makes`;
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
