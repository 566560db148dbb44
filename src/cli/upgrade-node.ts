import { type ExitCode, usageError } from '../base/errors.ts';
import { mergeUpgradeFlags } from '../kubeadm/config/flags.ts';
import { type UpgradeNodeOptions, upgradeNodeWorkflow } from '../kubeadm/workflows/upgrade-node.ts';
import { loadCatalogue } from '../kubelet/catalogue.ts';
import type { CommandOptions } from './command.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { nodeCluster } from './node-cluster.ts';
import { declaredFields, durationMs, isForKubelet, readOverlay, readPatches } from './node-options.ts';
import { openCluster } from './open-cluster.ts';
import { flagList, flagText, isKubeconfigGiven, kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { trustOf } from './trust-of.ts';

/** `upgrade node` and `upgrade node phase NAME...`. */
export async function runUpgradeNode(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const config = mergeUpgradeFlags(await loadConfigFile(services, options, ['UpgradeConfiguration']), 'node', kubeadmFlags(options));
  const warnings = requireValid(config);
  const { node = {}, timeouts } = config.upgrade ?? {};
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const overlay = flagText(options, 'overlay');
  const settings = flagList(options, 'set');
  const directory = node.patches?.directory;
  const skipPhases = [...flagList(options, 'skipPhases'), ...(node.skipPhases ?? [])];
  const dryRun = options.dryRun === true || node.dryRun === true;
  const workflowOptions: Omit<UpgradeNodeOptions, 'trust' | 'nodeName'> = {
    templates: await services.templates(),
    catalogue: await loadCatalogue(),
    overlays: overlay === undefined ? null : await readOverlay(services, overlay),
    declared: declaredFields(options),
    settings: settings.length === 0 ? null : settings,
    patches: directory === undefined ? null : (await readPatches(services, directory, reporter)).filter(isForKubelet),
    forget: options.forget === true,
    ignorePreflightErrors: node.ignorePreflightErrors ?? [],
    skipPreflight: skipPhases.includes('preflight'),
    dryRun,
    staged: false,
    kubeletHealthCheckMs: durationMs(timeouts?.kubeletHealthCheck, 240_000),
  };
  const targets = await readHostTargets(services, options);
  const nodeName = flagText(options, 'nodeName') ?? null;
  if (nodeName !== null && targets.length > 1)
    throw usageError('--node-name is for one host, and several were given', 'Upgrade them one by one');
  const admin = isKubeconfigGiven(options)
    ? await openCluster(services, options, { dryRun: false, staged: false, writes: reporter })
    : null;
  try {
    const trust = admin === null ? null : trustOf(services, admin);
    return await runOnHosts(services, {
      workflow: upgradeNodeWorkflow,
      targets,
      cluster: admin?.cluster ?? null,
      ...(admin === null ? { clusterOf: (host) => nodeCluster(services, host) } : {}),
      workflowOptions: { ...workflowOptions, trust, nodeName },
      options,
      reporter,
      warnings,
      dryRun,
      skipPhases,
      ...(args.length === 0 ? {} : { onlyPhase: args.join('/') }),
    });
  } finally {
    await admin?.cluster?.close();
  }
}
