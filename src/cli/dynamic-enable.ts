import { PROGRAM_DIRECTORY } from '../core/dynamic/agent/agent-program.ts';
import { NATIVE_DIRECTORY } from '../core/dynamic/native-flags.ts';
import type { Backend } from '../core/dynamic/node-config.ts';
import { type ExitCode, usageError } from '../core/errors.ts';
import { loadCatalogue } from '../core/kubelet/catalogue.ts';
import type { HostTarget, Services } from '../ports/services.ts';
import { disableWorkflow } from '../workflows/dynamic/disable-config.ts';
import { enableWorkflow } from '../workflows/dynamic/enable-config.ts';
import { agentAddress, checkAgentOptions } from './agent-options.ts';
import { openCluster } from './open-cluster.ts';
import type { CommandOptions } from './program.ts';
import { flagText, readSshOptions, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';

/** `dynamic enable HOST...`. */
export async function runDynamicEnable(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const targets = await readTargets(services, args, options);
  const agentOptions = checkAgentOptions(options);
  const { cluster, apiServer, warnings } = await openCluster(services, options, { dryRun: false, staged: false });
  try {
    return await runOnHosts(services, {
      workflow: enableWorkflow,
      targets,
      cluster,
      workflowOptions: {
        catalogue: await loadCatalogue(),
        backend: (flagText(options, 'backend') as Backend | undefined) ?? null,
        nodeName: nodeNameOf(options, targets),
        apiServer,
        namespace: flagText(options, 'namespace') ?? 'kube-system',
        program: {
          file: await services.readProgram(flagText(options, 'program')),
          directory: programDirectory(options),
          node: flagText(options, 'node') ?? null,
        },
        agentOptions,
        agentAddress: agentAddress(options),
        nativeDirectory: flagText(options, 'dynamicConfigDir') ?? NATIVE_DIRECTORY,
      },
      options,
      reporter: services.reporter({ verbosity: verbosityOf(options), format: 'text' }),
      warnings,
      dryRun: options.dryRun === true,
      skipPhases: [],
    });
  } finally {
    await cluster?.close();
  }
}

/** `dynamic disable HOST...`. */
export async function runDynamicDisable(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const targets = await readTargets(services, args, options);
  const { cluster, warnings } = await openCluster(services, options, { dryRun: false, staged: false });
  try {
    return await runOnHosts(services, {
      workflow: disableWorkflow,
      targets,
      cluster,
      workflowOptions: {
        catalogue: await loadCatalogue(),
        nodeName: nodeNameOf(options, targets),
        namespace: flagText(options, 'namespace') ?? 'kube-system',
        programDirectory: programDirectory(options),
      },
      options,
      reporter: services.reporter({ verbosity: verbosityOf(options), format: 'text' }),
      warnings,
      dryRun: options.dryRun === true,
      skipPhases: [],
    });
  } finally {
    await cluster?.close();
  }
}

async function readTargets(services: Services, args: readonly string[], options: CommandOptions): Promise<readonly HostTarget[]> {
  const twice = args.find((address, at) => args.indexOf(address) !== at);
  if (twice !== undefined) throw usageError(`${twice} is given twice`, 'Give each host once');
  const ssh = args.every((address) => address === 'localhost') ? null : await readSshOptions(services, options);
  return args.map((address) => (address === 'localhost' || ssh === null ? {} : { address, ssh }));
}

function nodeNameOf(options: CommandOptions, targets: readonly HostTarget[]): string | null {
  const name = flagText(options, 'nodeName') ?? null;
  if (name !== null && targets.length > 1) throw usageError('--node-name is for one host, and several were given', 'Do them one by one');
  return name;
}

function programDirectory(options: CommandOptions): string {
  const directory = flagText(options, 'programDir') ?? PROGRAM_DIRECTORY;
  if (!/^\/[^\0\n]*[^/]$/.test(directory))
    throw usageError(`--program-dir ${directory}: an absolute path is wanted`, 'e.g. /opt/kubeletadm');
  return directory;
}
