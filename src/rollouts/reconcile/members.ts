import { present } from '../../base/present.ts';
import { assessProgress, isRolledBack, isRunningDesired } from '../../dynamic/status/assess-node-config.ts';
import { assessMember, NOTICE_MS, recoveryEnd } from '../../dynamic/workflows/rollout.ts';
import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import type { ListedNode } from '../api/schema.ts';
import { checkKey, type Observed, type ObservedNode, sourceOfText, sourceText } from './observed.ts';

/** Direction of a rollout: to the revision, back to the previous configurations, or to the local configuration after a deletion. */
export type Direction = 'forward' | 'revert' | 'reset';

/** A node and what the rollout knows of it. */
export interface Member {
  readonly node: ObservedNode;
  readonly state: ListedNode['state'];
  /** The configuration that the node should have; undefined: it keeps its own. */
  readonly target: ConfigSource | null | undefined;
  /** A new node, which gets the revision that all others had before. */
  readonly isRestored: boolean;
  /** What `status.nodes` records; null: nothing. */
  readonly entry: ListedNode | null;
  /** The change has ended, and the node can return to service. */
  readonly isReturned: boolean;
  /** It failed a moment ago: its agent reports a rollback before the kubelet has started again, and the Node stays Ready meanwhile. */
  readonly isRecovering: boolean;
  /** Time of the next change of state without an event; null: none. */
  readonly nextAt: number | null;
}

export function directionOf({ rollout: { spec, status, isDeleted }, revision }: Observed): Direction {
  if (isDeleted && spec.deletionPolicy === 'Reset') return 'reset';
  return status.failedRevision === revision.name ? 'revert' : 'forward';
}

/** The members of a rollout, in the order of the nodes. */
export function membersOf(observed: Observed, direction: Direction): readonly Member[] {
  const entries = new Map((observed.rollout.status.nodes ?? []).map((entry) => [entry.name, entry]));
  return observed.nodes.map((node) => {
    const listed = entries.get(node.name) ?? null;
    return recovering(memberOf(node, listed, observed, direction), listed, observed);
  });
}

/** Marks a node that failed less than `minReadySeconds` ago; its entry keeps the time, also when the node waits for its next change. */
function recovering(member: Member, listed: ListedNode | null, { rollout: { spec }, now }: Observed): Member {
  if (member.state === 'InProgress') return member;
  const since = [listed, member.entry].find((entry) => entry?.state === 'Failed' || entry?.state === 'Pending')?.since;
  if (since === undefined || isCreatedAfter(member.node, since)) return member;
  const endsAt = recoveryEnd(Date.parse(since), spec.strategy.minReadySeconds * 1000);
  if (now.getTime() >= endsAt) return member;
  const { name } = member.node;
  const entry: ListedNode | null = member.state === 'Pending' ? { name, state: 'Pending', since } : member.entry;
  return { ...member, entry, isRecovering: true, nextAt: Math.min(member.nextAt ?? endsAt, endsAt) };
}

function memberOf(node: ObservedNode, listed: ListedNode | null, observed: Observed, direction: Direction): Member {
  const { target, isRestored } = targetOf(node, observed, direction);
  const member: Member = { node, state: 'Updated', target, isRestored, entry: null, isReturned: true, isRecovering: false, nextAt: null };
  const entry = validEntry(node, listed, target);
  if (entry?.state === 'InProgress') {
    const changing = inProgress(member, entry, observed);
    if (changing.state === 'InProgress' || target === undefined || entry.source === sourceText(target)) return changing;
    return afterEarlierTarget(changing, memberOf(node, null, observed, direction), observed);
  }
  if (target === undefined) return member;
  const { config, verdict } = node.assessed;
  if (config.status === null && target !== null)
    return { ...member, state: 'NotEnabled', entry: listedAs(node, 'NotEnabled', whyNotEnabled(node)) };
  const goal = { desired: target, until: untilOf(observed) };
  if (entry !== null) {
    // A failed node that took over its configuration later is updated.
    if (isRunningDesired(config, verdict, goal) && config.isReady) return member;
    return { ...member, state: entry.state, entry, isReturned: isRolledBack(verdict) };
  }
  if (config.source.issue !== null || !sameSource(config.source.source, target)) return { ...member, state: 'Pending', isReturned: false };
  if (isRunningDesired(config, verdict, goal)) return member;
  if (assessProgress(config, verdict, goal, 0) === 'failed')
    return failed(member, { ...begun(node, target, observed.now), state: 'Failed' }, verdict.why);
  // Assigned by another client, or by a controller whose record was lost.
  return inProgress(member, begun(node, target, observed.now), observed);
}

/**
 * A node whose change to an earlier target has ended, for example because the payload was edited meanwhile. Its result does
 * not apply to the current target. A failure keeps its time, because the kubelet may be restarting.
 */
function afterEarlierTarget({ state, isReturned }: Member, member: Member, { now }: Observed): Member {
  if (member.state !== 'Pending') return member;
  const entry: ListedNode | null = state === 'Failed' ? { name: member.node.name, state: 'Pending', since: now.toISOString() } : null;
  return { ...member, entry, isReturned };
}

/** An entry of an earlier target counts only while the node is being changed to it. */
function validEntry(node: ObservedNode, listed: ListedNode | null, target: ConfigSource | null | undefined): ListedNode | null {
  const { source, since = '' } = listed ?? {};
  if (listed === null || source === undefined) return null;
  if (isCreatedAfter(node, since)) return null;
  const isCurrent = target !== undefined && source === sourceText(target);
  if (isCurrent) return listed;
  if (listed.state !== 'InProgress') return null;
  return node.isBusy || sourceText(node.assessed.config.source.source) === source ? listed : null;
}

/** The time of the API server may differ from that of the controller. */
const CLOCK_SKEW_MS = 5_000;

/** Whether the Node was created again after a time. */
function isCreatedAfter({ createdAt }: ObservedNode, since: string): boolean {
  return createdAt.getTime() > Date.parse(since) + CLOCK_SKEW_MS;
}

/** What a node should have. */
function targetOf(
  { name, assessed: { config } }: ObservedNode,
  { rollout: { status }, revision, previous, checks }: Observed,
  direction: Direction,
): Pick<Member, 'target' | 'isRestored'> {
  const current = status.currentConfigMap ?? null;
  const { source } = config.source;
  const isRefused =
    current !== null && !sameSource(current, revision.source) && (checks.get(checkKey(config, current))?.refusal ?? null) !== null;
  const isNew = source === null && config.source.issue === null && current !== null && !isRefused;
  if (direction === 'reset') {
    const isOurs =
      source !== null && [revision.source, status.updateConfigMap, current].some((own) => own != null && sameSource(own, source));
    return { target: isOurs ? null : undefined, isRestored: false };
  }
  if (direction === 'forward') return isNew ? { target: current, isRestored: true } : { target: revision.source, isRestored: false };
  if (!sameSource(source, revision.source)) {
    const isReverted = previous.get(name) === null;
    return isNew && !isReverted ? { target: current, isRestored: true } : { target: undefined, isRestored: false };
  }
  const before = previous.get(name);
  return { target: before === undefined ? (current ?? undefined) : before, isRestored: false };
}

function untilOf({ rollout: { spec } }: Observed): 'trial' | 'good' {
  return spec.strategy.until === 'Good' ? 'good' : 'trial';
}

/** The entry of a change that begins now. */
export function begun({ name, assessed: { config } }: ObservedNode, target: ConfigSource | null, now: Date): ListedNode {
  const since = now.toISOString();
  return { name, state: 'InProgress', source: sourceText(target), since, ...(config.isReady ? {} : { wasDown: true }) };
}

function inProgress(member: Member, listed: ListedNode, observed: Observed): Member {
  const { now, rollout } = observed;
  const { config, verdict } = member.node.assessed;
  const { name, source, wasDown, since = now.toISOString(), updatedSince } = listed;
  const desired = sourceOfText(source ?? '');
  const elapsedMs = Math.max(0, now.getTime() - Date.parse(since));
  const isAssigned = config.source.issue === null && sameSource(config.source.source, desired);
  // A kubelet up to 1.23 may still show the state before this assignment.
  const isOld = config.backend === 'native' && elapsedMs < NOTICE_MS;
  const progress = !isAssigned || isOld ? 'in-progress' : assessProgress(config, verdict, { desired, until: untilOf(observed) }, elapsedMs);
  const updated = progress === 'updated' ? (updatedSince ?? now.toISOString()) : undefined;
  const limits = { minReadyMs: rollout.spec.strategy.minReadySeconds * 1000, timeoutMs: rollout.spec.progressDeadlineSeconds * 1000 };
  const updatedMs = updated === undefined ? null : Math.max(0, now.getTime() - Date.parse(updated));
  const stage = assessMember(progress, { ...limits, elapsedMs, updatedMs, wasDown: wasDown === true });
  const { issue } = member.node;
  const started: ListedNode = {
    name,
    state: 'InProgress',
    ...present({ source, since, updatedSince: updated, wasDown, message: issue?.slice(0, MAX_MESSAGE) }),
  };
  if (stage === 'failed' || stage === 'unreachable') {
    const why =
      progress === 'failed'
        ? verdict.why
        : `not updated after ${limits.timeoutMs / 1000} s${isAssigned && verdict.why !== null ? `: ${verdict.why}` : ''}`;
    const state = stage === 'failed' ? 'Failed' : 'Unreachable';
    return failed(member, { ...started, state, since: now.toISOString() }, issue === null ? why : `${why}: ${issue}`);
  }
  if (stage === 'changed') {
    // After it was uncordoned, replacements of its pods may not be Ready.
    if (!member.node.isHeld && !member.node.isBusy) return { ...member, state: 'Updated' };
    return { ...member, state: 'InProgress', entry: started, isReturned: true };
  }
  const waits = [limits.timeoutMs - elapsedMs, isOld ? NOTICE_MS - elapsedMs : limits.minReadyMs - (updatedMs ?? 0)].filter((ms) => ms > 0);
  return { ...member, state: 'InProgress', entry: started, isReturned: false, nextAt: now.getTime() + Math.min(...waits) };
}

function failed(member: Member, entry: ListedNode, why: string | null): Member {
  const { verdict } = member.node.assessed;
  const { state } = entry;
  return {
    ...member,
    state,
    entry: { ...entry, message: (why ?? verdict.state).slice(0, MAX_MESSAGE) },
    isReturned: isRolledBack(verdict),
  };
}

const MAX_MESSAGE = 1_000;

/** The entry of a node without a change. */
export function listedAs({ name }: ObservedNode, state: ListedNode['state'], message: string): ListedNode {
  return { name, state, message: message.slice(0, MAX_MESSAGE) };
}

function whyNotEnabled({ name, assessed: { config } }: ObservedNode): string {
  return config.backend === 'agent'
    ? `no agent has reported: kubeletadm dynamic enable ${name}`
    : 'dynamic configuration is not enabled on the kubelet';
}
