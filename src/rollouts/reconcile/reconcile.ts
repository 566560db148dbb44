import { needsDrain } from '../../host/plan/impact.ts';
import { matchesLabels } from '../../kube/match-labels.ts';
import { isControlPlaneNode } from '../../kube/node-place.ts';
import type { ConfigSource } from '../../kubelet/layers/config-source.ts';
import { sameSource } from '../../kubelet/layers/config-source.ts';
import { type MemberState, nextStep, type RolloutMember, type RolloutRules } from '../../maintenance/next-step.ts';
import { MAX_IN_PROGRESS, type RolloutStatus } from '../api/schema.ts';
import { type BetweenBatches, betweenBatches, type GateRun, isInBatches, recordedBatches } from './between-batches.ts';
import { begun, type Direction, directionOf, type Member, membersOf } from './members.ts';
import { checkKey, type NodeCheck, type Observed, sourceText } from './observed.ts';
import { type Situation, statusOf } from './status.ts';

/** What a controller does for a rollout: first it writes the status, then it changes nodes. */
export interface Decision {
  readonly status: RolloutStatus;
  /** Nodes in progress whose assignment differs, which the status records. All may be assigned again after a restart. */
  readonly assign: readonly { readonly name: string; readonly desired: ConfigSource | null; readonly before: ConfigSource | null }[];
  /** Nodes that will be drained, or are being drained; null: not all are validated yet. */
  readonly drains: readonly string[] | null;
  /** Cordoned nodes whose change has ended. */
  readonly uncordon: readonly string[];
  /** A gate to attempt. */
  readonly gate: GateRun | null;
  /** Nodes whose configuration must be validated before the rollout proceeds. */
  readonly check: readonly { readonly name: string; readonly source: ConfigSource }[];
  /** All nodes have the revision, or their previous configuration again: the record of their previous assignments is not needed any more. */
  readonly isComplete: boolean;
  /** The object is deleted, and nothing is left to do. */
  readonly isFinalized: boolean;
  /** Time until the next decision without an event; null: none. */
  readonly requeueMs: number | null;
}

/**
 * Decides the next actions of a rollout from its current state, without side effects. Level-triggered: the decision depends on
 * no earlier event, so a controller that is killed between any two writes continues at the same place.
 */
export function reconcile(observed: Observed): Decision {
  const direction = directionOf(observed);
  const members = membersOf(observed, direction);
  const { rollout, revision, refusal, checks, now } = observed;
  // Also nodes in progress that are not assigned: checks are lost with a leader and with a change of the rollout.
  const isWaiting = (member: Member): boolean => member.state === 'Pending' || assignmentOf(member).length > 0;
  const waiting = members.filter(isWaiting);
  const checkOf = ({ node, target }: Member): NodeCheck | undefined =>
    target == null ? undefined : checks.get(checkKey(node.assessed.config, target));
  const toCheck = direction === 'forward' ? waiting.filter((member) => checkOf(member)?.isStale ?? checkOf(member) === undefined) : [];
  const drainOf = (member: Member): readonly string[] =>
    (isWaiting(member) || member.node.isBusy) && needsDrain(checkOf(member)?.impact ?? null) ? [member.node.name] : [];
  const refused = direction === 'forward' ? waiting.filter((member) => (checkOf(member)?.refusal ?? null) !== null) : [];
  const isRefused = refusal !== null || refused.length > 0;
  const plan =
    refusal === null ? planOf(observed, direction, members, { isOpen: toCheck.length + refused.length === 0, refused }) : NOTHING;
  const between = betweenOf(observed, members, plan);
  const stopped = plan.stopped ?? between.failed;
  const started = new Set(between.start);
  const next = members.map((member) =>
    started.has(member) ? { ...member, state: 'InProgress' as const, entry: begun(member.node, member.target ?? null, now) } : member,
  );
  const isReverting =
    stopped !== null &&
    rollout.spec.onFailure === 'Revert' &&
    direction === 'forward' &&
    !rollout.spec.paused &&
    rollout.status.currentRevision !== revision.name;
  const situation: Situation = {
    direction,
    stopped,
    between,
    isReverting,
    blocked: plan.blocked,
    isChecking: toCheck.some(({ state }) => state === 'Pending'),
    refused: refused.map((member) => ({ name: member.node.name, why: checkOf(member)?.refusal ?? '' })),
  };
  const isDone = next.every(({ state }) => state !== 'Pending' && state !== 'InProgress');
  const isPassed = stopped === null && between.waiting === null;
  const waits = members.flatMap(({ nextAt }) => (nextAt === null ? [] : [Math.max(1_000, nextAt - now.getTime())]));
  return {
    status: statusOf(observed, next, situation),
    assign:
      refusal === null ? next.filter((member) => direction !== 'forward' || checkOf(member)?.refusal === null).flatMap(assignmentOf) : [],
    drains: toCheck.length > 0 ? null : isRefused || stopped !== null || direction !== 'forward' ? [] : members.flatMap(drainOf),
    uncordon: members.flatMap(({ node, isReturned }) => (node.isHeld && isReturned && !node.isBusy ? [node.name] : [])),
    gate: between.run,
    check: refusal === null ? toCheck.map(({ node: { name }, target }) => ({ name, source: target as ConfigSource })) : [],
    isComplete: isDone && refusal === null && direction !== 'reset' && (direction === 'revert' ? !isReverting : isPassed),
    isFinalized: rollout.isDeleted && (direction !== 'reset' || (isDone && members.every(({ state }) => state !== 'Failed'))),
    requeueMs: between.run !== null ? GATE_POLL_MS : waits.length === 0 ? null : Math.min(...waits),
  };
}

/** A gate is attempted at most this often. */
const GATE_POLL_MS = 2_000;

/** Repeats the assignment of each node in progress until the Node shows it. */
function assignmentOf({ node, state, entry, target }: Member): Decision['assign'] {
  const { name, isBusy, assessed } = node;
  if (state !== 'InProgress' || entry === null || isBusy || target === undefined || entry.source !== sourceText(target)) return [];
  const { source, issue } = assessed.config.source;
  return issue === null && sameSource(source, target) ? [] : [{ name, desired: target, before: source }];
}

interface Plan {
  readonly start: readonly Member[];
  /** Why no further node is started; null: the rollout continues. */
  readonly stopped: string | null;
  readonly blocked: readonly string[];
  /** A step of the rollout itself: gates and windows apply. New nodes and reverts do not wait for them. */
  readonly isForward: boolean;
}

const NOTHING: Plan = { start: [], stopped: null, blocked: [], isForward: false };

function betweenOf(observed: Observed, members: readonly Member[], { start, stopped, isForward }: Plan): BetweenBatches {
  if (isForward && stopped === null) return betweenBatches(observed, members, start, { mayBegin: !observed.rollout.spec.paused });
  return { ...recordedBatches(observed, members), start, failed: null, waiting: null, run: null };
}

/** Nodes of a rollout, with the member that `nextStep` chooses from. */
interface Candidate extends RolloutMember {
  readonly member: Member;
}

function planOf(
  observed: Observed,
  direction: Direction,
  members: readonly Member[],
  checks: { readonly isOpen: boolean; readonly refused: readonly Member[] },
): Plan {
  const { rollout, nodes } = observed;
  const { strategy, paused } = rollout.spec;
  const included = members.filter(({ state }) => state !== 'NotEnabled');
  const othersDown = members.flatMap(({ state, node }) => (state === 'NotEnabled' && isDown(node) ? [node.name] : []));
  const maxUnavailable = Math.max(1, amountOf(strategy.maxUnavailable, nodes.length));
  const limits: RolloutRules = { canary: 0, maxUnavailable, maxFail: null, othersDown, downFirst: true };
  const room = Math.max(0, MAX_IN_PROGRESS - members.filter(({ state }) => state === 'InProgress').length);
  const step = (candidates: readonly Candidate[], rules: RolloutRules): Plan => {
    const { start, stopped, blocked } = nextStep(candidates, rules);
    const isShown = (name: string): boolean => !members.some(({ node, isRecovering }) => isRecovering && node.name === name);
    return { start: start.slice(0, room).map(({ member }) => member), stopped, blocked: blocked.filter(isShown), isForward: false };
  };
  if (direction !== 'forward')
    return step(
      included.map((member) => candidateOf(member, observed, 'unfailed')),
      limits,
    );
  // New nodes get the revision that all others had, before others are changed.
  const restored = included.filter(({ isRestored, state }) => isRestored && (state === 'Pending' || state === 'InProgress'));
  if (restored.length > 0) {
    const isReady = ({ node, target }: Member): boolean =>
      target != null && observed.checks.get(checkKey(node.assessed.config, target))?.refusal === null;
    return step(
      included.map((member) => candidateOf(member, observed, member.isRestored && isReady(member) ? 'unfailed' : 'kept')),
      limits,
    );
  }
  const canary = amountOf(strategy.canary.count, nodes.length);
  const inBatches = isInBatches(observed);
  const { maxFailures: maxFail } = strategy;
  const order = strategy.topologyOrder === 'Spread' ? 'spread' : undefined;
  const rules: RolloutRules = { canary, ...canaryOrder(observed, included), maxUnavailable, maxFail, othersDown, inBatches, order };
  const plan = step(
    included.map((member) => candidateOf(member, observed, 'forward')),
    rules,
  );
  const isHeld = paused || !checks.isOpen;
  return { ...plan, ...(isHeld ? { start: [], blocked: [] } : {}), isForward: true };
}

function isDown({ assessed: { config } }: Member['node']): boolean {
  return !config.isReady;
}

const STATES: Readonly<Record<Member['state'], MemberState>> = {
  Pending: 'queued',
  InProgress: 'in-progress',
  Updated: 'changed',
  Failed: 'failed',
  Unreachable: 'unreachable',
  NotEnabled: 'skipped',
};

/** @param how `unfailed`: failures do not stop the others · `kept`: the node is not started */
function candidateOf(member: Member, observed: Observed, how: 'forward' | 'unfailed' | 'kept'): Candidate {
  const state = STATES[member.state];
  const isEnded = how !== 'forward' && state !== 'in-progress' && !(how === 'unfailed' && state === 'queued');
  const { node } = member;
  return {
    name: node.name,
    state: isEnded ? 'unchanged' : state,
    isDown: isDown(node) || member.isRecovering || (node.isHeld && (state === 'failed' || state === 'unreachable')),
    stage: how === 'forward' ? stageOf(member, observed) : 0,
    isExclusive: isControlPlaneNode(node.labels),
    zone: node.labels[observed.rollout.spec.strategy.topologyKey ?? ''],
    member,
  };
}

/** Workers before control planes, then the step of `strategy.order`, then the zone, unless nodes are spread over the zones. */
function stageOf({ node }: Member, { nodes, rollout: { spec } }: Observed): number {
  const { order = [], topologyKey, topologyOrder } = spec.strategy;
  const step = order.findIndex((selector) => matchesLabels(selector, node.labels));
  const size = nodes.length + 1;
  const last = isControlPlaneNode(node.labels) ? (order.length + 1) * size : 0;
  const first = last + (step < 0 ? order.length : step) * size;
  if (topologyKey === undefined || topologyOrder === 'Spread') return first;
  const values = [...new Set(nodes.map(({ labels }) => labels[topologyKey] ?? ''))].toSorted();
  return first + values.indexOf(node.labels[topologyKey] ?? '');
}

/** Canaries of `strategy.canary.nodeSelector` are before all others. */
function canaryOrder({ rollout: { spec } }: Observed, members: readonly Member[]): Pick<RolloutRules, 'canaryOrder'> {
  const { nodeSelector } = spec.strategy.canary;
  if (nodeSelector === undefined) return {};
  return { canaryOrder: members.flatMap(({ node }) => (matchesLabels(nodeSelector, node.labels) ? [node.name] : [])) };
}

/** A number, or a percentage of the nodes, rounded down. */
export function amountOf(amount: number | string, total: number): number {
  return typeof amount === 'number' ? amount : Math.floor((total * Number.parseInt(amount, 10)) / 100);
}
