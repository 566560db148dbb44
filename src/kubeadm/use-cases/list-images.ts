import type { RunTime } from '../../base/clock.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { Flags } from '../config/flag-values.ts';
import { mergeInitFlags } from '../config/flags.ts';
import { controlPlaneImages } from '../control-plane/images.ts';
import type { ClusterConnections } from '../ports.ts';
import { settleCluster } from '../workflows/control-plane/settle-cluster.ts';
import { releaseOf } from './control-plane-inputs.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';

export interface ImagesRequest {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
}

export interface ListedImages {
  readonly images: readonly string[];
  readonly warnings: readonly Warning[];
}

/**
 * The images of a control plane with this configuration.
 * @throws AppError: problems of the configuration, all at once (exit code 2)
 */
export async function listImages(
  services: LocalFiles & Pick<ClusterConnections, 'web'> & Pick<RunTime, 'signal'>,
  { config: file, flags }: ImagesRequest,
): Promise<ListedImages> {
  const kinds = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;
  const config = mergeInitFlags(await loadConfigFile(services, file, kinds), flags);
  const found = requireValid(config);
  const { cluster, warnings } = await settleCluster({
    found: {},
    declared: config.cluster ?? {},
    bindPort: 6443,
    kubelet: null,
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    skips: () => false,
  });
  return { images: controlPlaneImages(cluster), warnings: [...found, ...warnings] };
}
