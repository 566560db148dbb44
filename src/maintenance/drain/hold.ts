import type { Clock } from '../../base/clock.ts';
import { isAppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ThisProcess } from '../../base/this-process.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { conditionOf, LIFECYCLE_CONDITIONS, type LifecycleCondition } from '../../kube/node-conditions.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import {
  CONDITIONS_ANNOTATION,
  CORDON_ANNOTATION,
  type CordonOwner,
  cordonOwner,
  heldBy,
  isAbandoned,
  isCordoned,
  type NodeObstacle,
  obstacleOf,
  ownConditions,
} from '../node-hold.ts';

/** A run that cordons nodes. */
export interface HoldRun {
  /** A random id. */
  readonly run: string;
  readonly self: ThisProcess;
  readonly clock: Clock;
  /** What nodes are cordoned for, as a clause. */
  readonly reason: string;
}

/** The names of the Nodes that other runs cordoned and never returned to service, for example because they were killed. */
export async function leftCordoned(cluster: Cluster, { self, clock }: Pick<HoldRun, 'self' | 'clock'>): Promise<ReadonlySet<string>> {
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { fieldSelector: 'spec.unschedulable=true' });
  const isLeft = (node: KubeObject): boolean => {
    const owner = cordonOwner(node);
    return owner !== null && isAbandoned(owner, { self, now: clock.now() });
  };
  return new Set(items.filter(isLeft).map(({ metadata }) => metadata.name));
}

/** Heartbeats and controllers also write to a Node. */
const MAX_ATTEMPTS = 8;

export function nodeRef(name: string): ObjectRef {
  return { apiVersion: 'v1', kind: 'Node', name };
}

/**
 * Cordons a node with the annotation of the run, in one request. A cordon that this run did not make stays without
 * annotation, and `isOurs` is false.
 * @param options.allows obstacles that the operator accepted
 * @param options.mayTakeOver whether the run of an expired cordon was seen not to renew it: the clocks of two machines may differ
 * @returns the reason not to touch the node, or whether the cordon is that of the run; null: no such Node
 */
export async function takeHold(
  cluster: Cluster,
  name: string,
  run: HoldRun,
  {
    allows = [],
    mayTakeOver = () => true,
  }: { readonly allows?: readonly NodeObstacle['kind'][]; readonly mayTakeOver?: (owner: CordonOwner) => boolean } = {},
): Promise<{ readonly obstacle: NodeObstacle } | { readonly isOurs: boolean } | null> {
  return withNode(cluster, name, async (node) => {
    const previous = cordonOwner(node);
    const isOthers = previous !== null && previous.run !== run.run && !previous.isKept && isCordoned(node);
    const isHeld = isOthers && !mayTakeOver(previous);
    const obstacle = obstacleOf(node, { ...run, now: run.clock.now() }) ?? (isHeld ? heldBy(previous) : null);
    if (obstacle !== null) return allows.includes(obstacle.kind) ? { isOurs: false } : { obstacle };
    await patchNode(cluster, node, { annotation: ownerOf(run, previous?.run === run.run ? previous.since : null), unschedulable: true });
    return { isOurs: true };
  });
}

/** Keeps the cordon of the run for longer. @returns false: another run has taken it over, or the node was uncordoned or deleted */
export async function renewHold(
  cluster: Cluster,
  name: string,
  run: HoldRun,
  change: { readonly isKept?: boolean } = {},
): Promise<boolean> {
  const renewed = await withNode(cluster, name, async (node) => {
    const owner = cordonOwner(node);
    if (owner?.run !== run.run || !isCordoned(node)) return false;
    await patchNode(cluster, node, { annotation: { ...owner, renewed: run.clock.now().toISOString(), ...change } });
    return true;
  });
  return renewed === true;
}

/**
 * Removes the conditions of this program from a node, then its cordon: a run that is killed in between leaves the
 * annotation, by which the next one continues.
 * @param isOwn whether the cordon may be removed; others stay
 * @returns whether the node was uncordoned
 */
export async function releaseHold(cluster: Cluster, name: string, isOwn: (owner: CordonOwner) => boolean): Promise<boolean> {
  const released = await withNode(cluster, name, async (node) => {
    const owner = cordonOwner(node);
    if (owner === null || !isOwn(owner)) return false;
    await setConditions(cluster, node, {}, null);
    const latest = await cluster.get(nodeRef(name));
    if (latest === null) return false;
    const still = cordonOwner(latest);
    if (still === null || !isOwn(still)) return false;
    await patchNode(cluster, latest, { annotation: null, unschedulable: false });
    return true;
  });
  return released === true;
}

/**
 * Sets the lifecycle conditions of a node that the run holds: those given are True, the others of this program are removed.
 * @returns false: another run has taken the node over, or it was uncordoned or deleted
 */
export async function markLifecycle(
  cluster: Cluster,
  name: string,
  conditions: Readonly<Partial<Record<LifecycleCondition, string>>>,
  run: HoldRun,
): Promise<boolean> {
  const marked = await withNode(cluster, name, async (node) => {
    if (cordonOwner(node)?.run !== run.run || !isCordoned(node)) return false;
    await setConditions(cluster, node, conditions, run);
    return true;
  });
  return marked === true;
}

/**
 * Sets these lifecycle conditions to True, and removes the others of this program. No request if nothing changes.
 * @param run null: sets none
 * @throws AppError CLUSTER_CONFLICT if the node has changed since: another run may hold it now
 */
export async function setConditions(
  cluster: Cluster,
  node: KubeObject,
  reasons: Readonly<Partial<Record<LifecycleCondition, string>>>,
  run: HoldRun | null,
): Promise<void> {
  const message = `kubeletadm: ${run?.reason}, by ${run?.self.name}`;
  const time = run?.clock.now().toISOString().replace(/\.\d+/, '') ?? '';
  const { types } = ownConditions(node);
  const since: Record<string, string> = {};
  const conditions = LIFECYCLE_CONDITIONS.flatMap((type): readonly JsonObject[] => {
    const reason = reasons[type];
    const current = types.includes(type) ? conditionOf(node, type) : null;
    if (reason === undefined) return current === null ? [] : [{ type, $patch: 'delete' }];
    const isSet = current?.reason === reason && current.message === message;
    since[type] = isSet ? (current.lastTransitionTime ?? '') : time;
    return isSet ? [] : [{ type, status: 'True', reason, message, lastHeartbeatTime: time, lastTransitionTime: time }];
  });
  const mark = run === null ? null : JSON.stringify({ run: run.run, since });
  if (conditions.length === 0 && mark === (node.metadata.annotations?.[CONDITIONS_ANNOTATION] ?? null)) return;
  const change = { metadata: { annotations: { [CONDITIONS_ANNOTATION]: mark }, ...versionOf(node) }, status: { conditions } };
  await cluster.patch(nodeRef(node.metadata.name), 'strategic', change, { subresource: 'status' });
}

function ownerOf({ run, self, clock, reason }: HoldRun, since: string | null): CordonOwner {
  const now = clock.now().toISOString();
  return { run, operator: self.name, since: since ?? now, renewed: now, process: self.id, machine: self.machine, isKept: false, reason };
}

async function patchNode(
  cluster: Cluster,
  node: KubeObject,
  { annotation, unschedulable }: { readonly annotation: CordonOwner | null; readonly unschedulable?: boolean },
): Promise<void> {
  const annotations = { [CORDON_ANNOTATION]: annotation === null ? null : JSON.stringify(annotation) };
  const spec = unschedulable === undefined ? {} : { spec: { unschedulable: unschedulable ? true : null } };
  await cluster.patch(nodeRef(node.metadata.name), 'merge', { metadata: { annotations, ...versionOf(node) }, ...spec });
}

function versionOf({ metadata: { resourceVersion } }: KubeObject): JsonObject {
  return resourceVersion === undefined ? {} : { resourceVersion };
}

/** Repeats the work on a newer Node after a conflict. @returns null: no such Node */
export async function withNode<T>(cluster: Cluster, name: string, work: (node: KubeObject) => Promise<T>): Promise<T | null> {
  for (let attempt = 1; ; attempt++) {
    const node = await cluster.get(nodeRef(name));
    if (node === null) return null;
    try {
      return await work(node);
    } catch (error) {
      if (!isAppError(error, 'CLUSTER_CONFLICT') || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
