import { jsonEqual } from '../../base/json.ts';
import { applyClusterChange } from '../../host/apply.ts';
import type { ClusterChange, PhasePlan } from '../../host/plan/change.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { createNamespace, namespaceRef } from '../../kubeadm/phases/agent-rights.ts';
import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { appendHash } from '../signing/config-map-hash.ts';
import { payloadDiffers } from '../status/dynamic-problems.ts';
import { readNodes } from './read-nodes.ts';

/** Label of ConfigMaps created by `dynamic push`; `dynamic gc` deletes no others. */
export const PUSHED_LABEL = 'kubeletadm.dev/dynamic-config';

export interface PushInput {
  readonly namespace: string;
  readonly name: string;
  /** Key of the payload. */
  readonly key: string;
  readonly appendHash: boolean;
  /** Allow replacing the content of an existing ConfigMap, even if nodes use it. */
  readonly inPlace: boolean;
}

export interface PushPlan {
  readonly source: ConfigSource;
  /** All keys of the ConfigMap. */
  readonly data: Readonly<Record<string, string>>;
  readonly plan: PhasePlan;
}

/** The ConfigMap of a payload, with kubectl's naming; immutable if the name contains the hash. */
function pushedConfigMap({ namespace, name, appendHash: hashed }: PushInput, data: PushPlan['data']): KubeObject {
  const metadata = { name: hashed ? appendHash({ name, data }) : name, namespace, labels: { [PUSHED_LABEL]: 'true' } };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data, ...(hashed ? { immutable: true } : {}) };
}

/**
 * Plans the ConfigMap of a payload. An existing one with the same data is not changed, not even its labels:
 * any write restarts its nodes. A missing namespace of node configurations is created; any other must exist.
 * @param cluster null: treated as an empty cluster
 * @param data all keys of the ConfigMap
 * @throws AppError DYNAMIC_PAYLOAD_DIFFERS (exit code 2) if a ConfigMap of that name has other content
 */
export async function planPush(cluster: Cluster | null, input: PushInput, data: PushPlan['data']): Promise<PushPlan> {
  const object = pushedConfigMap(input, data);
  const { name } = object.metadata;
  const where = `${input.namespace}/${name}`;
  const source = { namespace: input.namespace, name, kubeletConfigKey: input.key };
  const before = (await cluster?.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: input.namespace, name })) ?? null;
  if (cluster === null || before === null)
    return {
      source,
      data,
      plan: {
        changes: [...(await missingNamespace(cluster, input.namespace)), { kind: 'create-object', object, reason: 'does not exist' }],
      },
    };
  if (jsonEqual(before.data ?? {}, data) && Object.keys((before.binaryData as object) ?? {}).length === 0) {
    const mutable = {
      code: 'DYNAMIC_PAYLOAD_MUTABLE',
      message: `ConfigMap ${where} is not immutable. Any write to it, even of a label, restarts the kubelets of all nodes with this ConfigMap`,
    };
    const warnings = input.appendHash && before.immutable !== true ? [mutable] : [];
    return { source, data, plan: { changes: [], noop: `ConfigMap ${where} is up to date`, warnings } };
  }
  const users = (await readNodes(cluster, [])).filter(
    (node) =>
      node.source.source !== null && sameSource({ ...node.source.source, kubeletConfigKey: '' }, { ...source, kubeletConfigKey: '' }),
  );
  if (!input.inPlace || before.immutable === true)
    throw payloadDiffers(
      where,
      users.map((node) => node.name),
      before.immutable === true,
    );
  const reason =
    users.length === 0
      ? 'content changed'
      : `content changed; the kubelets of ${users.map((node) => node.name).join(', ')} restart at the same time`;
  const changed = { ...before, data };
  return { source, data, plan: { changes: [{ kind: 'update-object', object: changed, before, reason }] } };
}

async function missingNamespace(cluster: Cluster | null, namespace: string): Promise<readonly ClusterChange[]> {
  if (namespace !== AGENT_NAMESPACE) return [];
  const found = (await cluster?.get(namespaceRef(namespace))) ?? null;
  return found === null ? [createNamespace(namespace)] : [];
}

/** Applies the plan of `planPush`. @throws the errors of the API server */
export async function applyPush(cluster: Cluster, { plan }: PushPlan): Promise<void> {
  for (const change of plan.changes)
    if (change.kind === 'create-object' || change.kind === 'update-object') await applyClusterChange(cluster, change);
}
