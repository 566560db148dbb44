import { AppError, isAppError, settle } from '../../base/errors.ts';
import { type Impact, needsDrain } from '../../host/plan/impact.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { mayDrain } from '../../kube/has-permission.ts';
import { podsOfNode } from '../../kubelet/workload/pod.ts';
import { type DrainRules, hasPodsToEvict } from '../forecast/drain-pod.ts';
import { drainForecaster } from '../forecast/forecast.ts';
import { readNodeView } from '../forecast/read-cluster-view.ts';
import { obstacleOf, RENEW_MS } from '../node-hold.ts';
import { type DrainPorts, drainNode, giveBack } from './drain-node.ts';
import { drainForbidden, drainRefused, holdLost, nodeHeld, nodeLeftToFail, nodeNotDrained, notDrainedWarning } from './drain-problems.ts';
import { markLifecycle, nodeRef, renewHold } from './hold.ts';
import { type EvictedWorkload, readEvictedWorkloads, waitSettled } from './settle.ts';

/** A change of a node in a run. */
export interface NodeChange {
  readonly node: string;
  readonly impact: Impact | null;
  /** Whether the node has its previous configuration, after the change failed. */
  readonly isRestored: (error: AppError) => boolean;
}

type Policy = NonNullable<RunSettings['drain']>;

/** The rules for a change: pods of DaemonSets stay; pods and data are lost only with `--force-drain`. */
export function rulesOfPolicy({ isForced }: Pick<Policy, 'isForced'>): DrainRules {
  const losses = { deleteEmptyDirData: isForced, force: isForced, lossOption: '--force-drain' };
  return { ignoreDaemonSets: true, ...losses, gracePeriodSeconds: null, selects: () => true };
}

/**
 * Performs a change on a drained node: cordons it, evicts its pods, and uncordons it afterwards. A node that is already
 * drained and cordoned by others stays as it is. If the change fails and the node may run the new configuration, it stays
 * cordoned until the next run succeeds.
 * @throws AppError NODE_HELD, NODE_NOT_DRAINED, DRAIN_BLOCKED and those of `drainNode` (exit code 3): nothing was changed
 */
export async function whileDrained<T>(
  ports: DrainPorts,
  { node, impact, isRestored }: NodeChange,
  policy: Policy,
  change: () => Promise<T>,
): Promise<T> {
  const holds = nodeHolds(ports, policy);
  await holds.take(node, impact);
  try {
    const result = await change();
    await holds.end(node, true);
    return result;
  } catch (error) {
    if (!isAppError(error, 'NODE_LEFT_CORDONED')) await holds.end(node, isAppError(error) && isRestored(error));
    throw error;
  }
}

/** The nodes that a run keeps out of service while it changes them. */
export interface NodeHolds {
  /** Drains a node for a change that needs it. @throws as `whileDrained` */
  take(node: string, impact: Impact | null): Promise<void>;
  /** Ends the change of a node. @param isProven whether its new or its previous configuration is verified; otherwise it stays cordoned */
  end(node: string, isProven: boolean): Promise<void>;
  /** Whether the run has taken a node, and its change has not ended. */
  has(node: string): boolean;
  /** Ends the changes whose result is not known. */
  endAll(): Promise<void>;
}

export function nodeHolds(ports: DrainPorts, policy: Policy): NodeHolds {
  const held = new Map<string, { readonly stop: () => Promise<void>; readonly workloads: readonly EvictedWorkload[] }>();
  const end: NodeHolds['end'] = async (node, isProven) => {
    const hold = held.get(node);
    if (hold === undefined) return;
    held.delete(node);
    await hold.stop();
    if (isProven) {
      await giveBack(ports, node);
      await waitSettled(ports, node, hold.workloads, policy.settleMs ?? 0);
    } else ports.reporter.report({ level: 'warning', ...nodeLeftToFail(node) });
  };
  return {
    take: async (node, impact) => {
      const workloads = needsDrain(impact) ? await takeOutOfService(ports, node, policy) : null;
      if (workloads === null) return;
      const conditions = { Drained: 'DrainCompleted', MaintenanceInProgress: 'AdminRequested' };
      const isHeld = await markLifecycle(ports.cluster, node, conditions, ports.run).catch(async (error: unknown) => {
        await giveBack(ports, node);
        throw error;
      });
      if (!isHeld) {
        // Another client uncordoned the node: the annotation and the conditions are left.
        await giveBack(ports, node);
        throw new AppError(holdLost(node), { exitCode: 3 });
      }
      const stop = new AbortController();
      const renewing = renewUntil(ports, node, stop.signal);
      const stopRenewing = async (): Promise<void> => {
        stop.abort();
        await renewing;
      };
      // A node is taken again if its change could not begin.
      const earlier = held.get(node);
      held.set(node, { stop: stopRenewing, workloads: [...(earlier?.workloads ?? []), ...workloads] });
      await earlier?.stop();
    },
    end,
    has: (node) => held.has(node),
    endAll: async () => {
      for (const node of held.keys()) await end(node, false);
    },
  };
}

/** @returns the workloads whose pods were evicted; null: this run has not cordoned the node */
async function takeOutOfService(ports: DrainPorts, node: string, policy: Policy): Promise<readonly EvictedWorkload[] | null> {
  const { cluster, run, reporter } = ports;
  const found = await settle(nodeWithPods(cluster, node));
  if ('error' in found) {
    if (!policy.isAllowed || found.error.code !== 'CLUSTER_FORBIDDEN') throw found.error;
    if (policy.isRequired === true) throw new AppError(drainForbidden(node), { exitCode: 3, cause: found.error });
    reporter.report({ level: 'warning', ...notDrainedWarning(node) });
    return null;
  }
  // A host that joins has no pods.
  if (found.value === null) return null;
  const { object, pods } = found.value;
  const isDrained = !hasPodsToEvict(pods);
  const obstacle = obstacleOf(object, { ...run, now: run.clock.now() });
  if (obstacle?.kind === 'cordoned' && isDrained) return null;
  if (obstacle !== null && (obstacle.kind !== 'held' || !policy.isAllowed))
    throw new AppError(nodeHeld(node, obstacle.why), { exitCode: 3 });
  if (!policy.isAllowed) {
    if (isDrained || policy.acceptsLoss === true) return null;
    throw new AppError(nodeNotDrained(node), { exitCode: 3 });
  }
  if (!(await mayDrain(cluster, node))) {
    if (policy.isRequired === true) throw new AppError(drainForbidden(node), { exitCode: 3 });
    if (!isDrained) reporter.report({ level: 'warning', ...notDrainedWarning(node) });
    return null;
  }
  const rules = rulesOfPolicy(policy);
  if (!isDrained) {
    const forecast = drainForecaster(await readNodeView(cluster, pods));
    const refusal = drainRefused(forecast([node], rules, policy.timeoutMs));
    if (refusal !== null) throw refusal;
  }
  const workloads = (policy.settleMs ?? 0) > 0 ? await readEvictedWorkloads(cluster, pods) : [];
  const drained = await drainNode(ports, node, { rules, timeoutMs: policy.timeoutMs, isForMaintenance: true });
  if (drained.state === 'skipped') throw new AppError(nodeHeld(node, drained.why), { exitCode: 3 });
  if (drained.problem !== null) throw new AppError(drained.problem, { exitCode: 3 });
  return workloads;
}

/** Null: no such Node. @throws CLUSTER_FORBIDDEN also for bootstrap tokens, which may not list pods */
async function nodeWithPods(cluster: Cluster, node: string) {
  const object = await cluster.get(nodeRef(node));
  if (object === null) return null;
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(node) });
  return { object, pods: items };
}

/** Keeps the cordon during a change, which may take minutes. A failed renewal is repeated. */
async function renewUntil({ cluster, run }: DrainPorts, node: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await run.clock.sleep(RENEW_MS, signal);
      await renewHold(cluster, node, run);
    } catch (error) {
      if (!signal.aborted && !isAppError(error)) throw error;
    }
  }
}
