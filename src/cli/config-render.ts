import { stringify } from 'yaml';
import { AppError, type ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import type { DesiredFile } from '../host/plan/diff-file.ts';
import type { Flags } from '../kubeadm/config/flag-values.ts';
import { mergeInitFlags } from '../kubeadm/config/flags.ts';
import { loadConfigFile, requireValid } from '../kubeadm/use-cases/load-config-file.ts';
import { type NodeRequest, readNodeOptions } from '../kubeadm/use-cases/node-options.ts';
import { type KubeconfigRequest, openCluster } from '../kubeadm/use-cases/open-cluster.ts';
import { initWorkflow } from '../kubeadm/workflows/init.ts';
import type { Services } from './services.ts';
import type { DocumentFormat } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

export interface ConfigRenderRequest {
  /** The files to print; empty: all of them. */
  readonly paths: readonly string[];
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
  readonly node: NodeRequest;
  readonly plan: PlanRequest;
}

/** `config render`: prints the files that init would write on a node. Nothing is compared or written. */
export async function runRender(services: Services, request: ConfigRenderRequest): Promise<ExitCode> {
  const { paths, plan } = request;
  const config = mergeInitFlags(
    await loadConfigFile(services, request.config, ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration']),
    request.flags,
  );
  const warnings = requireValid(config);
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const staged = request.hosts.rootDir !== undefined;
  const declared = await readNodeOptions(services, { config, kind: 'init', node: request.node, plan, staged, reporter });
  const node = { ...declared, dryRun: true };
  const opened = await openCluster(services, request.cluster, { dryRun: true, staged: node.staged, writes: null });
  try {
    for (const target of await readHostTargets(services, request.hosts)) {
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
      const chosen = [...unitFiles, ...files].filter(({ path }) => paths.length === 0 || paths.includes(path));
      const unknown = paths.find((path) => !chosen.some((file) => file.path === path));
      if (unknown !== undefined) throw noSuchFile(unknown, host.name, [...unitFiles, ...files]);
      services.output.document(renderFiles(chosen, plan.format, plan.showOrigin ? (prepared.origins ?? {}) : {}, host.name));
    }
    return 0;
  } finally {
    await opened.cluster?.close();
  }
}

function noSuchFile(path: string, host: string, files: readonly DesiredFile[]): AppError {
  const message = `config render ${path}: init writes no such file on ${host}`;
  const hint = `The files are ${files.map((file) => file.path).join(', ')}. To pass a configuration file, use --config`;
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}

function renderFiles(
  files: readonly DesiredFile[],
  format: DocumentFormat,
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
