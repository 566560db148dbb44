import { unlessRefused } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { cordonOwner, obstacleOf, ownConditions } from '../node-hold.ts';
import { type HoldRun, setConditions, withNode } from './hold.ts';

/**
 * The nodes that a run is going to drain. Their condition MaintenancePlanned is set as soon as the run has planned the drain,
 * and removed by the drain, or when the run is done with the node. At most one patch of a node each, after one read. Errors
 * of the API server are ignored: the condition only informs others.
 */
export interface PlannedDrains {
  readonly run: HoldRun;
  /** Nodes that others hold, and those that are cordoned already, get no condition. */
  add(cluster: Cluster, nodes: readonly string[]): Promise<void>;
  remove(node: string): Promise<void>;
  removeAll(): Promise<void>;
}

const AT_ONCE = 8;

export function plannedDrains(run: HoldRun): PlannedDrains {
  const planned = new Map<string, Cluster>();
  const mark = async (node: KubeObject, cluster: Cluster): Promise<void> => {
    if (cordonOwner(node) !== null || obstacleOf(node, { ...run, now: run.clock.now() }) !== null) return;
    await setConditions(cluster, node, { MaintenancePlanned: 'AdminRequested' }, run);
  };
  const remove = async (name: string): Promise<void> => {
    const cluster = planned.get(name);
    planned.delete(name);
    if (cluster !== undefined) await unlessRefused(removePlanned(cluster, name, (node) => ownConditions(node).run === run.run));
  };
  return {
    run,
    add: async (cluster, nodes) => {
      const added = nodes.filter((name) => !planned.has(name));
      for (const name of added) planned.set(name, cluster);
      await inParallel(added, AT_ONCE, (name) => unlessRefused(withNode(cluster, name, (node) => mark(node, cluster))));
    },
    remove,
    removeAll: async () => void (await inParallel([...planned.keys()], AT_ONCE, remove)),
  };
}

/**
 * Removes MaintenancePlanned from a node that is not cordoned by this program, for example after a run that was killed.
 * @param isOwn whether the condition may be removed
 * @returns whether it was removed
 */
export async function removePlanned(cluster: Cluster, name: string, isOwn: (node: KubeObject) => boolean): Promise<boolean> {
  const removed = await withNode(cluster, name, async (node) => {
    if (cordonOwner(node) !== null || !isOwn(node)) return false;
    await setConditions(cluster, node, {}, null);
    return true;
  });
  return removed === true;
}
