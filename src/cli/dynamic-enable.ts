import { type ExitCode, usageError } from '../base/errors.ts';
import type { Backend } from '../dynamic/node-config.ts';
import { disableWorkflow } from '../dynamic/workflows/disable-config.ts';
import { enableWorkflow } from '../dynamic/workflows/enable-config.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import type { Workflow } from '../host/run-workflow.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { PROGRAM_DIRECTORY } from '../kubeadm/node-agent/agent-program.ts';
import { NATIVE_DIRECTORY } from '../kubeadm/node-agent/native-flags.ts';
import type { NodeTrust } from '../kubeadm/workflows/identify-node.ts';
import { type Catalogue, loadCatalogue } from '../kubelet/catalogue.ts';
import { agentAddress, checkAgentOptions } from './agent-options.ts';
import type { CommandOptions } from './command.ts';
import { openCluster } from './open-cluster.ts';
import { flagText, readCommandTimeout, readSshOptions, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { trustOf } from './trust-of.ts';

/** `dynamic enable HOST...`. */
export async function runDynamicEnable(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const agentOptions = checkAgentOptions(options);
  return runOn(services, args, options, async ({ common }) => ({
    workflow: enableWorkflow,
    workflowOptions: {
      ...common,
      namespace: flagText(options, 'namespace') ?? AGENT_NAMESPACE,
      backend: (flagText(options, 'backend') as Backend | undefined) ?? null,
      program: {
        file: await services.readProgram(flagText(options, 'program')),
        directory: programDirectory(options) ?? PROGRAM_DIRECTORY,
        node: flagText(options, 'node') ?? null,
      },
      agentOptions,
      agentAddress: agentAddress(options),
      nativeDirectory: flagText(options, 'dynamicConfigDir') ?? NATIVE_DIRECTORY,
    },
  }));
}

/** `dynamic disable HOST...`. */
export async function runDynamicDisable(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  return runOn(services, args, options, async ({ common }) => ({
    workflow: disableWorkflow,
    workflowOptions: { ...common, namespace: flagText(options, 'namespace') ?? null, programDirectory: programDirectory(options) },
  }));
}

interface Given {
  /** What both are told. */
  readonly common: { readonly catalogue: Catalogue; readonly nodeName: string | null; readonly trust: NodeTrust };
}

/** Runs a workflow on the hosts that are named, with the cluster they are nodes of. */
async function runOn<O, I>(
  services: Services,
  args: readonly string[],
  options: CommandOptions,
  what: (given: Given) => Promise<{ readonly workflow: Workflow<O, I>; readonly workflowOptions: O }>,
): Promise<ExitCode> {
  const targets = await readTargets(services, args, options);
  const named = { catalogue: await loadCatalogue(), nodeName: nodeNameOf(options, targets) };
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const opened = await openCluster(services, options, { dryRun: false, staged: false, writes: reporter });
  const { cluster, warnings } = opened;
  try {
    const common = { ...named, trust: trustOf(services, opened) };
    return await runOnHosts(services, {
      ...(await what({ common })),
      targets,
      cluster,
      options,
      reporter,
      warnings,
      dryRun: options.dryRun === true,
      skipPhases: [],
      oneHostPerNode: true,
    });
  } finally {
    await cluster?.close();
  }
}

async function readTargets(services: Services, args: readonly string[], options: CommandOptions): Promise<readonly HostTarget[]> {
  const twice = args.find((address, at) => args.indexOf(address) !== at);
  if (twice !== undefined) throw usageError(`${twice} is given twice`, 'Give each host once');
  const ssh = args.every((address) => address === 'localhost') ? null : await readSshOptions(services, options);
  const limit = readCommandTimeout(options);
  return args.map((address) => (address === 'localhost' || ssh === null ? limit : { address, ssh, ...limit }));
}

function nodeNameOf(options: CommandOptions, targets: readonly HostTarget[]): string | null {
  const name = flagText(options, 'nodeName') ?? null;
  if (name !== null && targets.length > 1) throw usageError('--node-name is for one host, and several were given', 'Do them one by one');
  return name;
}

function programDirectory(options: CommandOptions): string | null {
  const directory = flagText(options, 'programDir') ?? null;
  if (directory !== null && !/^\/[^\0\n]*[^/]$/.test(directory))
    throw usageError(`--program-dir ${directory}: an absolute path is wanted`, 'e.g. /opt/kubeletadm');
  return directory;
}
