import type { Reporter } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from './open-cluster.ts';

/**
 * The cluster of `--kubeconfig`, connected on first use: commands that only read files need no cluster.
 * @param run.writes reports context and server URL when the cluster is connected; default: the command only reads
 */
export function lazyCluster(
  services: OpenClusterPorts,
  request: KubeconfigRequest,
  { writes = null }: { readonly writes?: Reporter | null } = {},
) {
  let opened: Promise<Cluster> | null = null;
  const open = async (): Promise<Cluster> => {
    const { openCluster } = await import('./open-cluster.ts');
    const { cluster } = await openCluster(services, request, { writes });
    if (cluster === null) throw new Error('a real run has a cluster');
    return cluster;
  };
  return {
    /** Connects on the first call. Throws AppError NO_API_SERVER when no API server is configured. */
    open: () => {
      opened ??= open();
      return opened;
    },
    close: async () => {
      const cluster = await opened?.catch(() => null);
      await cluster?.close();
    },
  };
}

/** Uses the cluster of `--kubeconfig`, and closes the connection. @param writes as for `lazyCluster` */
export async function withCluster<Result>(
  services: OpenClusterPorts,
  request: KubeconfigRequest,
  use: (cluster: Cluster) => Promise<Result>,
  writes: Reporter | null = null,
): Promise<Result> {
  const cluster = lazyCluster(services, request, { writes });
  try {
    return await use(await cluster.open());
  } finally {
    await cluster.close();
  }
}
