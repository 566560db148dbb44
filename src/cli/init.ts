import { mergeInitFlags } from '../core/config/flags.ts';
import type { ExitCode } from '../core/errors.ts';
import type { Services } from '../ports/services.ts';
import { type InitOptions, initWorkflow } from '../workflows/init.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { durationMs, readNodeOptions } from './node-options.ts';
import { openCluster } from './open-cluster.ts';
import type { CommandOptions } from './program.ts';
import { kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';

/** `init` and `init phase NAME...`. */
export async function runInit(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const config = mergeInitFlags(
    await loadConfigFile(services, options, ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration']),
    kubeadmFlags(options),
  );
  const warnings = requireValid(config);
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const node = await readNodeOptions(services, { config, kind: 'init', options, reporter });
  const { dryRun, staged } = node;
  const opened = await openCluster(services, options, { dryRun, staged });
  try {
    const init = config.init ?? {};
    const workflowOptions: InitOptions = {
      ...node,
      cluster: config.cluster ?? {},
      kubelet: config.kubelet ?? null,
      bootstrapTokens: init.bootstrapTokens ?? [],
      apiServer: opened.apiServer,
      forceUpload: options.forceUpload === true,
      tlsBootstrapMs: durationMs(init.timeouts?.tlsBootstrap, 300_000),
    };
    return await runOnHosts(services, {
      workflow: initWorkflow,
      targets: await readHostTargets(services, options),
      cluster: opened.cluster,
      workflowOptions,
      options,
      reporter,
      warnings: [...warnings, ...opened.warnings],
      dryRun,
      skipPhases: init.skipPhases ?? [],
      ...(args.length === 0 ? {} : { onlyPhase: args.join('/') }),
    });
  } finally {
    await opened.cluster?.close();
  }
}
