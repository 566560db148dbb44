import type { MemberOutcome } from './member-outcome.ts';
import { type OrderRules, type PlacedMember, spreadOver, stageOf, startOrder } from './start-order.ts';

/** `waiting` is not inspected yet; `queued` is inspected and has changes. */
export type MemberState = 'waiting' | 'inspecting' | 'queued' | MemberOutcome;

/** A host or a Node of a rollout as it is now. */
export interface RolloutMember extends PlacedMember {
  readonly name: string;
  readonly state: MemberState;
  /** Ended without a change, but its state was verified: it counts as a successful canary. */
  readonly isVerified?: boolean;
  /** Its change was started. */
  readonly isStarted?: boolean;
  /** Changed while no other member is, and inspected after the other exclusive members that already started have ended. */
  readonly isExclusive?: boolean | undefined;
  /** Required by the others: if this member fails, they are not started. */
  readonly isNeeded?: boolean | undefined;
}

/** Limits on how fast a change reaches many hosts or Nodes, and when a rollout stops. */
export interface RolloutRules extends OrderRules {
  /** Number of members that are changed first; others start only after these succeeded. */
  readonly canary: number;
  /** Names in the order in which members are canaries, also before earlier stages. Absent: the order of the run, by stage. */
  readonly canaryOrder?: readonly string[];
  /** Canaries wait for earlier stages, and each stage has its own. Default: false. */
  readonly hasCanaryPerStage?: boolean;
  /** Maximum number of members in progress or down at the same time. */
  readonly maxUnavailable: number;
  /** Names of hosts outside of the run that are down: they use up `maxUnavailable` as well. */
  readonly othersDown?: readonly string[];
  /** Maximum number of failures before no further member is started; null: no limit. */
  readonly maxFail: number | null;
  /**
   * Default limits: failed changes above 10% of the changed members (at least 1, at most 10) stop the rest.
   * After a canary the number of members changed at the same time is at most twice the number of successful
   * minus failed members, so that the limit takes effect before all are changed. Default: false.
   */
  readonly cautious?: boolean;
  /** A batch starts only when the previous one has ended. Default: a member starts as soon as another has ended. */
  readonly inBatches?: boolean;
  /** Number of members inspected or changed at the same time. Default: no limit. */
  readonly parallel?: number;
  /** Number of members inspected, queued or changed at the same time, unless all are inspected first. Default: no limit. */
  readonly maxOpen?: number;
  /** Inspect all members before the first change, also those that a limit would skip. Default: false. */
  readonly observesFirst?: boolean;
  /** Without `maxFail`: stop if a member is refused before its change is started. Default: false. */
  readonly stopsIfRefused?: boolean;
}

/** The next actions of a rollout: without any, it has ended as soon as no member is being inspected or changed. */
export interface RolloutStep<M> {
  readonly inspect: readonly M[];
  readonly start: readonly M[];
  /** The started members are canaries. */
  readonly isCanary: boolean;
  /** Number of members that may be in progress at once. */
  readonly maxConcurrent: number;
  /** Reason to start no further member, as a clause; null: continue. */
  readonly stopped: string | null;
  /** No member is in progress and none can start, because these are down. */
  readonly blocked: readonly string[];
}

const FAILURES: ReadonlySet<MemberState> = new Set(['refused', 'failed', 'rolled-back', 'not-rolled-back', 'replaced']);
/** Failures after a change has started. */
const BROKEN: ReadonlySet<MemberState> = new Set(['failed', 'rolled-back', 'not-rolled-back']);
const UNFINISHED: ReadonlySet<MemberState> = new Set(['waiting', 'inspecting', 'queued', 'in-progress']);

/**
 * Returns the next step of a rollout for the current state of its members, without side effects.
 *
 * Members that are down use up `maxUnavailable`. They are changed after all others, because their result proves nothing;
 * in batches together, because they make no further member unavailable.
 * @param members in start order
 */
export function nextStep<M extends RolloutMember>(members: readonly M[], rules: RolloutRules): RolloutStep<M> {
  const view = viewOf(members, rules);
  const { stopped, isCanary, maxConcurrent } = view;
  if (stopped !== null) return { inspect: [], start: [], isCanary, maxConcurrent, stopped, blocked: [] };
  const start = membersToStart(view, rules);
  const isBlocked = start.length === 0 && view.queued.some(({ isDown }) => isDown !== true) && view.active.length === 0;
  const down = members.flatMap(({ name, isDown }) => (isDown === true ? [name] : []));
  return {
    inspect: membersToInspect(view, rules, start),
    start,
    isCanary: isCanary && !start.some(({ isDown }) => isDown === true),
    maxConcurrent,
    stopped,
    blocked: isBlocked && view.room <= 0 ? [...(rules.othersDown ?? []), ...down] : [],
  };
}

/** Members that are changed together. `isDown`: they are down before. */
export interface PlannedBatch {
  readonly names: readonly string[];
  readonly isCanary: boolean;
  readonly isDown: boolean;
}

/**
 * The batches if every member succeeds; those of members that are down (`isDown`) have an unpredictable result.
 * `blocked` names the members whose unavailability prevents any start.
 */
export function planBatches(members: readonly RolloutMember[], rules: RolloutRules) {
  const batches: PlannedBatch[] = [];
  let now = members.map(succeeding);
  for (;;) {
    const { start, isCanary, blocked } = nextStep(now, rules);
    if (start.length === 0) return { batches, blocked };
    batches.push({ names: start.map(({ name }) => name), isCanary, isDown: start.some(({ isDown }) => isDown === true) });
    now = now.map((member) => (start.includes(member) ? { ...member, state: 'changed' as const } : member));
  }
}

/** The members that start next if those in progress succeed; `stopped` is the reason if none does. */
export interface NextMembers extends Pick<RolloutStep<RolloutMember>, 'stopped'> {
  readonly names: readonly string[];
}

/** @param rollingBack members in progress that do not succeed: their changes are being rolled back */
export function nextMembers(members: readonly RolloutMember[], rules: RolloutRules, rollingBack?: ReadonlySet<string>): NextMembers {
  const ended = members.map((one) => (rollingBack?.has(one.name) ? { ...one, state: 'rolled-back' as const } : succeeding(one)));
  const { start, stopped } = nextStep(ended, rules);
  return { names: start.map(({ name }) => name), stopped };
}

/** A member in progress as changed. */
function succeeding(member: RolloutMember): RolloutMember {
  return member.state === 'in-progress' ? { ...member, state: 'changed' } : member;
}

/** The members by state, and the limits that follow from them. */
interface View<M> extends Pick<RolloutStep<M>, 'isCanary' | 'maxConcurrent' | 'stopped'> {
  /** In start order. */
  readonly waiting: readonly M[];
  /** In start order. */
  readonly queued: readonly M[];
  readonly inspecting: readonly M[];
  readonly active: readonly M[];
  /** Number of further members that may become unavailable. */
  readonly room: number;
  /** The members that may become canaries, in order; empty after the canary. */
  readonly canaries: readonly M[];
  /** Number of canaries without a result. */
  readonly canariesLeft: number;
  /** Members of later stages do not start yet. */
  readonly openStage: number;
  /** Whether a member is of no later stage and no later zone. */
  readonly isOpen: (member: M) => boolean;
}

function viewOf<M extends RolloutMember>(members: readonly M[], rules: RolloutRules): View<M> {
  const byState: Record<'waiting' | 'queued' | 'inspecting' | 'in-progress', M[]> = {
    waiting: [],
    queued: [],
    inspecting: [],
    'in-progress': [],
  };
  let [unavailable, openStage] = [rules.othersDown?.length ?? 0, Number.POSITIVE_INFINITY];
  for (const member of members) {
    const { state, isDown } = member;
    if (state === 'waiting' || state === 'queued' || state === 'inspecting' || state === 'in-progress') {
      byState[state].push(member);
      openStage = Math.min(openStage, stageOf(member));
    }
    if (isDown === true || state === 'in-progress') unavailable++;
  }
  const counts = countsOf(members, rules, openStage);
  const isCanary = counts.canariesPassed < rules.canary;
  const missing = members.find(({ state, isNeeded }) => isNeeded === true && (FAILURES.has(state) || state === 'unreachable'));
  const isObserving = rules.observesFirst === true && counts.broken === 0 && byState.waiting.length + byState.inspecting.length > 0;
  const limit = isObserving ? null : limitReached(rules, counts);
  const stopped = missing === undefined ? limit : `the other hosts need ${missing.name}, which failed`;
  const most = stopped !== null ? 0 : Math.min(stepSize(rules, counts), rules.maxUnavailable, rules.parallel ?? Number.POSITIVE_INFINITY);
  const active = byState['in-progress'];
  const { byTurn, isOpen } = startOrder(members, rules, { openStage, isLeft: ({ state }) => UNFINISHED.has(state) });
  return {
    waiting: byState.waiting.sort(byTurn),
    queued: byState.queued.sort(byTurn),
    inspecting: byState.inspecting,
    active,
    room: Math.min(most - active.length, rules.maxUnavailable - unavailable),
    canaries: isCanary ? canaryCandidates(members, rules, openStage).sort(rankBy(rules, byTurn)) : [],
    canariesLeft: rules.canary - counts.canariesPassed,
    openStage,
    isOpen,
    isCanary,
    maxConcurrent: most,
    stopped,
  };
}

interface Counts {
  /** Changed and healthy. */
  readonly passed: number;
  /** Unreachable members are excluded, because they were not changed. */
  readonly failed: number;
  readonly broken: number;
  /** Refused before their change was started. */
  readonly refused: number;
  readonly started: number;
  readonly total: number;
  /** `passed` and `broken` of the stages whose canaries are not finished. */
  readonly canariesPassed: number;
  readonly canariesBroken: number;
}

function countsOf(members: readonly RolloutMember[], { hasCanaryPerStage = false }: RolloutRules, openStage: number): Counts {
  const counts = { passed: 0, failed: 0, broken: 0, refused: 0, started: 0, total: members.length, canariesPassed: 0, canariesBroken: 0 };
  for (const member of members) {
    const { state, isVerified, isStarted } = member;
    const isOfCanaries = !hasCanaryPerStage || stageOf(member) >= openStage;
    const [isPassed, isBroken] = [state === 'changed' || isVerified === true, BROKEN.has(state)];
    if (isPassed) counts.passed++;
    if (FAILURES.has(state)) counts.failed++;
    if (isBroken) counts.broken++;
    if (state === 'refused' && isStarted !== true) counts.refused++;
    if (isStarted === true) counts.started++;
    if (isPassed && isOfCanaries) counts.canariesPassed++;
    if (isBroken && isOfCanaries) counts.canariesBroken++;
  }
  return counts;
}

function stepSize({ canary, maxUnavailable, cautious = false }: RolloutRules, { passed, broken, canariesPassed }: Counts): number {
  if (canariesPassed < canary) return canary - canariesPassed;
  return cautious && canary > 0 ? Math.max(1, 2 * passed - broken) : maxUnavailable;
}

const DEFAULT_FAIL_PERCENT = 10;
const DEFAULT_MAX_FAIL = 10;

function limitReached(
  { canary, maxFail, cautious = false, stopsIfRefused = false }: RolloutRules,
  { passed, failed, broken, refused, started, total, canariesPassed, canariesBroken }: Counts,
): string | null {
  if (canariesBroken > 0 && canariesPassed < canary)
    return canary === 1 ? 'the first host to be changed (canary) failed' : 'a canary failed';
  const changed = passed + broken;
  const limit = Math.min(DEFAULT_MAX_FAIL, Math.max(1, Math.floor((changed * DEFAULT_FAIL_PERCENT) / 100)));
  if (cautious && broken > limit)
    return `${broken} of ${changed} changed hosts failed, more than the default limit of ${limit} (${DEFAULT_FAIL_PERCENT}% of the changed hosts, from 1 to ${DEFAULT_MAX_FAIL})`;
  if (maxFail === null && stopsIfRefused && refused > 0)
    return `${refused} of ${total} hosts ${refused === 1 ? 'was' : 'were'} refused${started === 0 ? ', and nothing was changed' : ''}`;
  if (maxFail === null || failed <= maxFail) return null;
  return `${failed} ${failed === 1 ? 'host' : 'hosts'} failed, more than --max-fail allows`;
}

/**
 * The members that may become canaries, in order. Canaries of a given order are changed before earlier stages, except
 * before a member that the later stages require.
 */
function canaryCandidates<M extends RolloutMember>(
  members: readonly M[],
  { canaryOrder, hasCanaryPerStage = false }: RolloutRules,
  openStage: number,
): M[] {
  const left = members.filter(({ state, isDown }) => UNFINISHED.has(state) && (isDown !== true || state !== 'queued'));
  if (canaryOrder === undefined || hasCanaryPerStage) return left.filter((member) => stageOf(member) <= openStage);
  const last = Math.min(...left.flatMap((member) => (member.isNeeded === true ? [stageOf(member)] : [])), Number.POSITIVE_INFINITY);
  return left.filter((member) => stageOf(member) <= last);
}

/** Canaries of a given order first. */
function rankBy<M extends RolloutMember>({ canaryOrder = [] }: RolloutRules, byTurn: (a: M, b: M) => number) {
  const ranks = new Map(canaryOrder.map((name, rank) => [name, rank]));
  const rankOf = ({ name }: M): number => ranks.get(name) ?? canaryOrder.length;
  return (a: M, b: M): number => rankOf(a) - rankOf(b) || byTurn(a, b);
}

function membersToStart<M extends RolloutMember>(view: View<M>, rules: RolloutRules): readonly M[] {
  const { waiting, queued, inspecting, active, canaries, canariesLeft, isCanary, openStage, isOpen, room, maxConcurrent } = view;
  const { parallel = Number.POSITIVE_INFINITY, observesFirst = false, inBatches = false, downFirst = false } = rules;
  if (inBatches && active.length > 0) return [];
  if (observesFirst && waiting.length + inspecting.length > 0) return [];
  const free = Math.max(0, parallel - inspecting.length - active.length);
  const open = queued.filter(isOpen);
  // Members that are down may prevent the inspection of the zone that is next.
  const isNext = (member: M): boolean => stageOf(member) <= openStage && isToInspect(member, view, rules);
  const isStuck = open.length + active.length + inspecting.length === 0 && !waiting.some(isNext);
  const ready = isStuck ? queued.filter((member) => stageOf(member) <= openStage) : open;
  const down = ready.filter(({ isDown }) => isDown === true);
  const most = inBatches ? free : Math.min(free, Math.max(0, maxConcurrent - active.length));
  if (down.length > 0 && (downFirst || (down.length === ready.length && isLast(view, rules))))
    return compatible(active, down.slice(0, most));
  // Which host answers first does not decide: each canary waits for the results of the candidates before it.
  const candidates = isCanary
    ? canaries.slice(0, canariesLeft).filter(({ state }) => state === 'queued')
    : ready.filter(({ isDown }) => isDown !== true);
  const count = Math.min(Math.max(0, room), free);
  return compatible(active, rules.order === 'spread' && !isCanary ? spreadOver(active, candidates, count) : candidates.slice(0, count));
}

/** Whether only members that are down are left in the open stage, and no canary that is not down, also of a later stage. */
function isLast<M extends RolloutMember>(view: View<M>, rules: RolloutRules): boolean {
  const { waiting, inspecting, active, canaries, canariesLeft, openStage } = view;
  if (active.some(({ isDown }) => isDown !== true)) return false;
  const others = [...inspecting, ...waiting.filter((member) => isToInspect(member, view, rules))];
  if (others.some((member) => stageOf(member) <= openStage)) return false;
  const next = canaries.slice(0, Math.min(canariesLeft, canariesInspected(rules)));
  return !next.some(
    (member) =>
      member.state === 'queued' || member.state === 'inspecting' || (member.state === 'waiting' && isToInspect(member, view, rules)),
  );
}

/** Whether a waiting member can be inspected before the queued ones are changed: they may use all connections, or exclude it. */
function isToInspect<M extends RolloutMember>(
  { isExclusive }: M,
  { queued, active, openStage }: View<M>,
  { maxOpen = Number.POSITIVE_INFINITY }: RolloutRules,
): boolean {
  return queued.length + active.length < maxOpen && (isExclusive !== true || !queued.some(isExclusiveUpTo(openStage)));
}

/** Members of later stages start only when those of earlier ones have been inspected. */
function isExclusiveUpTo<M extends RolloutMember>(openStage: number): (member: M) => boolean {
  return (member) => member.isExclusive === true && stageOf(member) <= openStage;
}

/** The first of some members, up to one that may not be in progress at the same time. */
function compatible<M extends RolloutMember>(active: readonly M[], candidates: readonly M[]): readonly M[] {
  const start: M[] = [];
  for (const member of candidates) {
    const others = [...active, ...start];
    if (others.length > 0 && (member.isExclusive === true || others.some(({ isExclusive }) => isExclusive === true))) break;
    start.push(member);
  }
  return start;
}

/** Number of possible canaries that are inspected before the others. */
function canariesInspected({
  parallel = Number.POSITIVE_INFINITY,
  maxOpen = Number.POSITIVE_INFINITY,
}: Pick<RolloutRules, 'parallel' | 'maxOpen'>) {
  return Math.min(parallel, Math.ceil(maxOpen / 2));
}

/** Canaries first: the others wait for them, and must not hold all connections. */
function membersToInspect<M extends RolloutMember>(
  { waiting, queued, inspecting, active, canaries, openStage }: View<M>,
  { parallel = Number.POSITIVE_INFINITY, maxOpen = Number.POSITIVE_INFINITY, observesFirst = false }: RolloutRules,
  start: readonly M[],
): readonly M[] {
  const first = canaries.slice(0, canariesInspected({ parallel, maxOpen }));
  const early = new Set(first.filter(({ state }) => state === 'waiting'));
  const inspect: M[] = [];
  let hasExclusive = [...inspecting, ...active, ...queued].some(isExclusiveUpTo(openStage));
  for (const member of early.size === 0 ? waiting : new Set([...early, ...waiting])) {
    const busy = inspecting.length + active.length + start.length + inspect.length;
    // If all are inspected first, the caller closes those that exceed the limit.
    if (busy >= parallel || (!observesFirst && busy + queued.length - start.length >= maxOpen)) break;
    // Members that wait for the change of another would never be inspected.
    if (!observesFirst && !early.has(member) && stageOf(member) > openStage) continue;
    if (!observesFirst && member.isExclusive === true && hasExclusive) continue;
    hasExclusive ||= member.isExclusive === true;
    inspect.push(member);
  }
  return inspect;
}
