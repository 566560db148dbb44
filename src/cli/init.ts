import { countMissingTokens } from '../core/config/defaults.ts';
import { mergeInitFlags } from '../core/config/flags.ts';
import type { ExitCode } from '../core/errors.ts';
import { Secret } from '../core/text/secret.ts';
import type { Services } from '../ports/services.ts';
import { type InitOptions, initWorkflow } from '../workflows/init.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { durationMs, readNodeOptions } from './node-options.ts';
import { openCluster } from './open-cluster.ts';
import type { CommandOptions } from './program.ts';
import { flagList, kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import { formatOf } from './show-document.ts';

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
  const onlyPhase = args.length === 0 ? undefined : args.join('/');
  const joinCommands = new Set<string>();
  const opened = await openCluster(services, options, { dryRun, staged });
  try {
    const init = config.init ?? {};
    const workflowOptions: InitOptions = {
      ...node,
      // These phases do not touch the host.
      skipPreflight: node.skipPreflight || (onlyPhase !== undefined && CLUSTER_PHASES.test(onlyPhase)),
      cluster: config.cluster ?? {},
      kubelet: config.kubelet ?? null,
      bootstrapTokens: init.bootstrapTokens ?? [],
      freshTokens: dryRun ? placeholderTokens(countMissingTokens(init)) : await freshTokens(services, countMissingTokens(init)),
      makesTokens: willRun('bootstrap-token', [...flagList(options, 'skipPhases'), ...(init.skipPhases ?? [])], onlyPhase),
      withholdToken: options.skipTokenPrint === true,
      showJoinCommand: (command) => joinCommands.add(command.reveal()),
      apiServer: opened.apiServer,
      forceUpload: options.forceUpload === true,
      tlsBootstrapMs: durationMs(init.timeouts?.tlsBootstrap, 300_000),
    };
    const code = await runOnHosts(services, {
      workflow: initWorkflow,
      targets: await readHostTargets(services, options),
      cluster: opened.cluster,
      workflowOptions,
      options,
      reporter,
      warnings: [...warnings, ...opened.warnings],
      dryRun,
      skipPhases: init.skipPhases ?? [],
      ...(onlyPhase === undefined ? {} : { onlyPhase }),
    });
    printJoinCommands(services, [...joinCommands], options);
    return code;
  } finally {
    await opened.cluster?.close();
  }
}

const CLUSTER_PHASES = /^(?:bootstrap-token|upload-config|show-join-command)(?:\/|$)/;

function willRun(phase: string, skipped: readonly string[], onlyPhase: string | undefined): boolean {
  return !skipped.includes(phase) && (onlyPhase === undefined || onlyPhase === phase);
}

function freshTokens(services: Services, count: number): Promise<readonly Secret[]> {
  return Promise.all(Array.from({ length: count }, () => services.newToken()));
}

/** A dry run makes no tokens, and prints the same plan each time. */
function placeholderTokens(count: number): readonly Secret[] {
  return Array.from(
    { length: count },
    (_, i) => new Secret(`${'dryrun'.slice(0, 6 - String(i || '').length)}${i || ''}.${'0'.repeat(16)}`),
  );
}

/** On standard output, and only there. It would break a document. */
function printJoinCommands(services: Services, commands: readonly string[], options: CommandOptions): void {
  if (commands.length === 0) return;
  if (formatOf(options) === 'text')
    services.output.stdout(`\nJoin other nodes with:\n\n${commands.map((line) => `  ${line.trimEnd()}\n`).join('')}\n`);
  else services.output.stderr('The command that joins nodes: kubeletadm token create --print-join-command\n');
}
