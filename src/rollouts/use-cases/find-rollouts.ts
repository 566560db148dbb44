import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Labels } from '../../kube/label-selector.ts';
import { matchesLabels } from '../../kube/match-labels.ts';
import type { KubeObject } from '../../kube/object.ts';
import { textAt } from '../../kubelet/documents/values.ts';
import { noRolloutDefinition, type Rollout, readRollout, rolloutRef } from '../api/rollout.ts';
import { ROLLOUT_API_VERSION, ROLLOUT_KIND } from '../api/schema.ts';
import { leaderLease } from '../controller/lease.ts';
import { oldestFirst } from '../controller/select.ts';

/** A rollout as the API server stores it, and as it is read. */
export interface FoundRollout {
  readonly object: KubeObject;
  readonly rollout: Rollout;
}

/**
 * All rollouts, by name. Objects that this version cannot read are omitted.
 * @throws AppError CLUSTER_NO_SUCH_KIND without the CustomResourceDefinition
 */
export async function listRollouts(cluster: Cluster): Promise<readonly FoundRollout[]> {
  const { items } = await served(cluster.list({ apiVersion: ROLLOUT_API_VERSION, kind: ROLLOUT_KIND }));
  return items
    .flatMap((object) => {
      const read = readRollout(object);
      return 'rollout' in read ? [{ object, rollout: read.rollout }] : [];
    })
    .toSorted((a, b) => (a.rollout.name < b.rollout.name ? -1 : 1));
}

/**
 * Reads a rollout by name.
 * @throws AppError ROLLOUT_NOT_FOUND (exit code 2), ROLLOUT_INVALID (exit code 2), CLUSTER_NO_SUCH_KIND
 */
export async function findRollout(cluster: Cluster, name: string): Promise<FoundRollout> {
  const object = await served(cluster.get(rolloutRef(name)));
  if (object === null) {
    const hint = 'List the rollouts: kubeletadm rollout list';
    throw new AppError({ code: 'ROLLOUT_NOT_FOUND', message: `no ${ROLLOUT_KIND} ${name} exists`, hint }, { exitCode: 2 });
  }
  return { object, rollout: validRollout(object) };
}

/** @throws AppError ROLLOUT_INVALID (exit code 2), with each error of the object */
export function validRollout(object: KubeObject): Rollout {
  const read = readRollout(object);
  if ('rollout' in read) return read.rollout;
  throw new AppError(
    read.errors.map((message) => ({ code: 'ROLLOUT_INVALID', message: `${ROLLOUT_KIND} ${object.metadata.name}: ${message}` })),
    { exitCode: 2 },
  );
}

async function served<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw isAppError(error, 'CLUSTER_NO_SUCH_KIND') ? noRolloutDefinition(error) : error;
  }
}

/**
 * The rollout that a Node belongs to: the oldest one that selects it. A rollout that an older one refuses has no nodes.
 * @returns null: none
 */
export function rolloutOfNode(rollouts: readonly Rollout[], labels: Labels): Rollout | null {
  const selecting = rollouts.filter(({ spec, status, isDeleted }) => {
    const isRefused = status.conditions?.some(({ type, reason }) => type === 'Stalled' && reason === 'Conflict');
    return !isDeleted && isRefused !== true && matchesLabels(spec.nodeSelector, labels);
  });
  return oldestFirst(selecting)[0] ?? null;
}

/** All rollouts, for commands that only mention them; none without the CustomResourceDefinition or the right to list them. */
export async function knownRollouts(cluster: Cluster): Promise<readonly Rollout[]> {
  try {
    return (await listRollouts(cluster)).map(({ rollout }) => rollout);
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_NO_SUCH_KIND') && !isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
    return [];
  }
}

/** The clocks of the hosts may differ. A Lease is renewed every 2 s. */
const FRESH_MS = 60_000;

/** Whether a controller has renewed its Lease within the last minute; null: the user may not read the Lease. */
export async function isControllerAlive(
  cluster: Cluster,
  { namespace, now }: { readonly namespace: string; readonly now: Date },
): Promise<boolean | null> {
  const lease = await cluster.get(leaderLease(namespace)).catch((error: unknown) => {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return undefined;
    throw error;
  });
  if (lease === undefined) return null;
  if (lease === null || textAt(lease, 'spec.holderIdentity') === '') return false;
  return Math.abs(now.getTime() - Date.parse(textAt(lease, 'spec.renewTime'))) < FRESH_MS;
}

/** Nothing happens to a rollout without a controller. */
export function controllerNotRunning(namespace: string): Problem {
  const message = `no controller has renewed its Lease ${namespace}/${leaderLease(namespace).name} within the last minute, so no node is changed. Start one: kubeletadm controller install`;
  return { code: 'CONTROLLER_NOT_RUNNING', message };
}

/** The namespace of the controller, from ControllerRevisions that it has recorded; without any, the default. */
export function controllerNamespace([revision]: readonly KubeObject[]): string {
  return revision?.metadata.namespace ?? AGENT_NAMESPACE;
}
