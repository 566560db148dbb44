import { AppError, isAppError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { nextStep, type RolloutRules } from '../../maintenance/next-step.ts';
import { assessProgress, type Goal, isRunningDesired } from '../status/assess-node-config.ts';
import { kubeletNotReached } from '../status/dynamic-problems.ts';
import { type AssignedBy, applyAssignment, createAssignmentEvent, planAssignment } from './assign-config.ts';
import { type NodeFeed, openNodeFeed } from './follow-nodes.ts';
import type { AssessedNode } from './read-nodes.ts';
import {
  type AssignmentSettings,
  assignedBy,
  type RolloutListener,
  type RolloutOutcome,
  type RolloutPorts,
  type RolloutResult,
  type RolloutStage,
} from './rollout.ts';

/** A node and its new assignment; null: none. */
export interface RolloutTarget {
  readonly name: string;
  readonly desired: ConfigSource | null;
  /**
   * Required current assignment, unless `desired` is assigned already: a node with another one is not
   * changed. Absent: any.
   */
  readonly expected?: ConfigSource | null | undefined;
}

interface RolloutRun extends AssignmentSettings {
  /** Labels common to the nodes, which limit the watch. */
  readonly selector: string | undefined;
  readonly rules: RolloutRules;
  readonly until: Goal['until'];
  /** Time that a node must remain updated and Ready before it counts as updated. */
  readonly minReadyMs: number;
  /**
   * The reason why the API server does not reach the kubelet of a node; null: it does. A node that was reached before its
   * assignment must be reached again before it counts as updated. Absent: not checked.
   */
  readonly whyUnreached?: (name: string) => Promise<string | null>;
  /** Called and awaited before a node is assigned a source. */
  readonly begins?: (name: string, before: ConfigSource | null) => Promise<void>;
  readonly listener: RolloutListener;
}

const POLL_MS = 1_000;
/** Time in which the API server must reach the kubelet of an updated node: a CSR of it may wait for its approval. */
const REACH_MS = 60_000;
/** A kubelet up to 1.23 notices a new assignment within 12 s and sends an Event before it restarts. */
const NOTICE_MS = 20_000;
/** Number of nodes assessed per interval; more nodes lengthen the interval. */
const NODES_PER_POLL = 250;

/**
 * Assigns nodes batch by batch, and watches each until it is updated, failed or timed out. Nodes that are up
 * to date are not changed; a rollout in progress from an earlier run is continued. A node that is rolled back
 * after its update has failed.
 * @throws the errors of reading the nodes; an unreachable API server is retried for at most the time of a
 *   node
 */
export async function rollOut(
  ports: RolloutPorts,
  cluster: Cluster,
  targets: readonly RolloutTarget[],
  run: RolloutRun,
): Promise<RolloutResult> {
  const { clock, signal } = ports;
  const names = targets.map(({ name }) => name);
  const random = (): number => ports.random();
  const feed = await openNodeFeed(names, { cluster, clock, random, signal, backend: run.backend, labelSelector: run.selector });
  try {
    return await new Rollout(ports, cluster, feed, targets, run).run();
  } finally {
    await feed.close();
  }
}

interface Member {
  readonly target: RolloutTarget;
  stage: RolloutStage;
  validated: AssessedNode;
  error: AppError | null;
  isTouched: boolean;
  beganAt: number;
  wasDown: boolean;
  /**
   * The status already showed the desired source before the assignment was changed to it: it proves nothing
   * until the kubelet had time to use the previous assignment.
   */
  wasShown: boolean;
  /** Time since which the node is updated without interruption. */
  updatedSince: number | null;
  /** Before its assignment, the API server reached the kubelet. */
  wasReached: boolean;
  readonly initial: ConfigSource | null;
  /** A Node with a smaller resourceVersion was read before the assignment; null: not assigned by this run. */
  keptVersion: number | null;
  reported: string;
  isGone: boolean;
}

class Rollout {
  readonly #ports: RolloutPorts;
  readonly #cluster: Cluster;
  readonly #feed: NodeFeed;
  readonly #targets: readonly RolloutTarget[];
  readonly #run: RolloutRun;
  #members: readonly Member[] = [];
  #batches = 0;
  #blockedSince: number | null = null;
  #unansweredSince: number | null = null;

  constructor(ports: RolloutPorts, cluster: Cluster, feed: NodeFeed, targets: readonly RolloutTarget[], run: RolloutRun) {
    this.#ports = ports;
    this.#cluster = cluster;
    this.#feed = feed;
    this.#targets = targets;
    this.#run = run;
  }

  async run(): Promise<RolloutResult> {
    const { clock, signal } = this.#ports;
    const { rules, listener, rollout } = this.#run;
    const pollMs = POLL_MS * Math.max(1, Math.ceil(this.#targets.length / NODES_PER_POLL));
    await this.#look();
    for (;;) {
      listener.progress?.(this.#outcomes());
      const { start, isCanary, blocked, stopped } = nextStep(this.#nodes(), rules);
      if (start.length > 0) {
        this.#blockedSince = null;
        await this.#begin(
          start.map(({ name }) => name),
          isCanary,
        );
        continue;
      }
      const result = { outcomes: this.#outcomes(), blocked, isStopped: stopped !== null };
      if (blocked.length === 0 && !this.#members.some(({ stage }) => stage === 'in-progress')) return result;
      if (blocked.length === 0) this.#blockedSince = null;
      else {
        // Before the first change, waiting has no benefit.
        if (this.#batches === 0 || this.#now() - (this.#blockedSince ?? this.#now()) >= rollout.timeoutMs) return result;
        if (this.#blockedSince === null) listener.blocked?.(blocked);
        this.#blockedSince ??= this.#now();
      }
      await clock.sleep(pollMs, signal);
      await this.#look();
    }
  }

  #now(): number {
    return this.#ports.clock.now().getTime();
  }

  #nodes() {
    return this.#members.map(({ target, stage, validated, isGone }) => ({
      name: target.name,
      state: stage,
      isDown: !isGone && !validated.config.isReady,
    }));
  }

  #outcomes(): readonly RolloutOutcome[] {
    return this.#members.map(outcomeOf);
  }

  #goal({ desired }: RolloutTarget): Goal {
    return { desired, until: this.#run.until };
  }

  async #begin(names: readonly string[], isCanary: boolean): Promise<void> {
    const { listener } = this.#run;
    this.#batches++;
    const batch = this.#members.filter(({ target }) => names.includes(target.name));
    const down = this.#nodes().flatMap(({ name, isDown }) => (isDown ? [name] : []));
    listener.batch?.({ number: this.#batches, names, isCanary, down });
    await Promise.all(batch.map((member) => this.#assign(member)));
  }

  async #assign(member: Member): Promise<void> {
    const { begins, listener } = this.#run;
    const { config } = member.validated;
    const { name, desired } = member.target;
    const change = this.#plan(config, desired);
    if (change !== null && config.isReady) member.wasReached = await this.#isReached(name);
    try {
      if (change !== null) {
        await begins?.(name, config.source.source);
        const kept = await applyAssignment(this.#cluster, config, change, desired);
        member.keptVersion = Number(kept.resourceVersion);
        const eventError = await createAssignmentEvent(this.#cluster, name, desired, this.#assignedBy());
        if (eventError !== null) listener.onEventNotCreated?.(name, eventError);
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
      const { exitCode } = error;
      if (isAppError(error, 'ASSIGNMENT_REPLACED')) {
        member.error = error;
        this.#end(member, 'replaced');
        return;
      }
      // The result of a request without a response is unknown.
      // Exit code 3: the node was not drained, so nothing was assigned.
      member.isTouched = exitCode !== 3 && !isAppError(error, 'CLUSTER_FORBIDDEN') && !isAppError(error, 'CLUSTER_INVALID');
      member.error = error;
      this.#end(member, 'failed');
      return;
    }
    member.isTouched = change !== null;
    member.stage = 'in-progress';
    member.wasDown = !config.isReady;
    // A native status may be from an earlier assignment; that of an agent, if only the permission to end pods changed.
    const mayBeOld = config.backend === 'native' || sameSource(config.source.source, desired);
    member.wasShown = change !== null && mayBeOld && sameSource(config.status?.assigned ?? null, desired);
    member.beganAt = this.#now();
    listener.assigned?.(name, desired, change !== null);
  }

  /** A kubelet that is down would delay the rollout, so only those of Ready nodes are asked. */
  async #isReached(name: string): Promise<boolean> {
    const { whyUnreached, listener } = this.#run;
    if (whyUnreached === undefined) return false;
    const why = await whyUnreached(name);
    if (why !== null) listener.onUnreached?.(name, why);
    return why === null;
  }

  /** Ends a node that was updated long enough, once the API server reaches its kubelet as before. */
  async #finish(member: Member, updatedMs: number): Promise<void> {
    const { whyUnreached, minReadyMs } = this.#run;
    const { name } = member.target;
    const why = member.wasReached && whyUnreached !== undefined ? await whyUnreached(name) : null;
    if (why !== null && updatedMs < minReadyMs + REACH_MS) return;
    if (why !== null) member.error = new AppError(kubeletNotReached(name, why));
    this.#end(member, why === null ? 'changed' : 'failed');
  }

  #plan(config: AssessedNode['config'], desired: ConfigSource | null) {
    return planAssignment(config, desired, this.#assignedBy());
  }

  #assignedBy(): AssignedBy {
    return assignedBy(this.#ports, this.#run);
  }

  #end(member: Member, stage: 'changed' | 'failed' | 'unreachable' | 'replaced'): void {
    member.stage = stage;
    this.#run.listener.ended?.(outcomeOf(member));
  }

  async #look(): Promise<void> {
    const validated = await this.#read();
    if (validated === null) return;
    const byName = new Map(validated.map((node) => [node.config.name, node]));
    if (this.#members.length === 0) {
      this.#members = this.#targets.map((target) => this.#newMember(target, byName.get(target.name) as AssessedNode));
      return;
    }
    await Promise.all(
      this.#members.map(async (member) => {
        const found = byName.get(member.target.name);
        if (found !== undefined) await this.#see(member, found);
        else if (!member.isGone) this.#lose(member);
      }),
    );
  }

  /** Null: the API server is unreachable. */
  async #read(): Promise<readonly AssessedNode[] | null> {
    const { listener, rollout } = this.#run;
    try {
      const validated = await this.#feed.read();
      if (this.#unansweredSince !== null) listener.issue?.(null);
      this.#unansweredSince = null;
      return validated;
    } catch (error) {
      if (!isTemporaryError(error)) throw error;
      if (this.#unansweredSince === null) listener.issue?.(error);
      this.#unansweredSince ??= this.#now();
      if (this.#now() - this.#unansweredSince >= rollout.timeoutMs) throw error;
      return null;
    }
  }

  /** Handles a deleted Node: the rollout does not wait for it, and it is not unavailable. */
  #lose(member: Member): void {
    member.isGone = true;
    if (member.stage === 'queued' || member.stage === 'in-progress') this.#end(member, 'unreachable');
  }

  #newMember(target: RolloutTarget, validated: AssessedNode): Member {
    const { config, verdict } = validated;
    const now = this.#now();
    const wasShown = this.#plan(config, target.desired) === null && isJustAssigned(validated, target.desired, now);
    const member = {
      target,
      validated,
      error: null,
      isTouched: false,
      beganAt: now,
      wasDown: !config.isReady,
      wasShown,
      updatedSince: null,
      wasReached: false,
      initial: config.source.source,
      keptVersion: null,
      reported: '',
      isGone: false,
    };
    const stage = (): RolloutStage => {
      if (this.#plan(config, target.desired) !== null)
        return target.expected !== undefined && !sameSource(config.source.source, target.expected) ? 'replaced' : 'queued';
      if (wasShown) return 'in-progress';
      if (isRunningDesired(config, verdict, this.#goal(target))) return 'changed';
      if (assessProgress(config, verdict, this.#goal(target), 0) === 'failed') return 'failed';
      return config.isReady ? 'in-progress' : 'queued';
    };
    const started: Member = { ...member, stage: stage() };
    if (started.stage !== 'queued' && started.stage !== 'replaced') this.#run.listener.assigned?.(target.name, target.desired, false);
    if (started.stage === 'failed' || started.stage === 'replaced') this.#run.listener.ended?.(outcomeOf(started));
    return started;
  }

  async #see(member: Member, found: AssessedNode): Promise<void> {
    const { minReadyMs, rollout, listener } = this.#run;
    const validated = member.wasShown && this.#now() - member.beganAt < NOTICE_MS ? unproven(found) : found;
    member.validated = validated;
    if (member.error !== null || member.stage === 'replaced') return;
    if (isReplaced(member)) {
      this.#end(member, 'replaced');
      return;
    }
    if (member.stage === 'queued') return;
    const { state } = validated.verdict;
    if (member.stage === 'in-progress' && member.reported !== state) {
      member.reported = state;
      listener.state?.(validated);
    }
    const now = this.#now();
    const progress = assessProgress(validated.config, validated.verdict, this.#goal(member.target), now - member.beganAt);
    if (progress === 'updated') member.updatedSince ??= now;
    else member.updatedSince = null;
    const updatedMs = member.updatedSince === null ? -1 : now - member.updatedSince;
    const isLate = progress !== 'updated' && now - member.beganAt >= rollout.timeoutMs;
    // An updated node may still be rolled back.
    if (progress === 'failed' && (member.stage === 'in-progress' || member.stage === 'changed')) this.#end(member, 'failed');
    else if (member.stage === 'in-progress' && updatedMs >= minReadyMs) await this.#finish(member, updatedMs);
    else if (member.stage === 'in-progress' && isLate) this.#end(member, member.wasDown ? 'unreachable' : 'failed');
  }
}

/** Whether another client has changed the assignment of a node since the rollout read or changed it. */
function isReplaced({ stage, target, validated, initial, keptVersion }: Member): boolean {
  const { source, resourceVersion } = validated.config;
  if (source.issue === null && sameSource(source.source, target.desired)) return false;
  if (stage === 'queued') return !sameSource(source.source, initial);
  // The watch may lag behind the rollout's own assignment.
  if (keptVersion !== null && Number(resourceVersion) < keptVersion) return false;
  return stage === 'in-progress' || stage === 'changed';
}

/**
 * Whether the source was assigned recently, and the kubelet has not restarted since: its status may be from
 * an earlier assignment.
 */
function isJustAssigned({ config, verdict }: AssessedNode, desired: ConfigSource | null, now: number): boolean {
  const at = config.assigner?.at?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (config.backend !== 'native' || config.status === null || !sameSource(config.status.assigned, desired)) return false;
  return Math.abs(now - at) < NOTICE_MS && (verdict.since === null || verdict.since.getTime() < at);
}

/** Ignores a verdict that is based on a status older than the assignment. */
function unproven(node: AssessedNode): AssessedNode {
  if (!['trial', 'good', 'local', 'rejected'].includes(node.verdict.state)) return node;
  const why = 'the kubelet has not reported since this assignment and may be restarting to use the previous assignment';
  return { ...node, verdict: { ...node.verdict, state: 'waiting', why, hint: null } };
}

function outcomeOf({ target, stage, validated, error, isTouched, beganAt, updatedSince }: Member): RolloutOutcome {
  return { name: target.name, desired: target.desired, stage, validated, error, isTouched, beganAt, updatedSince };
}
