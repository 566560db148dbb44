import type { RunTime } from '../../base/clock.ts';
import type { Reporter } from '../../base/reporter.ts';
import { applyClusterChange } from '../../host/apply.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import type { ClusterName } from '../../host/plan/document.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { lazyCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { planGarbage } from '../workflows/collect-garbage.ts';

export interface CollectRequest {
  readonly olderThan: { readonly ms: number };
  readonly namespace: string;
  readonly cluster: KubeconfigRequest;
  readonly run: RunSettings;
}

interface CollectedConfigMaps {
  /** The planned changes of the cluster. */
  readonly changes: readonly ClusterChange[];
  readonly cluster: ClusterName;
  /** Names of the deleted ConfigMaps; empty for a dry run. */
  readonly deleted: readonly string[];
}

/**
 * Deletes the ConfigMaps that no node uses; a dry run only plans it.
 * @throws the errors of opening, reading and changing the cluster
 */
export async function collectConfigMaps(
  services: OpenClusterPorts & Pick<RunTime, 'clock'>,
  { olderThan, namespace, cluster: named, run }: CollectRequest,
  reporter: Reporter,
): Promise<CollectedConfigMaps> {
  const opened = lazyCluster(services, named, { writes: reporter });
  try {
    const cluster = await opened.open();
    const changes = await planGarbage(cluster, { namespace, now: services.clock.now(), olderThanMs: olderThan.ms });
    const deleted: string[] = [];
    if (run.dryRun) return { changes, cluster, deleted };
    for (const change of changes) {
      await applyClusterChange(cluster, change);
      if (change.kind === 'delete-object') deleted.push(change.ref.name);
    }
    return { changes, cluster, deleted };
  } finally {
    await opened.close();
  }
}
