import { unlessRefused } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { removePlanned } from '../../maintenance/drain/planned-drains.ts';
import { cordonOwner, ownConditions } from '../../maintenance/node-hold.ts';
import { HOLD_PREFIX } from './change-nodes.ts';

const AT_ONCE = 8;

/**
 * Removes MaintenancePlanned from nodes that a rollout has marked and does not drain any more, also if the rollout was deleted or
 * another controller has marked them. Errors of the API server are ignored: the condition only informs others.
 * @param drains the nodes that each rollout will drain, by the id of its cordons; null: not known yet
 */
export async function removeMarks(
  cluster: Cluster,
  nodes: readonly KubeObject[],
  drains: ReadonlyMap<string, ReadonlySet<string> | null>,
): Promise<void> {
  const marked = nodes.filter((node) => {
    const { run, types } = ownConditions(node);
    const own = drains.get(run);
    const isKept = own === null || own?.has(node.metadata.name) === true || cordonOwner(node) !== null;
    return run.startsWith(HOLD_PREFIX) && types.includes('MaintenancePlanned') && !isKept;
  });
  await inParallel(marked, AT_ONCE, (node) => {
    const { run } = ownConditions(node);
    return unlessRefused(removePlanned(cluster, node.metadata.name, (now) => ownConditions(now).run === run));
  });
}
