import { jsonEqual } from '../../base/json.ts';
import { applyClusterChange } from '../../host/apply.ts';
import type { ClusterChange, PhasePlan } from '../../host/plan/change.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { createNamespace, namespaceRef } from '../../kubeadm/phases/agent-rights.ts';
import { type ConfigSource, sameSource } from '../../kubelet/config-source.ts';
import { appendHash } from '../config-map-hash.ts';
import { payloadDiffers } from '../dynamic-problems.ts';
import { readNodes } from './read-nodes.ts';

/** Marks ConfigMaps made by `dynamic push`; `dynamic gc` deletes no others. */
export const PUSHED_LABEL = 'kubeletadm.dev/dynamic-config';

export interface PushInput {
  readonly namespace: string;
  /** Without the hash. */
  readonly name: string;
  readonly key: string;
  readonly text: string;
  /** Files the payload names relatively: by key. */
  readonly beside: Readonly<Record<string, string>>;
  readonly appendHash: boolean;
  /** Content of an existing ConfigMap may be replaced, whoever uses it. */
  readonly inPlace: boolean;
}

export interface PushPlan {
  readonly source: ConfigSource;
  readonly plan: PhasePlan;
}

/** The ConfigMap of a payload: named as kubectl names it, and immutable where the name says what is in it. */
function pushedConfigMap({ namespace, name, key, text, beside, appendHash: hashed }: PushInput): KubeObject {
  const data = { ...beside, [key]: text };
  const metadata = { name: hashed ? appendHash({ name, data }) : name, namespace, labels: { [PUSHED_LABEL]: 'true' } };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data, ...(hashed ? { immutable: true } : {}) };
}

/**
 * Plans what makes a ConfigMap of a payload. One that is there with the same data is left alone, labels too: any write restarts its nodes. The namespace of node
 * configurations is created where it is missing; any other has to exist.
 * @param cluster null: it counts as empty
 * @throws AppError DYNAMIC_PAYLOAD_DIFFERS (exit code 2) when one of that name holds something else
 */
export async function planPush(cluster: Cluster | null, input: PushInput): Promise<PushPlan> {
  const object = pushedConfigMap(input);
  const { name } = object.metadata;
  const where = `${input.namespace}/${name}`;
  const source = { namespace: input.namespace, name, kubeletConfigKey: input.key };
  const before = (await cluster?.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: input.namespace, name })) ?? null;
  if (cluster === null || before === null)
    return {
      source,
      plan: {
        changes: [
          ...(await missingNamespace(cluster, input.namespace)),
          { kind: 'create-object', object, reason: 'there is no such payload yet' },
        ],
      },
    };
  if (jsonEqual(before.data ?? {}, object.data ?? {}) && Object.keys((before.binaryData as object) ?? {}).length === 0) {
    const mutable = {
      code: 'DYNAMIC_PAYLOAD_MUTABLE',
      message: `${where} is not immutable: any write to it, a label too, restarts all its nodes`,
    };
    const warnings = input.appendHash && before.immutable !== true ? [mutable] : [];
    return { source, plan: { changes: [], noop: `ConfigMap ${where} holds exactly this`, warnings } };
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
    users.length === 0 ? 'its content changed' : `its content changed; ${users.map((node) => node.name).join(', ')} restart at once`;
  const changed = { ...before, data: object.data ?? {} };
  return { source, plan: { changes: [{ kind: 'update-object', object: changed, before, reason }] } };
}

async function missingNamespace(cluster: Cluster | null, namespace: string): Promise<readonly ClusterChange[]> {
  if (namespace !== AGENT_NAMESPACE) return [];
  const found = (await cluster?.get(namespaceRef(namespace))) ?? null;
  return found === null ? [createNamespace(namespace)] : [];
}

/** Applies what `planPush` planned. @throws what the API server says */
export async function applyPush(cluster: Cluster, { plan }: PushPlan): Promise<void> {
  for (const change of plan.changes)
    if (change.kind === 'create-object' || change.kind === 'update-object') await applyClusterChange(cluster, change);
}
