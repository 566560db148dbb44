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
  const [nodes, pods, { budgets, daemonSets }, claims, volumes] = await Promise.all([
    cluster.list({ apiVersion: 'v1', kind: 'Node' }),
    cluster.list({ apiVersion: 'v1', kind: 'Pod' }),
    readPolicies(cluster),
    listIfPermitted(cluster, 'v1', 'PersistentVolumeClaim'),
    listIfPermitted(cluster, 'v1', 'PersistentVolume'),
  ]);
  return {
    nodes: nodes.items,
    pods: pods.items,
    budgets,
    volumes: localVolumes(claims ?? [], volumes ?? []),
    scales: await readScales(cluster, pods.items, budgets),
    daemonSets,
  };
}

/**
 * Reads what decides whether the drain of one node is refused. Of pods on other nodes, only those are read that may have the
 * same budget as a pod of the node, if it allows no eviction. Whether other nodes have room is not known then.
 * @param pods those of the node
 * @throws AppError of `Cluster`
 */
export async function readNodeView(cluster: Cluster, pods: readonly KubeObject[]): Promise<ClusterView> {
  const { budgets, daemonSets } = await readPolicies(cluster);
  const coveringOf = budgetIndex(budgets.map(readBudget));
  const evicted = pods.map(readDrainPod).filter(({ kind }) => kind === 'evictable');
  const strict = evicted.flatMap(coveringOf).filter(({ disruptionsAllowed }) => disruptionsAllowed === 0);
  const namespaces = [...new Set(strict.map(({ namespace }) => namespace))];
  const found = await inParallel(namespaces, AT_ONCE, (namespace) => cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace }));
  const all = new Map([...pods, ...found.flatMap(({ items }) => items)].map((pod) => [readDrainPod(pod).name, pod]));
  const relevant = [...all.values()];
  return { nodes: [], pods: relevant, budgets, volumes: new Map(), scales: await readScales(cluster, relevant, budgets), daemonSets };
}

async function readPolicies(cluster: Cluster) {
  const minor = parseMinor(await cluster.version());
  const policy = minor !== null && minor < 21 ? 'policy/v1beta1' : 'policy/v1';
  const [budgets, daemonSets] = await Promise.all([
    cluster.list({ apiVersion: policy, kind: 'PodDisruptionBudget' }),
    listIfPermitted(cluster, 'apps/v1', 'DaemonSet'),
  ]);
  return {
    budgets: budgets.items,
    daemonSets: daemonSets === null ? null : new Set(daemonSets.flatMap(({ metadata }) => metadata.uid ?? [])),
  };
}

async function listIfPermitted(cluster: Cluster, apiVersion: string, kind: string): Promise<readonly KubeObject[] | null> {
  return (await unlessRefused(cluster.list({ apiVersion, kind })))?.items ?? null;
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
