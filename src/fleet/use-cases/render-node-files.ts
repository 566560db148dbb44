import { AppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { type RunSettings, toPlan } from '../../host/run-settings.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { type NodeRequest, readNodeOptions } from '../../kubeadm/use-cases/node-options.ts';
import { type KubeconfigRequest, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { type DesignedFirstNode, designFirstNode, observeClusterSettings } from '../../kubeadm/workflows/node/design-first-node.ts';
import type { NodeOptions } from '../../kubeadm/workflows/node/node-options.ts';
import { observeNode } from '../../kubeadm/workflows/node/observe-node.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';

export interface RenderRequest {
  /** The files to render; empty: all of them. */
  readonly paths: readonly string[];
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
  readonly node: NodeRequest;
  readonly run: RunSettings;
}

export interface RenderedFiles {
  readonly host: string;
  readonly files: readonly DesiredFile[];
  /** The source of each field, by path of the file. */
  readonly origins: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/**
 * Renders the files that init would write on each host. Nothing is compared or written.
 * @param view.rendered receives the files of each host when they are rendered
 * @throws AppError USAGE (exit code 2) for a path that init does not write; problems of the configuration; errors of
 * the host and the cluster
 */
export async function renderNodeFiles(
  services: NodeCommandPorts,
  request: RenderRequest,
  { reporter, rendered }: { readonly reporter: Reporter; readonly rendered: (files: RenderedFiles) => void },
): Promise<void> {
  const { paths } = request;
  const config = mergeInitFlags(
    await loadConfigFile(services, request.config, ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration']),
    request.flags,
  );
  const warnings = requireValid(config);
  const staged = request.hosts.rootDir !== undefined;
  const declared = await readNodeOptions(services, { config, kind: 'init', node: request.node, run: request.run, staged, reporter });
  const node = toPlan({ ...declared, run: { ...declared.run, podLoss: 'ignore' } });
  const opened = await openCluster(services, request.cluster, { ...node.run, staged: node.staged, writes: null });
  try {
    for (const target of await readHostTargets(services, request.hosts)) {
      const host = await services.connectHost(target);
      const context = { host, cluster: opened.cluster, clock: services.clock, reporter, signal: services.signal };
      const prepared = await designNode(context, node, config).finally(() => host.close());
      for (const { code, message } of [...warnings, ...opened.warnings, ...prepared.warnings])
        reporter.report({ level: 'warning', code, message });
      const { files, unitFiles } = prepared.start;
      const chosen = [...unitFiles, ...files].filter(({ path }) => paths.length === 0 || paths.includes(path));
      const unknown = paths.find((path) => !chosen.some((file) => file.path === path));
      if (unknown !== undefined) throw noSuchFile(unknown, host.name, [...unitFiles, ...files]);
      rendered({ host: host.name, files: chosen, origins: prepared.design.origins });
    }
  } finally {
    await opened.cluster?.close();
  }
}

/** The files of the host as the first node of a new cluster, or of the given one. */
async function designNode(
  context: PhaseContext,
  options: NodeOptions,
  { cluster = {}, kubelet }: Pick<LoadedConfig, 'cluster' | 'kubelet'>,
): Promise<DesignedFirstNode> {
  const running = context.cluster;
  const node = await observeNode(context, options);
  const settings = await observeClusterSettings(running, cluster, node.facts.kubelet);
  const designed = await designFirstNode(context, { ...options, kubelet: kubelet ?? null }, { node, running, ...settings });
  return { ...designed, warnings: [...settings.warnings, ...designed.warnings] };
}

function noSuchFile(path: string, host: string, files: readonly DesiredFile[]): AppError {
  const message = `config render: ${path} is not one of the files that can be shown for ${host}`;
  const hint = `Pass one of these paths: ${files.map((file) => file.path).join(', ')}. To pass a configuration file, use --config`;
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}
