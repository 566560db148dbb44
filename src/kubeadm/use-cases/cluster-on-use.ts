import type { Reporter } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from './open-cluster.ts';

export interface ClusterOnUse {
  /** Throws AppError NO_API_SERVER where there is none to talk to. */
  readonly open: () => Promise<Cluster>;
  readonly close: () => Promise<void>;
}

/**
 * The cluster of `--kubeconfig`, connected when it is asked for first: what reads files alone needs none.
 * @param run.writes names the cluster when it is connected; default: the command only reads
 */
export function clusterOnUse(
  services: OpenClusterPorts,
  request: KubeconfigRequest,
  { writes = null }: { readonly writes?: Reporter | null } = {},
): ClusterOnUse {
  let opened: Promise<Cluster> | null = null;
  const open = async (): Promise<Cluster> => {
    const { openCluster } = await import('./open-cluster.ts');
    const { cluster } = await openCluster(services, request, { dryRun: false, staged: false, writes });
    if (cluster === null) throw new Error('a real run has a cluster');
    return cluster;
  };
  return {
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
