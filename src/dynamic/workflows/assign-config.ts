import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigIdentity,
  type ConfigSource,
  describeSource,
  formatConfigSource,
  formatSourceAnnotation,
  sameSource,
} from '../../kubelet/config-source.ts';
import { REJECTED_REASON } from '../agent/status.ts';
import { ASSIGNED_BY_ANNOTATION, formatAssignedBy } from '../assigned-by.ts';
import { assignmentReplaced, noSuchPayload, sourceDropped } from '../dynamic-problems.ts';
import { findConfigError } from '../error-texts.ts';
import { type NodeConfig, readNodeConfig } from '../node-config.ts';
import type { AssessedNode } from './read-nodes.ts';

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

/** Who assigns, and when: the Node says so afterwards. */
export interface AssignedBy {
  readonly by: string;
  readonly at: Date;
}

/** The patch that assigns a source to a node, or with null takes its assignment away; null: it is so already. */
export function planAssignment(
  { name, backend, source }: NodeConfig,
  desired: ConfigSource | null,
  assigned: AssignedBy,
): Assignment | null {
  if (source.issue === null && sameSource(source.source, desired)) return null;
  const ref = { apiVersion: 'v1', kind: 'Node', name };
  const mark = { [ASSIGNED_BY_ANNOTATION]: formatAssignedBy(desired, assigned) };
  const patch: JsonObject =
    backend === 'native'
      ? { metadata: { annotations: mark }, spec: { configSource: desired === null ? null : formatConfigSource(desired) } }
      : { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: desired === null ? null : formatSourceAnnotation(desired), ...mark } } };
  const before = source.source === null ? 'the local configuration' : describeSource(source.source);
  const reason = desired === null ? `${before} was assigned` : `it was ${before}`;
  return { kind: 'patch-object', ref, patch, reason };
}

export type Assignment = Extract<ClusterChange, { kind: 'patch-object' }>;

/** Heartbeats of a kubelet change its Node too. */
const ATTEMPTS = 10;

/**
 * Patches a Node, unless somebody else has changed its assignment since it was read, and reads back what was kept: an API server that does not know the field
 * answers 200.
 * @param node as it was read
 * @returns the Node as it is afterwards
 * @throws AppError ASSIGNMENT_REPLACED, DYNAMIC_SOURCE_DROPPED, what the API server says
 */
export async function applyAssignment(
  cluster: Cluster,
  node: NodeConfig,
  change: Assignment,
  desired: ConfigSource | null,
): Promise<NodeConfig> {
  const kept = readNodeConfig(await patchUnchanged(cluster, node, change), node.backend);
  if (sameSource(kept.source.source, desired)) return kept;
  throw new AppError(sourceDropped(node.name, cluster.server, await cluster.version()));
}

async function patchUnchanged(cluster: Cluster, node: NodeConfig, change: Assignment): Promise<KubeObject> {
  let { resourceVersion } = node;
  for (let attempt = 1; ; attempt++) {
    const { metadata = {}, ...rest } = change.patch as { readonly metadata?: JsonObject };
    try {
      return await cluster.patch(change.ref, 'merge', { ...rest, metadata: { ...metadata, resourceVersion } });
    } catch (error) {
      if (!isAppError(error, 'CLUSTER_CONFLICT') || attempt >= ATTEMPTS) throw error;
      const found = await cluster.get(change.ref);
      if (found === null) throw error;
      const now = readNodeConfig(found, node.backend);
      if (now.source.issue !== node.source.issue || !sameSource(now.source.source, node.source.source))
        throw new AppError(assignmentReplaced(now, node.source.source));
      resourceVersion = now.resourceVersion;
    }
  }
}

/** The state of a node in messages. `fell-back` is `rejected` where the payload was refused before it ran, otherwise `rolled back`. */
export function stateText({ config: { status, word }, verdict: { state } }: AssessedNode): string {
  if (state !== 'fell-back') return state;
  const code = findConfigError(status?.error ?? '')?.code;
  const isRejected = word === null ? code === 'LOAD_FAILED' || code === 'VALIDATION_FAILED' : word.reason === REJECTED_REASON;
  return isRejected ? 'rejected' : 'rolled back';
}

/** Why a node is not where it was to come. */
export function notFoundProblem(node: AssessedNode, timeoutMs: number): Problem {
  const { config, verdict } = node;
  const waited = `not there after ${Math.round(timeoutMs / 1000)} s`;
  const why = verdict.why ?? (config.isReady ? waited : `${waited}: ${config.issues.join('; ')}`);
  const code = { 'fell-back': 'DYNAMIC_FELL_BACK', looping: 'DYNAMIC_CRASH_LOOP', off: 'DYNAMIC_NOT_ENABLED' }[verdict.state as string];
  return {
    host: config.name,
    code: code ?? 'DYNAMIC_NOT_REACHED',
    message: `${stateText(node)}: ${why}`,
    hint: verdict.hint ?? 'See kubeletadm dynamic status and the log of the kubelet',
  };
}
