import type { RunTime } from '../../base/clock.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { DEFAULT_RUN } from '../../host/run-settings.ts';
import type { Flags } from '../config/flag-values.ts';
import { mergeInitFlags } from '../config/flags.ts';
import type { ClusterConnections } from '../ports.ts';
import { resolveClusterConfiguration } from '../workflows/control-plane/resolve-cluster-configuration.ts';
import { releaseOf } from './control-plane-inputs.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';

export interface DocumentsRequest {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
}

/** Ports for reading the documents, and for resolving a version such as `stable-1`. */
export type DocumentPorts = LocalFiles & Pick<ClusterConnections, 'web'> & Pick<RunTime, 'signal'>;

/**
 * The documents of init, and the cluster with all values and a release as its version, without a host or a cluster.
 * @throws AppError: problems of the configuration, all at once (exit code 2)
 */
export async function resolveInitDocuments(services: DocumentPorts, { config: file, flags }: DocumentsRequest) {
  const kinds = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;
  const config = mergeInitFlags(await loadConfigFile(services, file, kinds), flags);
  const found = requireValid(config);
  const { cluster, warnings } = await resolveClusterConfiguration({
    found: {},
    declared: config.cluster ?? {},
    bindPort: config.init?.localAPIEndpoint?.bindPort ?? 6443,
    kubelet: null,
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    run: DEFAULT_RUN,
  });
  return { config, cluster, warnings: [...found, ...warnings] };
}
