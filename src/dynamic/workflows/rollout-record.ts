import { isAppError } from '../../base/errors.ts';
import { applyClusterChange } from '../../host/apply.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { configMapData } from '../../kube/object.ts';
import { createNamespace } from '../../kubeadm/phases/agent-rights.ts';
import { type ConfigSource, describeSource, parseSourceArgument } from '../../kubelet/layers/config-source.ts';
import { appendHash } from '../signing/config-map-hash.ts';

/** Marks the ConfigMaps in which rollouts record the previous assignments of nodes. */
const ROLLOUT_LABEL = 'kubeletadm.dev/rollout';

const LOCAL = 'local';

/**
 * Opens the record of a rollout, so that any host can resume or revert it: the previous assignments of its nodes (null:
 * none), in a ConfigMap in the agents' namespace, which nodes can read but not write. A
 * record on the Node itself could be forged by the node, and a revert would then grant the node access to any
 * ConfigMap.
 * @param targets a run with the same assignments, in any order, finds the record of an interrupted one
 * @throws AppError the errors of reading it; a missing record is created with the first node. All functions throw the errors
 *   of the API server
 */
export async function openRolloutRecord(
  cluster: Cluster,
  targets: readonly { readonly desired: ConfigSource | null }[],
  { by, reason, now }: { readonly by: string; readonly reason?: string | undefined; readonly now: () => Date },
) {
  const what = [...new Set(targets.map(({ desired }) => (desired === null ? LOCAL : describeSource(desired))))].sort().join(', ');
  // The member name is part of the hash: runs of other versions must find the same ConfigMap.
  const name = appendHash({ name: 'rollout', data: { wanted: what } });
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE, name };
  const found = await cluster.get(ref);
  const create = async (data: Readonly<Record<string, string>>): Promise<void> => {
    const annotations = {
      'kubeletadm.dev/rollout-of': what,
      'kubeletadm.dev/rollout-by': by,
      ...(reason === undefined ? {} : { 'kubeletadm.dev/rollout-reason': reason }),
      'kubeletadm.dev/rollout-at': now().toISOString(),
    };
    const metadata = { name, namespace: AGENT_NAMESPACE, labels: { [ROLLOUT_LABEL]: 'true' }, annotations };
    await cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
  };
  const write = async (node: string, text: string): Promise<void> => {
    const data = { [node]: text };
    const patch = () => cluster.patch(ref, 'merge', { data });
    try {
      await patch();
    } catch (error) {
      if (!isAppError(error, 'CLUSTER_NOT_FOUND')) throw error;
      if ((await cluster.get({ apiVersion: 'v1', kind: 'Namespace', name: AGENT_NAMESPACE })) === null)
        await unlessExists(applyClusterChange(cluster, createNamespace(AGENT_NAMESPACE)));
      if (!(await unlessExists(create(data)))) await patch();
    }
  };
  // Sequential, because concurrent writes of one object fail with conflicts.
  let last: Promise<unknown> = Promise.resolve();
  return {
    /** Assignments that an interrupted run of the same rollout recorded. */
    inherited: new Map(Object.entries(configMapData(found)).flatMap(readPrevious)),
    /** Resolves when the previous assignment of a node is recorded. */
    began: (node: string, previous: ConfigSource | null): Promise<void> => {
      const written = last.then(() => write(node, previous === null ? LOCAL : describeSource(previous)));
      last = written.catch(() => undefined);
      return written;
    },
    /** Removes the records of finished nodes, and the ConfigMap with the last one. */
    finished: async (nodes: readonly string[]): Promise<void> => {
      const now = await cluster.get(ref);
      const data = Object.fromEntries(nodes.filter((node) => Object.hasOwn(configMapData(now), node)).map((node) => [node, null]));
      if (now === null || Object.keys(data).length === 0) return;
      const kept = await cluster.patch(ref, 'merge', { data });
      if (Object.keys(configMapData(kept)).length === 0) await cluster.delete(ref);
    },
  };
}

/** Returns false if another rollout created the object first. */
async function unlessExists(creation: Promise<unknown>): Promise<boolean> {
  try {
    await creation;
    return true;
  } catch (error) {
    if (isAppError(error, 'CLUSTER_ALREADY_EXISTS')) return false;
    throw error;
  }
}

function readPrevious([node, text]: readonly [string, string]): readonly (readonly [string, ConfigSource | null])[] {
  if (text === LOCAL) return [[node, null]];
  const { source } = parseSourceArgument(text);
  return source === null ? [] : [[node, source]];
}
