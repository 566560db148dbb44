import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { nodeEvent } from '../../kube/node-event.ts';
import { configMapData, type KubeObject } from '../../kube/object.ts';
import { ASSIGNED_BY_ANNOTATION, formatAssignedBy, type NewAssigner } from '../../kubelet/effective/node-source.ts';
import {
  ALLOW_POD_LOSS_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  type ConfigSource,
  describeSource,
  formatConfigSource,
  formatSourceAnnotation,
  sameSource,
} from '../../kubelet/layers/config-source.ts';
import { CONFIG_HISTORY_ANNOTATION, describeAssignment, formatAssignmentHistory, withRecord } from '../status/assignment-history.ts';
import { ASSIGNED_EVENT_REASON } from '../status/config-event.ts';
import { assignmentReplaced, configSourceDropped, noSuchPayload } from '../status/dynamic-problems.ts';
import { type NodeConfig, readNodeConfig } from '../status/node-config.ts';
import type { AssessedNode } from './read-nodes.ts';

/**
 * Reads the payload of a source: a kubelet with a missing payload would roll back or wait indefinitely.
 * @returns `data` has all keys of the ConfigMap
 * @throws AppError DYNAMIC_NO_PAYLOAD (exit code 2)
 */
export async function findPayload(cluster: Cluster, source: ConfigSource) {
  const { namespace, name, kubeletConfigKey } = source;
  const object = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
  if (object === null) throw noSuchPayload(source, null);
  const data = configMapData(object);
  const text = data[kubeletConfigKey];
  if (text === undefined) throw noSuchPayload(source, Object.keys(data));
  return { text, data, isImmutable: object.immutable === true };
}

/** Author, time, reason and permission of an assignment, recorded on the Node. */
export interface AssignedBy extends NewAssigner {
  readonly allowPodLoss: boolean;
  readonly recorded: RecordedRun;
}

/** The command that makes assignments, for the history of each Node. */
export interface RecordedRun {
  readonly id: string;
  readonly command: 'assign' | 'reset' | 'undo';
  /** The hash of the content of a ConfigMap; null: unknown. */
  sha256Of(source: ConfigSource): string | null;
  /** A failed rollout restores the previous assignments. */
  readonly isRevert?: boolean;
}

/** Returns the patch that assigns a source to a node, or with null removes its assignment; null: unchanged. */
export function planAssignment(node: NodeConfig, desired: ConfigSource | null, assigned: AssignedBy): AssignmentPatch | null {
  const { name, backend, source } = node;
  const permission = permissionPatch(node, desired, assigned);
  const isSame = source.issue === null && sameSource(source.source, desired);
  if (isSame && (permission === null || sameSource(node.status?.active ?? null, desired))) return null;
  const ref = { apiVersion: 'v1', kind: 'Node', name };
  const mark = {
    [ASSIGNED_BY_ANNOTATION]: formatAssignedBy(desired, assigned),
    ...(isSame ? {} : { [CONFIG_HISTORY_ANNOTATION]: historyWith(node, desired, assigned) }),
  };
  const patch: JsonObject =
    backend === 'native'
      ? { metadata: { annotations: mark }, spec: { configSource: desired === null ? null : formatConfigSource(desired) } }
      : {
          metadata: {
            annotations: { [CONFIG_SOURCE_ANNOTATION]: desired === null ? null : formatSourceAnnotation(desired), ...mark, ...permission },
          },
        };
  return { kind: 'patch-object', ref, patch, reason: `${describeAssignment(source.source)} was assigned` };
}

/** The history of a Node with the new assignment; null: the previous assignment is not readable. */
function historyWith(
  { source, history }: NodeConfig,
  desired: ConfigSource | null,
  { by, at, reason, recorded }: AssignedBy,
): string | null {
  if (source.issue !== null) return null;
  const { id, command, sha256Of, isRevert = false } = recorded;
  const of = (one: ConfigSource | null) => ({ source: one, sha256: one === null ? null : sha256Of(one) });
  const undoes = command === 'undo' ? history.at(-1)?.id : undefined;
  const record = { id, at: at.toISOString(), by, reason, command, undoes, from: of(source.source), to: of(desired) };
  return formatAssignmentHistory(withRecord(history, record, { isRevert }));
}

/**
 * The annotation with the permission to end pods, which is valid for one assignment; null: unchanged. Only
 * agents read it.
 */
function permissionPatch(
  { backend, allowsPodLossOf }: NodeConfig,
  desired: ConfigSource | null,
  { allowPodLoss }: AssignedBy,
): JsonObject | null {
  const wanted = backend === 'agent' && allowPodLoss && desired !== null ? describeSource(desired) : null;
  return wanted === allowsPodLossOf ? null : { [ALLOW_POD_LOSS_ANNOTATION]: wanted };
}

export type AssignmentPatch = Extract<ClusterChange, { kind: 'patch-object' }>;

/** Number of attempts on conflicts, because heartbeats of the kubelet change its Node as well. */
const ATTEMPTS = 10;

/**
 * Patches a Node unless another client has changed its assignment since it was read, and checks the result:
 * an API server that does not know the field returns 200 as well.
 * @param node the Node as read before
 * @param assigned.by plans the patch again if the Node has changed otherwise
 * @returns the Node after the patch
 * @throws AppError ASSIGNMENT_REPLACED, DYNAMIC_SOURCE_DROPPED, and the errors of the API server
 */
export async function applyAssignment(
  cluster: Cluster,
  node: NodeConfig,
  change: AssignmentPatch,
  { desired, by }: { readonly desired: ConfigSource | null; readonly by: AssignedBy },
): Promise<NodeConfig> {
  const replan = (now: NodeConfig) => planAssignment(now, desired, by) ?? change;
  const kept = readNodeConfig(await patchUnchanged(cluster, node, change, replan), node.backend);
  if (sameSource(kept.source.source, desired)) return kept;
  throw new AppError(configSourceDropped(node.name, cluster.server, await cluster.version()));
}

/**
 * Records an assignment as an Event of the Node: `alice@laptop assigned kube-system/pods/kubelet (OPS-1234)`.
 * Many credentials may not create Events: the assignment is made nevertheless.
 * @returns the error of a refused Event; null: created
 */
export async function createAssignmentEvent(
  cluster: Cluster,
  node: string,
  desired: ConfigSource | null,
  { by, at, reason }: NewAssigner,
): Promise<AppError | null> {
  const message = assignmentMessage(desired, { by, reason });
  try {
    await cluster.create(nodeEvent(node, { type: 'Normal', reason: ASSIGNED_EVENT_REASON, message, component: 'kubeletadm' }, at, 0));
    return null;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error;
  }
}

/** `alice@laptop assigned kube-system/pods/kubelet (OPS-1234)`. @param desired null: the local configuration */
export function assignmentMessage(desired: ConfigSource | null, { by, reason }: Pick<NewAssigner, 'by' | 'reason'>): string {
  const what = desired === null ? 'removed the assignment' : `assigned ${describeSource(desired)}`;
  return `${by} ${what}${reason === undefined ? '' : ` (${reason})`}`;
}

async function patchUnchanged(
  cluster: Cluster,
  node: NodeConfig,
  planned: AssignmentPatch,
  replan: (now: NodeConfig) => AssignmentPatch,
): Promise<KubeObject> {
  let { resourceVersion } = node;
  let change = planned;
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
      change = replan(now);
    }
  }
}

export function stateText({ verdict: { state } }: AssessedNode): string {
  return state === 'rolled-back' ? 'rolled back' : state;
}

export function notFoundProblem(node: AssessedNode, timeoutMs: number): Problem {
  const { config, verdict } = node;
  const waited = `not updated after ${Math.round(timeoutMs / 1000)} s`;
  const why = verdict.why ?? (config.isReady ? waited : `${waited}: ${config.issues.join('; ')}`);
  const code = {
    'rolled-back': 'DYNAMIC_FELL_BACK',
    rejected: 'DYNAMIC_FELL_BACK',
    looping: 'DYNAMIC_CRASH_LOOP',
    off: 'DYNAMIC_NOT_ENABLED',
  }[verdict.state as string];
  return {
    host: config.name,
    code: code ?? 'DYNAMIC_NOT_REACHED',
    message: `${stateText(node)}: ${why}`,
    hint: verdict.hint ?? `See kubeletadm dynamic status ${config.name}, and journalctl -u kubelet on the host`,
  };
}
