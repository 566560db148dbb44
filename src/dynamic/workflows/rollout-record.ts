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

/** The previous assignments by node; null: none. */
export type PreviousAssignments = ReadonlyMap<string, ConfigSource | null>;

/**
 * The previous assignments of the nodes of a rollout, recorded in the cluster, so that any host can resume or
 * revert the rollout.
 */
export interface RolloutRecord {
  /** Assignments that an interrupted run of the same rollout recorded. */
  readonly inherited: PreviousAssignments;
  /**
   * Resolves when the previous assignment of a node is recorded.
   * @throws AppError the errors of the API server
   */
  began(node: string, previous: ConfigSource | null): Promise<void>;
  /**
   * Removes the records of finished nodes, and the ConfigMap with the last one.
   * @throws AppError the errors of the API server
   */
  finished(nodes: readonly string[]): Promise<void>;
}

const LOCAL = 'local';

/**
 * Opens the record of a rollout: a ConfigMap in the agents' namespace, which nodes can read but not write. A
 * record on the Node itself could be forged by the node, and a revert would then grant the node access to any
 * ConfigMap.
 * @param desired assignment of the rollout; null: none
 * @throws AppError the errors of reading it; a missing record is created with the first node
 */
export async function openRolloutRecord(
  cluster: Cluster,
  desired: ConfigSource | null,
  { by, reason, now }: { readonly by: string; readonly reason?: string | undefined; readonly now: () => Date },
): Promise<RolloutRecord> {
  const what = desired === null ? LOCAL : describeSource(desired);
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
    inherited: new Map(Object.entries(configMapData(found)).flatMap(readPrevious)),
    began: (node, previous) => {
      const written = last.then(() => write(node, previous === null ? LOCAL : describeSource(previous)));
      last = written.catch(() => undefined);
      return written;
    },
    finished: async (nodes) => {
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
