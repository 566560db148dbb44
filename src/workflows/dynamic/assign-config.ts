import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigIdentity,
  type ConfigSource,
  describeSource,
  formatConfigSource,
  formatSourceAnnotation,
  sameSource,
} from '../../core/dynamic/config-source.ts';
import { type NodeConfig, readNodeConfig } from '../../core/dynamic/node-config.ts';
import { AppError, type Problem } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { ClusterChange } from '../../core/plan/change.ts';
import { noSuchPayload, sourceDropped } from '../../core/problems/dynamic.ts';
import type { Cluster } from '../../ports/cluster.ts';
import type { JudgedNode } from './read-nodes.ts';

/** What is to be assigned, as it is in the cluster now. */
export interface FoundPayload {
  readonly identity: ConfigIdentity;
  readonly text: string;
  readonly isImmutable: boolean;
}

/**
 * Reads what a source names: a kubelet that finds nothing there falls back or waits for ever.
 * @throws AppError DYNAMIC_NO_PAYLOAD (exit code 2)
 */
export async function findPayload(cluster: Cluster, source: ConfigSource): Promise<FoundPayload> {
  const { namespace, name, kubeletConfigKey } = source;
  const object = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
  if (object === null) throw noSuchPayload(source, null);
  const data = (object.data ?? {}) as Readonly<Record<string, string>>;
  const text = data[kubeletConfigKey];
  if (text === undefined) throw noSuchPayload(source, Object.keys(data));
  const { uid = '', resourceVersion = '' } = object.metadata;
  return { identity: { ...source, uid, resourceVersion }, text, isImmutable: object.immutable === true };
}

/** The patch that assigns a source to a node, or with null takes its assignment away; null: it is so already. */
export function planAssignment({ name, backend, source }: NodeConfig, wanted: ConfigSource | null): Assignment | null {
  if (source.trouble === null && sameSource(source.source, wanted)) return null;
  const ref = { apiVersion: 'v1', kind: 'Node', name };
  const patch: JsonObject =
    backend === 'native'
      ? { spec: { configSource: wanted === null ? null : formatConfigSource(wanted) } }
      : { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: wanted === null ? null : formatSourceAnnotation(wanted) } } };
  const before = source.source === null ? 'the local configuration' : describeSource(source.source);
  const because = wanted === null ? `${before} was assigned` : `it was ${before}`;
  return { kind: 'patch-object', ref, patch, because };
}

export type Assignment = Extract<ClusterChange, { kind: 'patch-object' }>;

/**
 * Patches a Node and reads back what was kept: an API server that does not know the field answers 200.
 * @throws AppError DYNAMIC_SOURCE_DROPPED, what the API server says
 */
export async function applyAssignment(cluster: Cluster, node: NodeConfig, change: Assignment, wanted: ConfigSource | null): Promise<void> {
  const kept: KubeObject = await cluster.patch(change.ref, 'merge', change.patch);
  if (sameSource(readNodeConfig(kept, node.backend).source.source, wanted)) return;
  throw new AppError(sourceDropped(node.name, cluster.server, await cluster.version()));
}

/** Why a node is not where it was to come. */
export function notThereProblem({ config, verdict }: JudgedNode, timeoutMs: number): Problem {
  const waited = `not there after ${Math.round(timeoutMs / 1000)} s`;
  const why = verdict.why ?? (config.isReady ? waited : `${waited}: ${config.troubles.join('; ')}`);
  const code = { 'fell-back': 'DYNAMIC_FELL_BACK', looping: 'DYNAMIC_CRASH_LOOP', off: 'DYNAMIC_NOT_ENABLED' }[verdict.state as string];
  return {
    host: config.name,
    code: code ?? 'DYNAMIC_NOT_REACHED',
    message: `${verdict.state}: ${why}`,
    mend: verdict.mend ?? 'See kubeletadm dynamic status and the log of the kubelet',
  };
}
