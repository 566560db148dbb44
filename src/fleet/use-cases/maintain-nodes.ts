import { AppError, type ExitCode, interrupted, isAppError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { conditionOf, LIFECYCLE_CONDITIONS } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import type { DrainedNode, DrainSettings } from '../../maintenance/drain/drain-node.ts';
import { type DrainOutcome, drainNodes } from '../../maintenance/drain/drain-nodes.ts';
import { drainRefused, holdLost, nodeHeld, nodeNotFound } from '../../maintenance/drain/drain-problems.ts';
import { type HoldRun, markLifecycle, nodeRef, releaseHold, renewHold } from '../../maintenance/drain/hold.ts';
import { plannedDrains, removePlanned } from '../../maintenance/drain/planned-drains.ts';
import { type DrainForecast, drainForecaster } from '../../maintenance/forecast/forecast.ts';
import { readClusterView } from '../../maintenance/forecast/read-cluster-view.ts';
import { type CordonOwner, cordonOwner, isAbandoned, isCordoned, obstacleOf, ownConditions } from '../../maintenance/node-hold.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { findNodeNames, type NodeChoice } from './named-hosts.ts';

/** The nodes of a command. */
export interface MaintenanceRequest {
  readonly choice: NodeChoice;
  readonly cluster: KubeconfigRequest;
  readonly reporter: Reporter;
}

export interface DrainRequest extends MaintenanceRequest {
  readonly settings: Omit<DrainSettings, 'allows'>;
  readonly limits: Parameters<typeof drainNodes>[3];
  /** What the nodes are cordoned for, as a clause. */
  readonly reason: string;
}

/** Cordons of others by hand, and by earlier commands of the operator, are kept. */
const ALLOWS = ['cordoned'] as const;

/**
 * Drains nodes, and leaves them cordoned. Nothing is cordoned if one of them cannot be drained, or is held by others.
 * @param isApproved called with the forecast before the first cordon; false: nothing is drained
 * @returns null: it was not approved
 * @throws AppError with exit code 3 if a node cannot be drained
 */
export async function drainChosenNodes(
  services: NodeCommandPorts,
  { choice, cluster: access, reporter, settings, limits, reason }: DrainRequest,
  isApproved: (forecast: DrainForecast, held: ReadonlyMap<string, string>) => boolean,
): Promise<readonly DrainOutcome[] | null> {
  const { clock, signal, self } = services;
  const drain = async (cluster: Cluster) => {
    const names = await findNodeNames(services, cluster, choice, { changes: true });
    const run: HoldRun = { run: await services.newId(), self, clock, reason };
    const nodes = await readNamed(cluster, names);
    const seen = await readClusterView(cluster);
    const obstacles = nodes.flatMap((node) => {
      const obstacle = obstacleOf(node, { ...run, now: clock.now() });
      return obstacle === null || obstacle.kind === 'cordoned' || obstacle.kind === 'held'
        ? []
        : [[node.metadata.name, obstacle.why] as const];
    });
    const forecast = drainForecaster(seen)(names, settings.rules, settings.timeoutMs);
    const isToDrain = isApproved(forecast, new Map(obstacles));
    const held = obstacles.map(([name, why]) => nodeHeld(name, why));
    const problems = [...held, ...(drainRefused(forecast)?.problems ?? [])];
    if (problems.length > 0) throw new AppError(problems, { exitCode: 3 });
    if (!isToDrain) return null;
    const keep = async ({ node, isOurs }: DrainedNode): Promise<void> => {
      if (!isOurs) return;
      if (settings.isForMaintenance)
        await markLifecycle(cluster, node, { Drained: 'DrainCompleted', MaintenanceInProgress: 'AdminRequested' }, run);
      if (!(await renewHold(cluster, node, run, { isKept: true }))) throw new AppError(holdLost(node));
    };
    const planned = plannedDrains(run);
    if (settings.isForMaintenance) await planned.add(cluster, names);
    const own = { ...settings, allows: ALLOWS };
    return drainNodes({ cluster, run, signal, reporter }, names, own, limits, keep).finally(planned.removeAll);
  };
  return withCluster(services, access, drain, reporter);
}

/** @throws AppError NODE_NOT_FOUND (exit code 2) */
async function readNamed(cluster: Cluster, names: readonly string[]): Promise<readonly KubeObject[]> {
  return inParallel(names, AT_ONCE, async (name) => {
    const found = await cluster.get(nodeRef(name));
    if (found === null) throw new AppError(nodeNotFound(name), { exitCode: 2 });
    return found;
  });
}

const AT_ONCE = 16;

/** 0: all drained · 130: interrupted · 1: the only node failed · 4: some of several are not drained. */
export function drainExitCode(outcomes: readonly DrainOutcome[], { signal }: { readonly signal: AbortSignal }): ExitCode {
  if (outcomes.every(({ outcome }) => outcome === 'changed')) return 0;
  if (outcomes.some(({ outcome }) => outcome === 'interrupted'))
    return isAppError(signal.reason) ? signal.reason.exitCode : interrupted('SIGINT').exitCode;
  return outcomes.length > 1 ? 4 : (outcomes[0]?.error?.exitCode ?? 1);
}

/** The result of a node: its cordon was removed, it had none, or it stays. */
interface UncordonedNode {
  readonly node: string;
  readonly state: 'uncordoned' | 'unchanged' | 'refused';
  /** Why it is unchanged or refused, as a clause. */
  readonly why: string;
}

/**
 * Ends the maintenance of nodes: removes the conditions and cordons of this program, also those of other operators. Cordons
 * of others, and of runs in progress, stay.
 */
export async function uncordonChosenNodes(services: NodeCommandPorts, { choice, cluster: access, reporter }: MaintenanceRequest) {
  const { clock, self } = services;
  const uncordon = async (cluster: Cluster): Promise<readonly UncordonedNode[]> => {
    const names = await findNodeNames(services, cluster, choice, { changes: true });
    const results: UncordonedNode[] = [];
    for (const node of await readNamed(cluster, names)) {
      const { name } = node.metadata;
      const mayRelease = (owner: CordonOwner): boolean => owner.isKept || isAbandoned(owner, { self, now: clock.now() });
      if (await releaseHold(cluster, name, mayRelease)) results.push({ node: name, state: 'uncordoned', why: '' });
      else {
        const isRemoved = await removePlanned(cluster, name, (now) => ownConditions(now).types.length > 0);
        const { state, why } = whyCordoned(node);
        results.push({ node: name, state, why: isRemoved ? `${why}; ${removedText(ownConditions(node).types)}` : why });
      }
    }
    return results;
  };
  return withCluster(services, access, uncordon, reporter);
}

function removedText(types: readonly string[]): string {
  return types.length === 1 ? `the condition ${types[0]} was removed` : `the conditions ${types.join(', ')} were removed`;
}

function whyCordoned(node: KubeObject): Pick<UncordonedNode, 'state' | 'why'> {
  const owner = cordonOwner(node);
  if (owner !== null) return { state: 'refused', why: `a run of ${owner.operator} is in progress since ${owner.since} (${owner.reason})` };
  if (isCordoned(node)) return { state: 'refused', why: 'it is cordoned, not by kubeletadm' };
  return { state: 'unchanged', why: 'it is not cordoned' };
}

/** Whether and why a node is out of service. */
export interface NodeMaintenance {
  readonly node: string;
  readonly isCordoned: boolean;
  /** Null: cordoned by others, or not cordoned. */
  readonly owner: CordonOwner | null;
  readonly conditions: readonly { readonly type: string; readonly reason: string; readonly message: string; readonly isOurs: boolean }[];
  /** Why a change would not touch the node, as a clause; null: it would. */
  readonly obstacle: string | null;
}

/** @param request.choice undefined: all Nodes that are out of service */
export async function readMaintenance(
  services: NodeCommandPorts,
  { choice, cluster: access }: { readonly choice: NodeChoice | undefined; readonly cluster: KubeconfigRequest },
): Promise<readonly NodeMaintenance[]> {
  return withCluster(services, access, async (cluster) => {
    const names = choice === undefined ? null : await findNodeNames(services, cluster, choice, { changes: false });
    const nodes = names === null ? (await cluster.list({ apiVersion: 'v1', kind: 'Node' })).items : await readNamed(cluster, names);
    const now = services.clock.now();
    const all = nodes.map((node): NodeMaintenance => {
      const conditions = LIFECYCLE_CONDITIONS.flatMap((type) => conditionOf(node, type) ?? []).filter(({ status }) => status === 'True');
      const own = ownConditions(node).types;
      return {
        node: node.metadata.name,
        isCordoned: isCordoned(node),
        owner: cordonOwner(node),
        conditions: conditions.map(({ type = '', reason = '', message = '' }) => ({
          type,
          reason,
          message,
          isOurs: own.some((ours) => ours === type),
        })),
        obstacle: obstacleOf(node, { run: '', self: services.self, now })?.why ?? null,
      };
    });
    return names === null ? all.filter((one) => one.isCordoned || one.conditions.length > 0 || one.obstacle !== null) : all;
  });
}
