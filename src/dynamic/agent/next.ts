import {
  assessGood,
  assessTrial,
  DEFAULT_TIMING,
  EMPTY_HEALTH_HISTORY,
  type Failure,
  type Observation,
  type Timing,
} from '../../kubelet/health/assess.ts';
import { mergeBaselines, type TrialBaseline, withoutPods } from '../../kubelet/health/baseline.ts';
import { NO_EXITS } from '../../kubelet/health/exits.ts';
import { type ConfigIdentity, describeIdentity } from '../../kubelet/layers/config-source.ts';
import {
  type AgentEffect,
  type AgentEvent,
  type AgentState,
  assignedOf,
  type Candidate,
  desiredPayload,
  type EffectOf,
  type EventOf,
  type Fault,
  isObservedWithTarget,
  NOT_OBSERVED,
  type Payload,
  type Rejection,
  rejectionOf,
  type SyncFailure,
} from './state.ts';
import { lostAssignmentReason } from './status.ts';

export interface AgentTransition {
  readonly state: AgentState;
  /** In order, executed after the state was written. */
  readonly effects: readonly AgentEffect[];
}

/** Older rejections are dropped. */
const MOST_REJECTIONS = 256;

/**
 * The agent's next step, a pure function.
 *
 * Invariants: the payload to run was not rejected, and is assigned or was good. The last known good was
 * healthy during a complete trial. A failed payload is rolled back to the last known good, and a failure of
 * that to the local configuration; so is a removed assignment.
 * @param now milliseconds since 1970, by a clock that may jump
 */
export function next(state: AgentState, event: AgentEvent, now: number, timing: Timing = DEFAULT_TIMING): AgentTransition {
  switch (event.kind) {
    case 'booted':
      return boot(state, event, now);
    case 'assigned':
      return assign(withRetry(state, event), event, now);
    case 'unassigned':
      return unassign(state, event.node ?? null, now);
    case 'unavailable':
      return unavailable(state, event.issue);
    case 'recorded':
      return recorded(state, event);
    case 'switched':
      return switched(state, event, now);
    case 'switch-failed':
      return switchFailed(state, event, now, timing);
    case 'observed':
      return observed(state, event.seen, now, timing);
    case 'forbidden':
      return forbid(state, event.payloads, now);
    case 'tick':
      return retrySwitch(state, now);
  }
}

/** The next timer: a check of the kubelet, or a retry of a switch. Null: none. */
export function nextTimer(
  state: AgentState,
  timing: Timing = DEFAULT_TIMING,
): { readonly kind: 'look' | 'switch'; readonly at: number } | null {
  const { switching, watch } = state;
  if (switching !== null) return switching.againAt === null ? null : { kind: 'switch', at: switching.againAt };
  if (desiredPayload(state) === null && isObservedWithTarget(state)) return null;
  // A kubelet that was observed and has been stopped since is not checked every second.
  const isClose = state.phase === 'trial' || state.notObservedReason === NOT_OBSERVED || state.active?.hash !== state.lastObserved?.hash;
  return { kind: 'look', at: (watch.lastAt ?? state.since) + (isClose ? timing.pollMs : timing.goodPollMs) };
}

function boot(state: AgentState, { intact, kubelet }: EventOf<'booted'>, now: number): AgentTransition {
  const isOther = kubelet !== null && state.kubelet !== null && kubelet !== state.kubelet;
  const good = state.lastKnownGood;
  const kept: AgentState = {
    ...state,
    kubelet: kubelet ?? state.kubelet,
    // Another kubelet version may accept the rejected payloads.
    rejected: isOther ? [] : state.rejected,
    lastKnownGood: good !== null && intact.includes(good.hash) ? good : null,
    watch: EMPTY_HEALTH_HISTORY,
  };
  const desired = desiredPayload(kept);
  const isLost = desired !== null && !intact.includes(desired.hash);
  const fault: Fault = { code: 'LOAD_FAILED', cause: 'the checkpoint on the node is damaged or missing' };
  const found = isLost ? rollBack(kept, desired, fault, now, { save: false }) : { state: kept, effects: [] };
  // An interrupted switch is started again.
  const transition = switchTo(found.state);
  return { state: transition.state, effects: [...transition.effects, ...found.effects.filter(({ kind }) => !isSwitch(kind))] };
}

/** A new value of the annotation lifts the rejection of the assigned payload. */
function withRetry(state: AgentState, { candidate, retry }: EventOf<'assigned'>): AgentState {
  if (retry === null || retry === state.retried) return state;
  return { ...state, retried: retry, rejected: state.rejected.filter(({ hash }) => hash !== candidate.hash) };
}

function assign(
  before: AgentState,
  { candidate, refusal, nodeUid, mayLosePods = false }: EventOf<'assigned'>,
  now: number,
): AgentTransition {
  const isOtherNode = nodeUid != null && before.nodeUid !== null && nodeUid !== before.nodeUid;
  const baseline = isOtherNode ? withoutPods(before.baseline) : before.baseline;
  const state: AgentState = { ...before, sync: null, lost: null, nodeUid: nodeUid ?? before.nodeUid, baseline };
  const { identity, hash, changes } = candidate;
  if (refusal !== null || hash === null) {
    const fault = refusal ?? { code: 'LOAD_FAILED', cause: 'the ConfigMap contains no usable configuration' };
    // The last known good configuration is this one: it is no longer permitted either.
    const isForbidden = fault.code === 'NOT_ALLOWED' && hash !== null && state.lastKnownGood?.hash === hash;
    return reject(isForbidden ? { ...state, lastKnownGood: null } : state, candidate, fault, now);
  }
  const payload: Payload = { identity, hash, changes };
  const rejection = rejectionOf(state, hash);
  if (rejection !== null) return refuseAgain(state, payload, rejection, now);
  const { lastKnownGood } = state;
  if (lastKnownGood?.hash === hash) {
    const since = state.phase === 'good' && state.assigned.hash === hash ? state.since : now;
    return changed(moveTo(before, { ...always(state), phase: 'good', assigned: payload, lastKnownGood: payload, since }));
  }
  const isSame = state.phase === 'trial' && state.assigned.hash === hash;
  const since = isSame ? state.since : now;
  return changed(moveTo(before, { ...always(state), phase: 'trial', assigned: payload, since, mayLosePods }));
}

/** Forgets a last known good configuration that is no longer permitted, and rolls back the running one. */
function forbid(state: AgentState, payloads: EventOf<'forbidden'>['payloads'], now: number): AgentTransition {
  const faultOfPayload = (payload: Payload | null): Fault | undefined => payloads.find(({ hash }) => hash === payload?.hash)?.fault;
  const desired = desiredPayload(state);
  const fault = faultOfPayload(desired);
  const kept = faultOfPayload(state.lastKnownGood) === undefined ? state : { ...state, lastKnownGood: null };
  return desired === null || fault === undefined ? { state: kept, effects: [] } : rollBack(kept, desired, fault, now, { save: false });
}

function reject(state: AgentState, candidate: Candidate, fault: Fault, now: number): AgentTransition {
  const isKnown =
    state.phase === 'rejected' &&
    state.fault.cause === fault.cause &&
    state.fault.code === fault.code &&
    sameContent(state.assigned, candidate);
  const rejected: AgentState = { ...always(state), phase: 'rejected', assigned: candidate, fault, since: isKnown ? state.since : now };
  const transition = moveTo(state, rejected);
  return isKnown
    ? transition
    : reported(transition, 'Warning', 'KubeletConfigRejected', `${describeIdentity(candidate.identity)} was rejected: ${fault.cause}`);
}

/** Unreadable content has no hash: the versions are compared. */
function sameContent(a: Candidate, b: Candidate): boolean {
  return a.hash === b.hash && (a.hash !== null || describeIdentity(a.identity) === describeIdentity(b.identity));
}

function refuseAgain(state: AgentState, payload: Payload, { fault }: Rejection, now: number): AgentTransition {
  const isKnown = state.phase === 'fallen-back' && state.assigned.hash === payload.hash;
  const back: AgentState = { ...always(state), phase: 'fallen-back', assigned: payload, fault, since: isKnown ? state.since : now };
  const transition = moveTo(state, back);
  return isKnown
    ? transition
    : reported(transition, 'Warning', 'KubeletConfigRejected', `${describeIdentity(payload.identity)} was rejected before: ${fault.cause}`);
}

function unassign(state: AgentState, node: { readonly uid: string; readonly createdAt: string } | null, now: number): AgentTransition {
  const since = state.phase === 'local' ? state.since : now;
  const isOtherNode = node !== null && state.nodeUid !== null && node.uid !== state.nodeUid;
  const identity = isOtherNode ? (assignedOf(state)?.identity ?? null) : null;
  const lost = identity === null || node === null ? state.lost : { identity, createdAt: node.createdAt };
  const nodeUid = node?.uid ?? state.nodeUid;
  const local: AgentState = { ...always(state), phase: 'local', lastKnownGood: null, sync: null, since, nodeUid, lost };
  const moved = changed(moveTo(state, local));
  const transition =
    lost === null || lost === state.lost ? moved : reported(moved, 'Warning', 'KubeletConfigAssignmentLost', lostAssignmentReason(lost));
  return state.phase === 'local' ? transition : { ...transition, effects: [...transition.effects, { kind: 'collect' }] };
}

function unavailable(state: AgentState, issue: SyncFailure): AgentTransition {
  if (state.sync?.code === issue.code && state.sync.cause === issue.cause) return { state, effects: [] };
  const effect = { kind: 'announce', type: 'Warning', reason: 'KubeletConfigUnavailable', message: issue.cause } as const;
  return { state: { ...state, sync: issue }, effects: state.sync?.code === issue.code ? [] : [effect] };
}

/** The baseline is on disk before the switch, so that a restarted agent does not take the state after it for it. */
function recorded(state: AgentState, { id, baseline }: EventOf<'recorded'>): AgentTransition {
  if (state.switching?.id !== id) return { state, effects: [] };
  const effect: AgentEffect = { kind: 'switch', id, to: state.switching.to, needsSavedState: baseline !== null };
  return { state: baseline === null ? state : { ...state, baseline: mergeBaselines(state.baseline, baseline) }, effects: [effect] };
}

function switched(state: AgentState, { id, restarts, runs }: EventOf<'switched'>, now: number): AgentTransition {
  // The result of a superseded switch: the current one will be answered too.
  if (state.switching?.id !== id) return { state, effects: [] };
  const active = desiredPayload(state);
  const isObserved = runs === (active?.hash ?? 'local');
  return {
    state: {
      ...state,
      switching: null,
      active,
      lastObserved: isObserved ? active : state.lastObserved,
      notObservedReason: isObserved ? null : NOT_OBSERVED,
      watch: { ...EMPTY_HEALTH_HISTORY, lastAt: now, exits: { ...NO_EXITS, restarts, fewest: restarts } },
      // The configuration of an unfinished trial has been replaced.
      baseline: state.phase === 'trial' ? state.baseline : null,
    },
    effects: [],
  };
}

function switchFailed(
  state: AgentState,
  { id, why, damaged, local = null }: EventOf<'switch-failed'>,
  now: number,
  timing: Timing,
): AgentTransition {
  const { switching } = state;
  if (switching?.id !== id) return { state, effects: [] };
  const desired = desiredPayload(state);
  if (damaged && desired !== null && state.phase !== 'local')
    return rollBack(state, desired, { code: 'LOAD_FAILED', cause: `the checkpoint on the node cannot be used: ${why}` }, now, {
      save: false,
    });
  const { failures } = switching;
  const againAt = now + Math.min(timing.switchRetryMs * 2 ** Math.min(failures, 20), timing.switchRetryMaxMs);
  const tried: AgentState = { ...state, switching: { ...switching, issue: why, failures: failures + 1, againAt } };
  if (local === null) return { state: { ...tried, notObservedReason: NOT_OBSERVED }, effects: [] };
  const { isObserved } = local;
  return {
    state: {
      ...tried,
      active: null,
      lastObserved: isObserved ? null : state.lastObserved,
      notObservedReason: isObserved ? null : NOT_OBSERVED,
      watch: EMPTY_HEALTH_HISTORY,
    },
    effects: [],
  };
}

function retrySwitch(state: AgentState, now: number): AgentTransition {
  const { switching } = state;
  if (switching === null || switching.againAt === null) return { state, effects: [] };
  // A clock that was set back must not delay the retry indefinitely.
  if (switching.againAt > now && switching.againAt <= now + DEFAULT_TIMING.switchRetryMaxMs * 2) return { state, effects: [] };
  const id = state.switches + 1;
  const again: AgentState = { ...state, switches: id, switching: { ...switching, id, againAt: null } };
  return { state: again, effects: [switchEffect(again, id, switching.to)] };
}

function observed(before: AgentState, seen: Observation, now: number, timing: Timing): AgentTransition {
  const desired = desiredPayload(before);
  if (before.switching !== null) return { state: before, effects: [] };
  if (before.phase === 'local' || desired === null) {
    const kept: AgentState = { ...before, watch: { ...before.watch, lastAt: now } };
    const observation =
      seen.runs === 'local' ? { lastObserved: null, notObservedReason: null } : { notObservedReason: notObservedReasonOf(before, seen) };
    return { state: { ...kept, ...observation }, effects: [] };
  }
  // Writes the pointer again, or rolls back if the checkpoint is missing as well.
  if (seen.isPointed === false) {
    const message =
      'the file that selects the configuration for the next start of the kubelet was removed or changed, and is written again';
    return reported(switchTo(before), 'Warning', 'KubeletConfigUnavailable', message);
  }
  const isProven = seen.runs === desired.hash && seen.isProven;
  const state: AgentState = isProven
    ? { ...before, lastObserved: desired, notObservedReason: null }
    : { ...before, notObservedReason: notObservedReasonOf(before, seen) };
  if (state.phase !== 'trial') {
    const { history: watch, failure } = assessGood(state.watch, seen, now, timing);
    const inspected: AgentState = { ...state, watch };
    return failure === null ? { state: inspected, effects: [] } : rollBack(inspected, desired, faultOf(failure), now, { save: true });
  }
  const { history: watch, failure } = assessTrial(state.watch, { hash: desired.hash, baseline: state.baseline }, seen, now, timing);
  const inspected: AgentState = { ...state, watch };
  if (failure !== null) return rollBack(inspected, desired, faultOf(failure), now, { save: true });
  return watch.healthyMs >= timing.trialMs ? markGood(inspected, desired, seen, now) : { state: inspected, effects: [] };
}

function notObservedReasonOf({ notObservedReason }: AgentState, { runs }: Observation): string {
  if (notObservedReason === NOT_OBSERVED) return notObservedReason;
  return runs === null ? 'no kubelet process was observed' : 'the kubelet process was not observed with that configuration';
}

function faultOf({ signal, cause }: Failure): Fault {
  return { code: 'RUN_FAILED', cause, signal };
}

function markGood(state: AgentState, payload: Payload, seen: Observation, now: number): AgentTransition {
  const good: AgentState = { ...always(state), phase: 'good', assigned: payload, lastKnownGood: payload, baseline: null, since: now };
  const message = `${describeIdentity(payload.identity)} is the last known good configuration (${describeWorkload(state.baseline, seen)})`;
  // A configuration with which no new pod can start would be good as well.
  const type = seen.probe?.state === 'started' ? 'Normal' : 'Warning';
  return reported({ state: good, effects: [{ kind: 'collect' }] }, type, 'KubeletConfigGood', message);
}

/** The checks of the pods in a trial that has ended well, as a clause. */
function describeWorkload(before: TrialBaseline | null, { losses, probe }: Observation): string {
  const pods = Array.isArray(losses) ? podsKept(before?.pods?.length ?? 0) : 'the pods of the node were not checked';
  if (probe?.state === 'started') return `${pods}, and a probe pod started`;
  const why = probe?.state === 'unusable' ? probe.why : (before?.noProbe ?? 'the pods that ran before the trial are not known');
  return `${pods}; the start of new pods was not tried, because no probe pod was started: ${why}`;
}

function podsKept(count: number): string {
  if (count === 0) return 'no pods ran before';
  return count === 1 ? 'the pod that ran before still runs' : `all ${count} pods that ran before still run`;
}

/**
 * Replaces the running payload with the last known good, or with the local configuration if the payload is
 * the last known good.
 */
function rollBack(state: AgentState, failed: Payload, fault: Fault, now: number, { save }: { readonly save: boolean }): AgentTransition {
  const lastKnownGood = state.lastKnownGood?.hash === failed.hash ? null : state.lastKnownGood;
  const rejected = save
    ? [...state.rejected.filter(({ hash }) => hash !== failed.hash), { hash: failed.hash, fault, at: now }].slice(-MOST_REJECTIONS)
    : state.rejected;
  const kept = { ...always(state), lastKnownGood, rejected, since: now };
  const back: AgentState =
    state.phase === 'rejected'
      ? { ...kept, phase: 'rejected', assigned: state.assigned, fault: state.fault }
      : { ...kept, phase: 'fallen-back', assigned: state.phase === 'fallen-back' ? state.assigned : failed, fault };
  const transition = moveTo(state, back);
  const target = lastKnownGood === null ? 'the local configuration' : describeIdentity(lastKnownGood.identity);
  const message = `rolling back from ${describeIdentity(failed.identity)} to ${target}: ${fault.cause}`;
  return reported(transition, 'Warning', 'KubeletConfigFallenBack', message);
}

/** Switches the kubelet to the configuration of the new state, unless that already runs or is being set. */
function moveTo(from: AgentState, to: AgentState): AgentTransition {
  const desired = desiredPayload(to)?.hash ?? null;
  const current = from.switching === null ? (from.active?.hash ?? null) : from.switching.to;
  return desired === current ? { state: renamed({ ...to, switching: from.switching }), effects: [] } : switchTo(to);
}

/** Takes over the new identity of unchanged content: another version of the ConfigMap, or another ConfigMap. */
function renamed(state: AgentState): AgentState {
  const desired = desiredPayload(state);
  if (desired === null || desired.hash !== state.active?.hash) return state;
  return { ...state, active: desired, lastObserved: desired.hash === state.lastObserved?.hash ? desired : state.lastObserved };
}

function switchTo(state: AgentState): AgentTransition {
  const to = desiredPayload(state)?.hash ?? null;
  const id = state.switches + 1;
  const switching = { id, to, issue: null, failures: 0, againAt: null };
  return { state: { ...state, switches: id, switching }, effects: [switchEffect(state, id, to)] };
}

function switchEffect({ phase }: AgentState, id: number, to: string | null): AgentEffect {
  return phase === 'trial' ? { kind: 'record', id, to } : { kind: 'switch', id, to, needsSavedState: false };
}

function isSwitch(kind: AgentEffect['kind']): boolean {
  return kind === 'switch' || kind === 'record';
}

function changed(transition: AgentTransition): AgentTransition {
  if (!transition.effects.some(({ kind }) => isSwitch(kind))) return transition;
  return reported(transition, 'Normal', 'KubeletConfigChanged', changeText(desiredPayload(transition.state)?.identity ?? null));
}

function reported(
  transition: AgentTransition,
  type: 'Normal' | 'Warning',
  reason: EffectOf<'announce'>['reason'],
  message: string,
): AgentTransition {
  return { ...transition, effects: [...transition.effects, { kind: 'announce', type, reason, message }] };
}

function always(state: AgentState) {
  const { phase: _phase, assigned: _assigned, fault: _fault, ...kept } = { assigned: null, fault: null, ...state };
  return { ...kept, mayLosePods: false };
}

/**
 * The message of the kubelet's own Event about a configuration change.
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig (1.21)
 */
function changeText(identity: ConfigIdentity | null): string {
  if (identity === null) return 'Kubelet restarting to use local config';
  const { namespace, name, uid, resourceVersion, kubeletConfigKey } = identity;
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  return `Kubelet restarting to use ${path}, UID: ${uid}, ResourceVersion: ${resourceVersion}, KubeletConfigKey: ${kubeletConfigKey}`;
}
