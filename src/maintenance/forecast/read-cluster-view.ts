import { unlessRefused } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { numberAt, objectAt, textAt } from '../../kubelet/documents/values.ts';
import { readBudget } from './budget.ts';
import { budgetIndex } from './budget-index.ts';
import { readDrainPod } from './drain-pod.ts';
import type { ClusterView } from './forecast.ts';

const AT_ONCE = 8;

/**
 * Reads what a forecast needs: six lists, and the scale of controllers whose budget could be a deadlock. Volumes and
 * DaemonSets that the user may not list count as unknown.
 * @throws AppError of `Cluster`, if nodes, pods or budgets cannot be read
 */
export async function readClusterView(cluster: Cluster): Promise<ClusterView> {
  const minor = parseMinor(await cluster.version());
  const policy = minor !== null && minor < 21 ? 'policy/v1beta1' : 'policy/v1';
  const optional = (apiVersion: string, kind: string) =>
    unlessRefused(cluster.list({ apiVersion, kind })).then((found) => found?.items ?? null);
  const [nodes, pods, budgets, claims, volumes, daemonSets] = await Promise.all([
    cluster.list({ apiVersion: 'v1', kind: 'Node' }),
    cluster.list({ apiVersion: 'v1', kind: 'Pod' }),
    cluster.list({ apiVersion: policy, kind: 'PodDisruptionBudget' }),
    optional('v1', 'PersistentVolumeClaim'),
    optional('v1', 'PersistentVolume'),
    optional('apps/v1', 'DaemonSet'),
  ]);
  return {
    nodes: nodes.items,
    pods: pods.items,
    budgets: budgets.items,
    volumes: localVolumes(claims ?? [], volumes ?? []),
    scales: await readScales(cluster, pods.items, budgets.items),
    daemonSets: daemonSets === null ? null : new Set(daemonSets.flatMap(({ metadata }) => metadata.uid ?? [])),
  };
}

function localVolumes(claims: readonly KubeObject[], volumes: readonly KubeObject[]): ClusterView['volumes'] {
  const required = new Map(volumes.map((volume) => [volume.metadata.name, objectAt(volume, 'spec.nodeAffinity.required')]));
  return new Map<string, JsonObject>(
    claims.flatMap((claim) => {
      const affinity = required.get(textAt(claim, 'spec.volumeName'));
      const isLocal = affinity !== undefined && Object.keys(affinity).length > 0;
      return isLocal ? [[`${claim.metadata.namespace ?? ''}/${claim.metadata.name}`, affinity] as const] : [];
    }),
  );
}

/** Replicas by UID of the controllers whose pods have a budget that allows nothing and seems to need all of them. */
async function readScales(cluster: Cluster, pods: readonly KubeObject[], budgets: readonly KubeObject[]): Promise<ClusterView['scales']> {
  const strict = budgets.map(readBudget).filter((one) => one.disruptionsAllowed === 0 && one.desiredHealthy >= one.expectedPods);
  if (strict.length === 0) return new Map();
  const coveringOf = budgetIndex(strict);
  const owned = pods.map(readDrainPod).filter((pod) => coveringOf(pod).length > 0);
  const owners = new Map(
    owned.flatMap(({ controller, namespace }) =>
      controller === null || !['ReplicaSet', 'StatefulSet'].includes(controller.kind)
        ? []
        : [[controller.uid, { ...controller, namespace }] as const],
    ),
  );
  const read = await inParallel([...owners.values()], AT_ONCE, async ({ uid, ...ref }) => {
    const object = await unlessRefused(cluster.get(ref));
    const replicas = object === null || object.metadata.uid !== uid ? undefined : (numberAt(object, 'spec.replicas') ?? 1);
    return replicas === undefined ? [] : [[uid, replicas] as const];
  });
  return new Map(read.flat());
}
