import { AppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import type { LifecycleCondition } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { podsOfNode } from '../../kubelet/workload/pod.ts';
import type { DrainRules } from '../forecast/drain-pod.ts';
import { type CordonOwner, HOLD_MS, isCordoned, type NodeObstacle, RENEW_MS } from '../node-hold.ts';
import { drainFailed, holdLost, nodeLeftCordoned } from './drain-problems.ts';
import { type HoldRun, markLifecycle, nodeRef, releaseHold, renewHold, takeHold } from './hold.ts';
import { type DrainState, nextDrain, type PodProgress, startDrain } from './next-drain.ts';

/** How a run drains nodes. */
export interface DrainSettings {
  readonly rules: DrainRules;
  /** Time limit of a node. */
  readonly timeoutMs: number;
  /** A maintenance follows the drain. */
  readonly isForMaintenance: boolean;
  /** Obstacles that the operator accepted. */
  readonly allows?: readonly NodeObstacle['kind'][];
}

export interface DrainPorts {
  readonly cluster: Cluster;
  readonly run: HoldRun;
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
}

/** The result of a node. A node that is not drained is uncordoned again, unless others have cordoned it. */
export interface DrainedNode {
  readonly node: string;
  readonly state: 'drained' | 'skipped' | 'failed';
  /** The run has cordoned the node; false: it was cordoned before, and stays so. */
  readonly isOurs: boolean;
  /** Why it was skipped or failed, as a clause; empty if drained. */
  readonly why: string;
  readonly problem: Problem | null;
  readonly pods: readonly PodProgress[];
  /** Requests to the API server for this node. */
  readonly requests: number;
}

const CONFLICT_PAUSE_MS = 5_000;
/** A cordon that is not renewed for so long belongs to a run that was killed. */
const SILENCE_MS = 2 * RENEW_MS + CONFLICT_PAUSE_MS;

/**
 * Cordons a node and evicts its pods. If that fails or is interrupted, the node is uncordoned again.
 * @throws the reason of an interruption, and errors of the API server that a later attempt would not overcome; the node is
 *   uncordoned before
 */
export async function drainNode(ports: DrainPorts, node: string, settings: DrainSettings): Promise<DrainedNode> {
  const counted = countingRequests(ports.cluster);
  const own = { ...ports, cluster: counted.cluster };
  const result = (more: Pick<DrainedNode, 'state' | 'isOurs' | 'problem' | 'pods' | 'why'>): DrainedNode => ({
    node,
    ...more,
    requests: counted.count(),
  });
  const held = await holdWhenFree(own, node, settings.allows ?? []).catch(async (error: unknown) => {
    // A request without an answer may have cordoned the node.
    if (counted.hasPatched()) await giveBack(own, node);
    throw error;
  });
  if ('obstacle' in held) return result({ state: 'skipped', isOurs: false, why: held.obstacle.why, problem: null, pods: [] });
  const { isOurs } = held;
  const mark = async (conditions: Parameters<typeof markLifecycle>[2]): Promise<boolean> =>
    !isOurs || markLifecycle(own.cluster, node, conditions, ports.run);
  const planned: Partial<Record<LifecycleCondition, string>> = settings.isForMaintenance ? { MaintenancePlanned: 'AdminRequested' } : {};
  try {
    if (isOurs) report(ports, node, 'NODE_CORDONED', 'cordoned');
    const evicted = (await mark({ ...planned, DrainInProgress: 'AdminRequested' })) ? await evictPods(own, node, settings, isOurs) : null;
    const pods = [...(evicted?.state.pods.values() ?? [])];
    if (evicted?.ended === 'drained' && (await mark({ ...planned, Drained: 'DrainCompleted' }))) {
      report(ports, node, 'NODE_DRAINED', `drained: ${pods.length} ${pods.length === 1 ? 'pod has' : 'pods have'} left`);
      return result({ state: 'drained', isOurs, why: '', problem: null, pods });
    }
    const ended = evicted === null || evicted.ended === 'drained' ? 'lost' : evicted.ended;
    const problem = ended === 'lost' ? holdLost(node) : drainFailed(node, ended, pods, settings.timeoutMs);
    if (isOurs) await giveBack(own, node);
    return result({ state: 'failed', isOurs, why: problem.message, problem, pods });
  } catch (error) {
    if (isOurs) await giveBack(own, node);
    throw error;
  }
}

/** Uncordons a node that this run has cordoned. @throws AppError NODE_LEFT_CORDONED if the API server does not answer for 30 s */
export async function giveBack({ cluster, run, reporter }: Omit<DrainPorts, 'signal'>, node: string): Promise<void> {
  const isOwn = (owner: CordonOwner): boolean => owner.run === run.run;
  const until = run.clock.now().getTime() + GIVE_BACK_MS;
  for (;;) {
    try {
      if (await releaseHold(cluster, node, isOwn)) report({ reporter }, node, 'NODE_UNCORDONED', 'uncordoned');
      return;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (!isTemporaryError(error) || run.clock.now().getTime() >= until) throw nodeLeftCordoned(node, error);
      await run.clock.sleep(2_000);
    }
  }
}

const GIVE_BACK_MS = 30_000;

/** A run that was killed leaves its cordon, which expires; one that runs renews it. */
async function holdWhenFree(
  { cluster, run, signal, reporter }: DrainPorts,
  node: string,
  allows: readonly NodeObstacle['kind'][],
): Promise<NonNullable<Awaited<ReturnType<typeof takeHold>>>> {
  const now = (): number => run.clock.now().getTime();
  const until = now() + HOLD_MS + CONFLICT_PAUSE_MS;
  let isReported = false;
  // A run in progress renews its cordon by then, also if the clocks differ.
  let seen: { readonly renewed: string; readonly at: number } | null = null;
  const mayTakeOver = ({ renewed, process, machine }: CordonOwner): boolean => {
    if (machine === run.self.machine && !run.self.isRunning(process)) return true;
    if (seen?.renewed !== renewed) seen = { renewed, at: now() };
    return now() - seen.at >= SILENCE_MS;
  };
  for (;;) {
    signal.throwIfAborted();
    const taken = (await takeHold(cluster, node, run, { allows, mayTakeOver })) ?? {
      obstacle: { kind: 'removed', why: 'its Node does not exist' } as const,
    };
    if (!('obstacle' in taken) || taken.obstacle.kind !== 'held' || now() >= until) return taken;
    if (!isReported) report({ reporter }, node, 'WAITING', `${taken.obstacle.why}; waiting until that run ends`);
    isReported = true;
    await run.clock.sleep(CONFLICT_PAUSE_MS, signal);
  }
}

async function evictPods(
  { cluster, run, signal, reporter }: DrainPorts,
  node: string,
  { rules, timeoutMs }: DrainSettings,
  isOurs: boolean,
): Promise<{ readonly ended: 'drained' | 'timeout' | 'permission' | 'lost'; readonly state: DrainState }> {
  const { clock } = run;
  const now = (): number => clock.now().getTime();
  let state = startDrain(now(), rules, timeoutMs);
  let renewAt = now() + RENEW_MS;
  const isHeld = async (): Promise<boolean> => {
    if (isOurs) return renewHold(cluster, node, run);
    const found = await cluster.get(nodeRef(node));
    return found !== null && isCordoned(found);
  };
  for (;;) {
    signal.throwIfAborted();
    if (now() >= renewAt) {
      const held = await unlessTemporary(isHeld());
      if (held === false) return { ended: 'lost', state };
      if (held !== null) renewAt = now() + RENEW_MS;
    }
    const pods = await unlessTemporary(listPods(cluster, node));
    if (pods !== null) {
      const step = nextDrain(state, { kind: 'observed', pods }, now());
      reportProgress(reporter, node, state, step.state);
      state = step.state;
      if (step.ended === 'drained' && !(await isHeld())) return { ended: 'lost', state };
      if (step.ended !== null) return { ended: step.ended, state };
      const answers = await inParallel(step.evict, step.evict.length, (pod) => evict(cluster, pod, rules));
      for (const [i, { uid }] of step.evict.entries()) {
        const before = state;
        state = nextDrain(state, { kind: 'answered', uid, result: answers[i] ?? NOT_ANSWERED }, now()).state;
        reportProgress(reporter, node, before, state);
      }
    } else if (now() - state.startedAt >= timeoutMs) return { ended: 'timeout', state };
    await clock.sleep(1_000, signal);
  }
}

const NOT_ANSWERED = { kind: 'refused', httpStatus: 0, why: 'the API server did not answer', retryAfterMs: null } as const;

async function evict(cluster: Cluster, { name, uid }: PodProgress, { gracePeriodSeconds }: DrainRules) {
  const [namespace = '', pod = ''] = name.split('/');
  const options = gracePeriodSeconds === null ? {} : { gracePeriodSeconds };
  return unlessTemporary(cluster.evict({ namespace, name: pod, uid }, options));
}

async function listPods(cluster: Cluster, node: string): Promise<readonly KubeObject[]> {
  return (await cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(node) })).items;
}

async function unlessTemporary<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (!isTemporaryError(error)) throw error;
    return null;
  }
}

function report({ reporter }: Pick<DrainPorts, 'reporter'>, host: string, code: string, message: string, verbosity: 0 | 1 = 0): void {
  reporter.report({ level: 'info', code, host, message, verbosity });
}

/** Reports each pod that was evicted, has left, or whose eviction was refused for a new reason. */
function reportProgress(reporter: Reporter, node: string, before: DrainState, after: DrainState): void {
  for (const [uid, pod] of after.pods) {
    const old = before.pods.get(uid);
    if (pod.stage === 'gone' && old?.stage !== 'gone') report({ reporter }, node, 'POD_EVICTED', `pod ${pod.name} has left the node`);
    else if (pod.stage === 'terminating' && old?.stage !== 'terminating')
      report({ reporter }, node, 'POD_TERMINATING', `pod ${pod.name} is terminating`, 1);
    else if (pod.why !== '' && pod.why !== old?.why) report({ reporter }, node, 'POD_NOT_EVICTED', `pod ${pod.name} waits: ${pod.why}`);
  }
}

function countingRequests(cluster: Cluster) {
  let count = 0;
  let patches = 0;
  const counted = <A extends readonly unknown[], R>(call: (...words: A) => R) => {
    return (...words: A): R => {
      count++;
      return call(...words);
    };
  };
  const { get, list, evict: evictPod } = cluster;
  const patch = counted<Parameters<Cluster['patch']>, ReturnType<Cluster['patch']>>((...words) => {
    patches++;
    return cluster.patch(...words);
  });
  return {
    cluster: { ...cluster, get: counted(get), list: counted(list), patch, evict: counted(evictPod) } satisfies Cluster,
    count: () => count,
    hasPatched: () => patches > 0,
  };
}
