import type { Clock } from '../../base/clock.ts';
import { type AppError, isAppError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { mayPass } from '../../kube/cluster-problems.ts';
import { type ConfigSource, sameSource } from '../../kubelet/config-source.ts';
import { assessProgress, type Goal, runsDesired } from '../assess-progress.ts';
import type { Backend } from '../node-config.ts';
import { type AssignRules, nextStep, type RolloutStage } from '../rollout.ts';
import { applyAssignment, planAssignment } from './assign-config.ts';
import { type NodeFeed, openNodeFeed } from './node-feed.ts';
import type { AssessedNode } from './read-nodes.ts';

/** A node, and what it is to be assigned; null: nothing. */
export interface RolloutTarget {
  readonly name: string;
  readonly desired: ConfigSource | null;
  /** What it is assigned now, unless it is assigned `wanted` already: with anything else it is left alone. Absent: whatever it has. */
  readonly expected?: ConfigSource | null | undefined;
}

export interface RolloutBatch {
  /** From 1. */
  readonly number: number;
  readonly names: readonly string[];
  readonly isCanary: boolean;
  /** Nodes of the rollout that were down already. */
  readonly down: readonly string[];
}

export interface RolloutOptions {
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** The operator, as the Nodes are to name the assignment. */
  readonly by: string;
  readonly backend?: Backend | undefined;
  /** What the nodes have in common, so that others need not be told of. */
  readonly labelSelector?: string | undefined;
  readonly rules: AssignRules;
  readonly until: Goal['until'];
  /** How long a node may take. */
  readonly timeoutMs: number;
  /** How long a node has to stay there, and Ready, before it counts. */
  readonly minReadyMs: number;
  /** Called, and waited for, before a node is assigned something. */
  readonly begins?: (name: string, before: ConfigSource | null) => Promise<void>;
  readonly listener?: RolloutListener;
}

/** Told as it happens. */
export interface RolloutListener {
  batch?(batch: RolloutBatch): void;
  /** `isNew` is false where it was assigned this already. */
  assigned?(name: string, desired: ConfigSource | null, isNew: boolean): void;
  /** At each change of the state of a node under way. */
  state?(node: AssessedNode): void;
  ended?(outcome: RolloutOutcome): void;
  /** No node may be begun because these are down. */
  blocked?(down: readonly string[]): void;
  /** The API server can't be asked now; null: it can again. */
  issue?(error: AppError | null): void;
  progress?(nodes: readonly RolloutOutcome[]): void;
}

/** A node as it is now, or was left. */
export interface RolloutOutcome {
  readonly name: string;
  /** What it was to be assigned; null: nothing. */
  readonly desired: ConfigSource | null;
  readonly stage: RolloutStage;
  readonly validated: AssessedNode;
  /** What kept it from being assigned anything. */
  readonly error: AppError | null;
  /** It was assigned something by this run. */
  readonly isTouched: boolean;
}

export interface RolloutResult {
  /** In the order of the targets. */
  readonly outcomes: readonly RolloutOutcome[];
  /** Nodes that are down, and kept others from being begun. */
  readonly blocked: readonly string[];
}

const POLL_MS = 1_000;
/** A kubelet up to 1.23 notices a change of its assignment within 12 s, and sends an Event before it restarts. */
const NOTICE_MS = 20_000;
/** So many nodes are judged as often as that; more of them less often. */
const NODES_PER_POLL = 250;

/**
 * Assigns nodes what they are to have, batch by batch, and watches each until it is there, is lost or has had its time. Nodes that are there already are left
 * alone; what an earlier run began is waited for. A node that goes back after it was there has failed.
 * @throws what reading the nodes throws; an API server that does not answer is asked again for as long as a node may take
 */
export async function rollOut(cluster: Cluster, targets: readonly RolloutTarget[], options: RolloutOptions): Promise<RolloutResult> {
  const { clock, random, signal, backend, labelSelector } = options;
  const names = targets.map(({ name }) => name);
  const feed = await openNodeFeed(names, { cluster, clock, random, signal, backend, labelSelector });
  try {
    return await new Rollout(cluster, feed, targets, options).run();
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
  /** It was down when it was begun. */
  wasDown: boolean;
  /** Its status showed what is wanted before the assignment was changed to that: until the kubelet had the time to take the previous one, it proves nothing. */
  wasShown: boolean;
  /** Since when it is there without a break. */
  existingSince: number | null;
  /** What it was assigned when the rollout first read it. */
  readonly initial: ConfigSource | null;
  /** A Node read with a smaller version is older than the assignment; null: nothing was changed. */
  keptVersion: number | null;
  reported: string;
  /** Its Node was deleted meanwhile. */
  isGone: boolean;
}

class Rollout {
  readonly #cluster: Cluster;
  readonly #feed: NodeFeed;
  readonly #targets: readonly RolloutTarget[];
  readonly #options: RolloutOptions;
  #members: readonly Member[] = [];
  #batches = 0;
  #blockedSince: number | null = null;
  #unansweredSince: number | null = null;

  constructor(cluster: Cluster, feed: NodeFeed, targets: readonly RolloutTarget[], options: RolloutOptions) {
    this.#cluster = cluster;
    this.#feed = feed;
    this.#targets = targets;
    this.#options = options;
  }

  async run(): Promise<RolloutResult> {
    const { clock, signal, rules, listener, timeoutMs } = this.#options;
    const pollMs = POLL_MS * Math.max(1, Math.ceil(this.#targets.length / NODES_PER_POLL));
    await this.#look();
    for (;;) {
      listener?.progress?.(this.#outcomes());
      const step = nextStep(this.#nodes(), rules);
      if (step.kind !== 'blocked') this.#blockedSince = null;
      switch (step.kind) {
        case 'begin':
          await this.#begin(step.names, step.isCanary);
          continue;
        case 'done':
        case 'stop':
          return { outcomes: this.#outcomes(), blocked: [] };
        case 'blocked':
          // Before anything is touched nobody has to wait to hear it.
          if (this.#batches === 0 || this.#now() - (this.#blockedSince ?? this.#now()) >= timeoutMs)
            return { outcomes: this.#outcomes(), blocked: step.down };
          if (this.#blockedSince === null) listener?.blocked?.(step.down);
          this.#blockedSince ??= this.#now();
      }
      await clock.sleep(pollMs, signal);
      await this.#look();
    }
  }

  #now(): number {
    return this.#options.clock.now().getTime();
  }

  #nodes() {
    return this.#members.map(({ target, stage, validated, isGone }) => ({
      name: target.name,
      stage,
      isReady: isGone || validated.config.isReady,
    }));
  }

  #outcomes(): readonly RolloutOutcome[] {
    return this.#members.map(outcomeOf);
  }

  #goal({ desired }: RolloutTarget): Goal {
    return { desired, until: this.#options.until };
  }

  async #begin(names: readonly string[], isCanary: boolean): Promise<void> {
    const { listener } = this.#options;
    this.#batches++;
    const batch = this.#members.filter(({ target }) => names.includes(target.name));
    const down = this.#nodes().flatMap(({ name, isReady }) => (isReady ? [] : [name]));
    listener?.batch?.({ number: this.#batches, names, isCanary, down });
    await Promise.all(batch.map((member) => this.#assign(member)));
  }

  async #assign(member: Member): Promise<void> {
    const { begins, listener } = this.#options;
    const { config } = member.validated;
    const { name, desired } = member.target;
    const change = this.#plan(config, desired);
    try {
      if (change !== null) {
        await begins?.(name, config.source.source);
        const kept = await applyAssignment(this.#cluster, config, change, desired);
        member.keptVersion = Number(kept.resourceVersion);
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
      if (isAppError(error, 'ASSIGNMENT_REPLACED')) {
        member.error = error;
        this.#end(member, 'replaced');
        return;
      }
      // Nobody knows what became of a request without an answer.
      member.isTouched = !isAppError(error, 'CLUSTER_FORBIDDEN') && !isAppError(error, 'CLUSTER_INVALID');
      member.error = error;
      this.#end(member, 'failed');
      return;
    }
    member.isTouched = change !== null;
    member.stage = 'under-way';
    member.wasDown = !config.isReady;
    member.wasShown = change !== null && config.backend === 'native' && sameSource(config.status?.assigned ?? null, desired);
    member.beganAt = this.#now();
    listener?.assigned?.(name, desired, change !== null);
  }

  #plan(config: AssessedNode['config'], desired: ConfigSource | null) {
    const { by, clock } = this.#options;
    return planAssignment(config, desired, { by, at: clock.now() });
  }

  #end(member: Member, stage: 'passed' | 'failed' | 'unreached' | 'replaced'): void {
    member.stage = stage;
    this.#options.listener?.ended?.(outcomeOf(member));
  }

  async #look(): Promise<void> {
    const validated = await this.#read();
    if (validated === null) return;
    const byName = new Map(validated.map((node) => [node.config.name, node]));
    if (this.#members.length === 0) {
      this.#members = this.#targets.map((target) => this.#newMember(target, byName.get(target.name) as AssessedNode));
      return;
    }
    for (const member of this.#members) {
      const found = byName.get(member.target.name);
      if (found !== undefined) this.#see(member, found);
      else if (!member.isGone) this.#lose(member);
    }
  }

  /** Null: the API server does not answer now. */
  async #read(): Promise<readonly AssessedNode[] | null> {
    const { listener, timeoutMs } = this.#options;
    try {
      const validated = await this.#feed.read();
      if (this.#unansweredSince !== null) listener?.issue?.(null);
      this.#unansweredSince = null;
      return validated;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (this.#unansweredSince === null) listener?.issue?.(error);
      this.#unansweredSince ??= this.#now();
      if (this.#now() - this.#unansweredSince >= timeoutMs) throw error;
      return null;
    }
  }

  /** A Node was deleted: nobody waits for it, and it does not count as down. */
  #lose(member: Member): void {
    member.isGone = true;
    if (member.stage === 'waiting' || member.stage === 'under-way') this.#end(member, 'unreached');
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
      existingSince: null,
      initial: config.source.source,
      keptVersion: null,
      reported: '',
      isGone: false,
    };
    const stage = (): RolloutStage => {
      if (this.#plan(config, target.desired) !== null)
        return target.expected !== undefined && !sameSource(config.source.source, target.expected) ? 'replaced' : 'waiting';
      if (wasShown) return 'under-way';
      if (runsDesired(config, verdict, this.#goal(target))) return 'passed';
      if (assessProgress(config, verdict, this.#goal(target), 0) === 'lost') return 'failed';
      return config.isReady ? 'under-way' : 'waiting';
    };
    const started: Member = { ...member, stage: stage() };
    if (started.stage !== 'waiting' && started.stage !== 'replaced') this.#options.listener?.assigned?.(target.name, target.desired, false);
    if (started.stage === 'failed' || started.stage === 'replaced') this.#options.listener?.ended?.(outcomeOf(started));
    return started;
  }

  #see(member: Member, found: AssessedNode): void {
    const { minReadyMs, timeoutMs, listener } = this.#options;
    const validated = member.wasShown && this.#now() - member.beganAt < NOTICE_MS ? unproven(found) : found;
    member.validated = validated;
    if (member.error !== null || member.stage === 'replaced') return;
    if (isReplaced(member)) {
      this.#end(member, 'replaced');
      return;
    }
    if (member.stage === 'waiting') return;
    const { state } = validated.verdict;
    if (member.stage === 'under-way' && member.reported !== state) {
      member.reported = state;
      listener?.state?.(validated);
    }
    const now = this.#now();
    const progress = assessProgress(validated.config, validated.verdict, this.#goal(member.target), now - member.beganAt);
    if (progress === 'there') member.existingSince ??= now;
    else member.existingSince = null;
    const exists = member.existingSince !== null && now - member.existingSince >= minReadyMs;
    const isLate = progress !== 'there' && now - member.beganAt >= timeoutMs;
    // What was there may still go back.
    if (progress === 'lost' && (member.stage === 'under-way' || member.stage === 'passed')) this.#end(member, 'failed');
    else if (member.stage === 'under-way' && exists) this.#end(member, 'passed');
    else if (member.stage === 'under-way' && isLate) this.#end(member, member.wasDown ? 'unreached' : 'failed');
  }
}

/** Whether somebody else has changed the assignment of a node since the rollout read it, or made it. */
function isReplaced({ stage, target, validated, initial, keptVersion }: Member): boolean {
  const { source, resourceVersion } = validated.config;
  if (source.issue === null && sameSource(source.source, target.desired)) return false;
  if (stage === 'waiting') return !sameSource(source.source, initial);
  // The watch may lag behind the rollout's own assignment.
  if (keptVersion !== null && Number(resourceVersion) < keptVersion) return false;
  return stage === 'under-way' || stage === 'passed';
}

/** Whether somebody assigned this a moment ago, and the kubelet has not restarted since: what its status shows may be from before. */
function isJustAssigned({ config, verdict }: AssessedNode, desired: ConfigSource | null, now: number): boolean {
  const at = config.assigner?.at?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (config.backend !== 'native' || config.status === null || !sameSource(config.status.assigned, desired)) return false;
  return Math.abs(now - at) < NOTICE_MS && (verdict.since === null || verdict.since.getTime() < at);
}

/** A verdict from a status that was reported before the assignment. */
function unproven(node: AssessedNode): AssessedNode {
  if (!['trial', 'good', 'local'].includes(node.verdict.state)) return node;
  const why = 'the reported status is from before this assignment: the kubelet may just be restarting to use the previous one';
  return { ...node, verdict: { ...node.verdict, state: 'waiting', why, hint: null } };
}

function outcomeOf({ target, stage, validated, error, isTouched }: Member): RolloutOutcome {
  return { name: target.name, desired: target.desired, stage, validated, error, isTouched };
}
