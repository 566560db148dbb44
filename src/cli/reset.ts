import { type ExitCode, usageError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { mergeResetFlags } from '../kubeadm/config/flags.ts';
import type { ApiAccess } from '../kubeadm/workflows/control-plane/api-access.ts';
import { resetWorkflow } from '../kubeadm/workflows/reset.ts';
import type { CommandOptions } from './command.ts';
import { connectOver } from './init-control-plane.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { type OpenedCluster, openCluster } from './open-cluster.ts';
import { flagList, flagText, ignoredChecks, kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { trustOf } from './trust-of.ts';

/** `reset` and `reset phase NAME...`. */
export async function runReset(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const config = mergeResetFlags(await loadConfigFile(services, options, ['ResetConfiguration']), kubeadmFlags(options));
  const warnings = requireValid(config);
  const reset = config.reset ?? {};
  const dryRun = options.dryRun === true || reset.dryRun === true;
  const targets = await readHostTargets(services, options);
  if (!dryRun && options.force !== true && reset.force !== true)
    await confirmReset(
      services,
      targets.map(({ address, rootDir }) => address ?? rootDir ?? 'this machine'),
    );
  const skipPhases = reset.skipPhases ?? [];
  const nodeName = flagText(options, 'nodeName');
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const opened = await openForDeletion(services, { options, targets, reporter });
  const accesses: ApiAccess[] = [];
  try {
    return await runOnHosts(services, {
      workflow: resetWorkflow,
      targets,
      cluster: opened?.cluster ?? null,
      workflowOptions: {
        reset,
        ignorePreflightErrors: ignoredChecks(options),
        skipPreflight: [...flagList(options, 'skipPhases'), ...skipPhases].includes('preflight'),
        dryRun,
        connect: connectOver(services),
        connectEtcd: ({ host, ...target }) => services.connectEtcd({ ...target, from: host }),
        opened: (access) => accesses.push(access),
        ...(opened === null ? {} : { deleteNode: { trust: trustOf(services, opened), ...(nodeName === undefined ? {} : { nodeName }) } }),
      },
      options,
      reporter,
      warnings,
      dryRun,
      skipPhases,
      oneHostPerNode: opened !== null,
      ...(args.length === 0 ? {} : { onlyPhase: args.join('/') }),
    });
  } finally {
    for (const access of accesses) await access.close();
    await opened?.cluster?.close();
  }
}

/** The cluster with `--delete-node`; without it none is talked to. */
async function openForDeletion(
  services: Services,
  {
    options,
    targets,
    reporter,
  }: { readonly options: CommandOptions; readonly targets: readonly HostTarget[]; readonly reporter: Reporter },
): Promise<OpenedCluster | null> {
  const named = flagText(options, 'nodeName') !== undefined;
  if (options.deleteNode !== true) {
    if (named) throw usageError('--node-name is for --delete-node', 'Add --delete-node, or leave it out');
    return null;
  }
  if (named && targets.length > 1) throw usageError('--node-name is for one host, and several were given', 'Reset them one by one');
  return openCluster(services, options, { dryRun: false, staged: false, writes: reporter });
}

async function confirmReset(services: Services, hosts: readonly string[]): Promise<void> {
  const answer = await services.confirm(`Reset ${hosts.join(', ')}? Everything init or join put there is removed. [y/N] `);
  if (answer === null) throw usageError('reset asks before it removes anything, and there is no terminal to ask on', 'Add --force');
  if (!answer) throw usageError('reset was not confirmed', 'Nothing was changed');
}
