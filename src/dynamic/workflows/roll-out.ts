import { AppError, isAppError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import type { Batch, BatchGates, GateStop } from '../../maintenance/gates/batch-gates.ts';
import { nextStep, type RolloutRules } from '../../maintenance/next-step.ts';
import { assessProgress, type Goal, isRolledBack, isRunningDesired } from '../status/assess-node-config.ts';
import { kubeletNotReached } from '../status/dynamic-problems.ts';
import { type AssignedBy, applyAssignment, createAssignmentEvent, planAssignment, type RecordedRun } from './assign-config.ts';
import { type NodeFeed, openNodeFeed } from './follow-nodes.ts';
import type { AssessedNode } from './read-nodes.ts';
import {
  type AssignmentSettings,
  assessMember,
  assignedBy,
  NOTICE_MS,
  type RolloutListener,
  type RolloutOutcome,
  type RolloutPorts,
  type RolloutResult,
  type RolloutStage,
  recoveryEnd,
  rolloutMember,
} from './rollout.ts';
import { isJustAssigned, isReplaced, outcomeOf, type RolloutNode, type RolloutTarget, unproven } from './rollout-node.ts';

interface RolloutRun extends AssignmentSettings {
  readonly recorded: RecordedRun;
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
  /** Whether the run keeps a node cordoned. A node whose change has failed is unavailable then. Absent: none. */
  readonly isOutOfService?: (name: string) => boolean;
  /** Gates and windows between batches. Absent: none. */
  readonly gates?: BatchGates | undefined;
  readonly listener: RolloutListener;
}

const POLL_MS = 1_000;
/** Time in which the API server must reach the kubelet of an updated node: a CSR of it may wait for its approval. */
const REACH_MS = 60_000;
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

class Rollout {
  readonly #ports: RolloutPorts;
  readonly #cluster: Cluster;
  readonly #feed: NodeFeed;
  readonly #targets: readonly RolloutTarget[];
  readonly #run: RolloutRun;
  #members: readonly RolloutNode[] = [];
  #batches = 0;
  #blockedSince: number | null = null;
  #isRecoveryReported = false;
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
    const { rules, listener } = this.#run;
    const pollMs = POLL_MS * Math.max(1, Math.ceil(this.#targets.length / NODES_PER_POLL));
    await this.#look();
    listener.starts?.(rules);
    for (;;) {
      listener.progress?.(this.#outcomes());
      const { start, isCanary, blocked, stopped } = nextStep(this.#nodes(), rules);
      if (start.length > 0) {
        this.#blockedSince = null;
        const names = start.map(({ name }) => name);
        const gate = await this.#passGates({ names, isCanary, done: this.#updated() });
        if (gate !== null) return this.#stoppedAt(gate);
        // During a gate, nodes may have rolled back, gone down, been deleted or been assigned by others.
        const ready = nextStep(this.#nodes(), rules).start.flatMap(({ name }) => (names.includes(name) ? [name] : []));
        if (ready.length > 0) await this.#begin(ready, isCanary);
        continue;
      }
      const recovering = this.#members.filter((member) => blocked.includes(member.target.name) && this.#isRecovering(member));
      this.#reportRecovering(recovering);
      const ended = recovering.length > 0 ? null : await this.#resultOf(blocked, stopped);
      if (ended !== null) return ended;
      await clock.sleep(pollMs, signal);
      await this.#look();
    }
  }

  /** The result if the rollout has ended; null: nodes are in progress, or those that are down may become Ready. */
  async #resultOf(blocked: readonly string[], stopped: string | null): Promise<RolloutResult | null> {
    const { rules, listener, rollout } = this.#run;
    const result = { outcomes: this.#outcomes(), blocked, isStopped: stopped !== null };
    if (blocked.length === 0) {
      this.#blockedSince = null;
      if (this.#members.some(({ stage }) => stage === 'in-progress')) return null;
      const gate = stopped === null ? await this.#passGates({ names: [], isCanary: false, done: this.#updated() }) : null;
      if (gate !== null) return this.#stoppedAt(gate);
      return { ...result, outcomes: this.#outcomes(), isStopped: nextStep(this.#nodes(), rules).stopped !== null };
    }
    const mayRecover = this.#members.some((member) => blocked.includes(member.target.name) && !this.#isLeft(member));
    // Before the first change, waiting has no benefit.
    if (this.#batches === 0 || !mayRecover || this.#now() - (this.#blockedSince ?? this.#now()) >= rollout.timeoutMs) return result;
    if (this.#blockedSince === null) listener.blocked?.(blocked);
    this.#blockedSince ??= this.#now();
    return null;
  }

  /** @throws the reason of the signal */
  async #passGates(next: Batch): Promise<GateStop | null> {
    const { gates, listener } = this.#run;
    if (gates === undefined) return null;
    const stop = await gates.pass(next, async (gate) => listener.gate?.(gate));
    if (stop?.kind === 'interrupted') this.#ports.signal.throwIfAborted();
    await this.#look();
    return stop;
  }

  /** The nodes that were updated before this rollout. */
  #updated(): readonly string[] {
    return this.#members.flatMap(({ target, stage, isTouched }) => (stage === 'changed' && !isTouched ? [target.name] : []));
  }

  #stoppedAt(gate: GateStop): RolloutResult {
    return { outcomes: this.#outcomes(), blocked: [], isStopped: true, gate };
  }

  #now(): number {
    return this.#ports.clock.now().getTime();
  }

  #nodes() {
    return this.#members.map((node) => {
      const member = rolloutMember(node.validated.config, node.stage);
      // A failed control plane is restored first.
      const place = this.#run.rules.downFirst === true ? { stage: 0 } : {};
      return { ...member, ...place, isDown: !node.isGone && (member.isDown || this.#isRecovering(node) || this.#isLeft(node)) };
    });
  }

  /** Whether a node was left cordoned by its change; it stays so until its previous assignment is restored. */
  #isLeft({ stage, target }: RolloutNode): boolean {
    return stage !== 'in-progress' && this.#run.isOutOfService?.(target.name) === true;
  }

  #isRecovering({ failedAt }: RolloutNode): boolean {
    return failedAt !== null && this.#now() < recoveryEnd(failedAt, this.#run.minReadyMs);
  }

  /** Once, until they have recovered. */
  #reportRecovering(members: readonly RolloutNode[]): void {
    if (members.length > 0 && !this.#isRecoveryReported) {
      const end = Math.max(...members.map(({ failedAt }) => recoveryEnd(failedAt ?? 0, this.#run.minReadyMs)));
      this.#run.listener.recovering?.(
        members.map(({ target }) => target.name),
        end - this.#now(),
      );
    }
    this.#isRecoveryReported = members.length > 0;
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

  async #assign(member: RolloutNode): Promise<void> {
    const { begins, listener } = this.#run;
    const { config } = member.validated;
    const { name, desired } = member.target;
    const change = this.#plan(config, desired);
    if (change !== null && config.isReady) member.wasReached = await this.#isReached(name);
    try {
      if (change !== null) {
        await begins?.(name, config.source.source);
        const kept = await applyAssignment(this.#cluster, config, change, { desired, by: this.#assignedBy() });
        member.keptVersion = Number(kept.resourceVersion);
        const eventError = await createAssignmentEvent(this.#cluster, name, desired, this.#assignedBy());
        if (eventError !== null) listener.onEventNotCreated?.(name, eventError);
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
      const { exitCode } = error;
      const isHeld = isAppError(error, 'NODE_HELD') && this.#members.length > 1;
      if (isHeld || isAppError(error, 'ASSIGNMENT_REPLACED')) {
        member.error = error;
        this.#end(member, isHeld ? 'skipped' : 'replaced');
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
  async #finish(member: RolloutNode, updatedMs: number): Promise<void> {
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

  #end(member: RolloutNode, stage: 'changed' | 'failed' | 'unreachable' | 'replaced' | 'skipped'): void {
    member.stage = stage;
    if (stage === 'failed' && (member.isTouched || member.error === null)) member.failedAt = this.#now();
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
  #lose(member: RolloutNode): void {
    member.isGone = true;
    if (member.stage === 'queued' || member.stage === 'in-progress') this.#end(member, 'unreachable');
  }

  #newMember(target: RolloutTarget, validated: AssessedNode): RolloutNode {
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
      // A rollback of an earlier run, or before a revert, may not be over.
      failedAt: isRolledBack(verdict) && verdict.since !== null ? Math.min(verdict.since.getTime(), now) : null,
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
    const started: RolloutNode = { ...member, stage: stage() };
    if (started.stage !== 'queued' && started.stage !== 'replaced') this.#run.listener.assigned?.(target.name, target.desired, false);
    if (started.stage === 'failed' || started.stage === 'replaced') this.#run.listener.ended?.(outcomeOf(started));
    return started;
  }

  async #see(member: RolloutNode, found: AssessedNode): Promise<void> {
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
    const updatedMs = member.updatedSince === null ? null : now - member.updatedSince;
    const { timeoutMs } = rollout;
    const stage = assessMember(progress, { elapsedMs: now - member.beganAt, updatedMs, minReadyMs, timeoutMs, wasDown: member.wasDown });
    // An updated node may still be rolled back.
    if (progress === 'failed' && member.stage === 'changed') this.#end(member, 'failed');
    if (member.stage !== 'in-progress' || stage === 'in-progress') return;
    if (stage === 'changed') await this.#finish(member, updatedMs ?? 0);
    else this.#end(member, stage);
  }
}
