import type { Clock } from '../../base/clock.ts';
import { memoized } from '../../base/memoized.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { CONTROL_PLANE_LABEL } from '../../kube/node-marks.ts';
import { leftCordoned } from '../../maintenance/drain/hold.ts';
import { readClusterView } from '../../maintenance/forecast/read-cluster-view.ts';
import type { LockOwnerPorts } from '../ports.ts';
import type { Draining } from '../run/workflow-member.ts';

/**
 * How the nodes of a run are drained, in a dry run only forecast; undefined: not at all.
 * @param count number of hosts or Nodes of the run: after the only one, nothing waits for its evicted pods
 */
export async function drainingOf(
  { self, newId, clock }: LockOwnerPorts & { readonly clock: Clock },
  { drain, dryRun }: Pick<RunSettings, 'drain' | 'dryRun'>,
  count: number,
): Promise<Draining | undefined> {
  if (drain === undefined) return undefined;
  const policy = count === 1 ? { ...drain, settleMs: 0 } : drain;
  const controlPlanes = memoized(controlPlaneNodes);
  if (dryRun) return { policy, controlPlanes, forecast: memoized(readClusterView) };
  const run = { run: await newId(), self, clock, reason: 'change of the kubelet configuration' };
  return { policy, controlPlanes, run, leftCordoned: memoized((cluster) => leftCordoned(cluster, run)) };
}

/** One request; control planes of kubeadm up to 1.19 are not found. */
async function controlPlaneNodes(cluster: Cluster): Promise<ReadonlySet<string>> {
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: CONTROL_PLANE_LABEL });
  return new Set(items.map(({ metadata }) => metadata.name));
}
