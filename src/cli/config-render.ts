import { stringify } from 'yaml';
import { AppError, type ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import type { DesiredFile } from '../host/plan/diff-file.ts';
import { mergeInitFlags } from '../kubeadm/config/flags.ts';
import { initWorkflow } from '../kubeadm/workflows/init.ts';
import type { CommandOptions } from './command.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { readNodeOptions } from './node-options.ts';
import { openCluster } from './open-cluster.ts';
import { flagText, kubeadmFlags, readHostTargets, verbosityOf } from './read-options.ts';
import type { Services } from './services.ts';

/** `config render`: the files a node would get from init, as text. Nothing is compared with what is there, nothing is written. */
export async function runRender(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const config = mergeInitFlags(
    await loadConfigFile(services, options, ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration']),
    kubeadmFlags(options),
  );
  const warnings = requireValid(config);
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const node = { ...(await readNodeOptions(services, { config, kind: 'init', options, reporter })), dryRun: true };
  const opened = await openCluster(services, options, { dryRun: true, staged: node.staged, writes: null });
  try {
    for (const target of await readHostTargets(services, options)) {
      const host = await services.connectHost(target);
      const context = { host, cluster: opened.cluster, clock: services.clock, reporter, signal: services.signal };
      const prepared = await initWorkflow
        .prepare(context, {
          ...node,
          cluster: config.cluster ?? {},
          kubelet: config.kubelet ?? null,
          bootstrapTokens: [],
          freshTokens: [await services.newToken()],
          makesTokens: false,
          withholdToken: true,
          showJoinCommand: () => undefined,
          apiServer: null,
          forceUpload: false,
          tlsBootstrapMs: 0,
        })
        .finally(() => host.close());
      for (const { code, message } of [...warnings, ...opened.warnings, ...prepared.warnings])
        reporter.report({ level: 'warning', code, message });
      const { files, unitFiles } = prepared.input.kubeletStart;
      const chosen = [...unitFiles, ...files].filter(({ path }) => args.length === 0 || args.includes(path));
      const unknown = args.find((path) => !chosen.some((file) => file.path === path));
      if (unknown !== undefined) throw noSuchFile(unknown, host.name, [...unitFiles, ...files]);
      services.output.document(
        renderFiles(chosen, flagText(options, 'output') ?? 'text', options.showOrigin === true ? (prepared.origins ?? {}) : {}, host.name),
      );
    }
    return 0;
  } finally {
    await opened.cluster?.close();
  }
}

function noSuchFile(path: string, host: string, files: readonly DesiredFile[]): AppError {
  const message = `config render ${path}: init writes no such file on ${host}`;
  const hint = `The files are ${files.map((file) => file.path).join(', ')}. A configuration file is given with --config`;
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}

function renderFiles(
  files: readonly DesiredFile[],
  format: string,
  origins: Readonly<Record<string, Readonly<Record<string, string>>>>,
  host: string,
): string {
  if (format !== 'text') {
    const list = files.map(({ path, content, mode, owner }) => ({
      path,
      mode: mode.toString(8).padStart(4, '0'),
      owner,
      content: content.toString(),
      ...(origins[path] ? { origin: origins[path] } : {}),
    }));
    const document = { host, files: list };
    return format === 'json' ? `${printableJson(document, 2)}\n` : `---\n${stringify(document, { lineWidth: 0 })}`;
  }
  return files
    .map(({ path, content }) => {
      const notes = Object.entries(origins[path] ?? {}).map(([field, origin]) => `#   ${field}: ${origin}\n`);
      return `# ${path}\n${notes.join('')}${content.toString()}`;
    })
    .join('\n');
}
