import type { EvictionResult } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type DrainPod, type DrainRules, isToEvict, readDrainPod } from '../forecast/drain-pod.ts';

/** The drain of a node in progress. Times are milliseconds since the epoch. */
export interface DrainState {
  readonly startedAt: number;
  readonly timeoutMs: number;
  readonly rules: DrainRules;
  /** Pods to evict, by UID. */
  readonly pods: ReadonlyMap<string, PodProgress>;
}

/** A pod that leaves the node. */
export interface PodProgress {
  /** `NAMESPACE/NAME`. */
  readonly name: string;
  readonly uid: string;
  /** `evicting`: a request is in progress · `terminating`: accepted, the pod is being stopped · `gone` from the node. */
  readonly stage: 'waiting' | 'evicting' | 'terminating' | 'gone';
  /** Number of evictions that were refused. */
  readonly refusals: number;
  /** Time of the next attempt. */
  readonly nextAt: number;
  /** The last refusal, as a clause; empty: none. */
  readonly why: string;
}

/** `observed`: the pods of the node were listed · `answered`: the API server has answered an eviction. */
type DrainEvent =
  | { readonly kind: 'observed'; readonly pods: readonly KubeObject[] }
  | { readonly kind: 'answered'; readonly uid: string; readonly result: EvictionResult };

/** Pods to evict now, whether the drain has ended, and otherwise the time until the next observation. */
interface DrainStep {
  readonly state: DrainState;
  readonly evict: readonly PodProgress[];
  /** Null: not ended. `permission`: pods that the rules do not permit to evict appeared after the forecast. */
  readonly ended: 'drained' | 'timeout' | 'permission' | null;
  readonly waitMs: number;
}

/** Evictions of a node in progress at the same time. */
const AT_ONCE = 8;
const FIRST_BACK_OFF_MS = 1_000;
const LONGEST_BACK_OFF_MS = 10_000;
const POLL_MS = 1_000;

export function startDrain(startedAt: number, rules: DrainRules, timeoutMs: number): DrainState {
  return { startedAt, timeoutMs, rules, pods: new Map() };
}

/**
 * Decides the next step of a drain, without side effects. A pod has left when its UID is no longer on the node: a pod of
 * the same name may be its replacement.
 */
export function nextDrain(before: DrainState, event: DrainEvent, now: number): DrainStep {
  const state = event.kind === 'observed' ? observed(before, event.pods, now) : answered(before, event, now);
  const pods = [...state.pods.values()];
  const left = pods.filter(({ stage }) => stage !== 'gone');
  const ended = endOf(state, event, left.length, now);
  if (ended !== null) return { state, evict: [], ended, waitMs: 0 };
  // Only an observation starts evictions: the answers of several arrive together.
  const due = event.kind === 'answered' ? [] : left.filter(({ stage, nextAt }) => stage === 'waiting' && nextAt <= now);
  const evict = due.slice(0, AT_ONCE - left.filter(({ stage }) => stage === 'evicting').length);
  const next = new Map(state.pods);
  for (const pod of evict) next.set(pod.uid, { ...pod, stage: 'evicting' });
  return { state: { ...state, pods: next }, evict, ended, waitMs: Math.min(POLL_MS, Math.max(1, state.startedAt + state.timeoutMs - now)) };
}

function endOf({ startedAt, timeoutMs, rules }: DrainState, event: DrainEvent, left: number, now: number): DrainStep['ended'] {
  if (event.kind !== 'observed') return null;
  if (left === 0) return 'drained';
  if (event.pods.map(readDrainPod).some((pod) => isToEvict(pod, rules) && !pod.isTerminating && lacksPermission(pod, rules)))
    return 'permission';
  return now - startedAt >= timeoutMs ? 'timeout' : null;
}

/** Whether the loss of a pod or its data was not permitted. */
function lacksPermission({ controller, emptyDirs }: DrainPod, { force, deleteEmptyDirData }: DrainRules): boolean {
  return (controller === null && !force) || (emptyDirs.length > 0 && !deleteEmptyDirData);
}

function observed(state: DrainState, objects: readonly KubeObject[], now: number): DrainState {
  const all = objects.map(readDrainPod);
  const present = all.filter((pod) => isToEvict(pod, state.rules));
  // A pod with a final phase that is being deleted is still on the node, for example until its volumes are unmounted.
  const uids = new Set([...present, ...all.filter(({ isTerminating }) => isTerminating)].map(({ uid }) => uid));
  const pods = new Map([...state.pods].map(([uid, pod]) => [uid, uids.has(uid) ? pod : { ...pod, stage: 'gone' as const }]));
  for (const { uid, name, isTerminating } of present) {
    const known = pods.get(uid) ?? { name, uid, stage: 'waiting', refusals: 0, nextAt: now, why: '' };
    // Its deletion may have another cause, such as a scale-down.
    pods.set(uid, isTerminating ? { ...known, stage: 'terminating' } : known.stage === 'evicting' ? known : { ...known, stage: 'waiting' });
  }
  return { ...state, pods };
}

function answered(state: DrainState, { uid, result }: Extract<DrainEvent, { kind: 'answered' }>, now: number): DrainState {
  const pod = state.pods.get(uid);
  if (pod === undefined || pod.stage === 'gone') return state;
  return { ...state, pods: new Map(state.pods).set(uid, afterAnswer(pod, result, now)) };
}

function afterAnswer(pod: PodProgress, result: EvictionResult, now: number): PodProgress {
  // Whether the pod has left is only observed.
  if (result.kind !== 'refused') return { ...pod, stage: 'terminating', why: '' };
  const backOff = Math.min(LONGEST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** Math.min(pod.refusals, 10));
  const nextAt = now + Math.max(backOff, result.retryAfterMs ?? 0);
  return { ...pod, stage: 'waiting', refusals: pod.refusals + 1, nextAt, why: result.why };
}
