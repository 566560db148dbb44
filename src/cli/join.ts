import { DEFAULT_CA_CERT_PATH } from '../core/config/defaults.ts';
import { mergeJoinFlags } from '../core/config/flags.ts';
import { AppError, type ExitCode, usageError } from '../core/errors.ts';
import type { Services } from '../ports/services.ts';
import { joinWorkflow } from '../workflows/join.ts';
import { discoverCluster } from './discover.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { durationMs, readNodeOptions } from './node-options.ts';
import type { CommandOptions } from './program.ts';
import { flagText, kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';

/** `join [ADDRESS:PORT]`. */
export async function runJoin(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const loaded = await loadConfigFile(services, options, ['JoinConfiguration', 'KubeletConfiguration']);
  const caCert = flagText(options, 'caCert');
  // The CA itself says more than a pin of it.
  const trust = caCert === undefined ? {} : { 'discovery-token-unsafe-skip-ca-verification': true };
  const config = mergeJoinFlags(loaded, {
    ...kubeadmFlags(options),
    ...trust,
    ...(args[0] === undefined ? {} : { 'api-server-endpoint': args[0] }),
  });
  const warnings = requireValid(config);
  const join = config.join ?? {};
  if (join.controlPlane !== undefined)
    throw new AppError(
      { code: 'NOT_BUILT', message: 'joining control planes is not built yet', mend: 'Join it with kubeadm' },
      { exitCode: 2 },
    );
  const targets = await readHostTargets(services, options);
  if (targets.length > 1 && (flagText(options, 'nodeName') ?? flagText(options, 'nodeIp')) !== undefined) {
    throw usageError('--node-name and --node-ip are for one host, and several were given', 'Join the hosts one by one, or leave them out');
  }
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const node = await readNodeOptions(services, { config, kind: 'join', options, reporter });
  const { cluster, apiServer, token } = await discoverCluster(services, join, options);
  try {
    return await runOnHosts(services, {
      workflow: joinWorkflow,
      targets,
      cluster,
      workflowOptions: {
        ...node,
        apiServer,
        token,
        caCertPath: join.caCertPath ?? DEFAULT_CA_CERT_PATH,
        controlPlane: false,
        tlsBootstrapMs: durationMs(join.timeouts?.tlsBootstrap, 300_000),
      },
      options,
      reporter,
      warnings,
      dryRun: node.dryRun,
      skipPhases: join.skipPhases ?? [],
    });
  } finally {
    await cluster.close();
  }
}
