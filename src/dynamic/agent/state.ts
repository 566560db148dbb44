import { EMPTY_HEALTH_HISTORY, type HealthHistory, type Observation } from '../../kubelet/health/assess.ts';
import type { TrialBaseline } from '../../kubelet/health/baseline.ts';
import type { Signal } from '../../kubelet/health/signals.ts';
import type { ConfigIdentity } from '../../kubelet/layers/config-source.ts';
import type { ConfigErrorCode } from '../error-texts.ts';

/**
 * A configuration for a node: its source, and the hash of the resulting files. Payloads with the same hash
 * are the same.
 */
export interface Payload {
  readonly identity: ConfigIdentity;
  readonly hash: string;
  /** Changes to the local configuration, one field per entry, for display. */
  readonly changes: readonly string[];
}

/**
 * Reason why an assigned configuration does not run. `code` is the kubelet's where one applies; `cause` is a
 * clause for display.
 */
export interface Fault {
  readonly code:
    | Extract<ConfigErrorCode, 'LOAD_FAILED' | 'VALIDATION_FAILED' | 'INTERNAL_FAILURE'>
    | 'NOT_SIGNED'
    | 'NOT_ALLOWED'
    | 'RUN_FAILED';
  readonly cause: string;
  /** The signal; absent if the payload never ran. */
  readonly signal?: Signal;
}

export interface Rejection {
  readonly hash: string;
  readonly fault: Fault;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The source could not be read: the configuration stays unchanged, and the read is retried. */
export interface SyncFailure {
  readonly code: Extract<ConfigErrorCode, 'DOWNLOAD_FAILED' | 'SYNC_INTERNAL_FAILURE' | 'UNKNOWN_SOURCE'>;
  readonly cause: string;
}

interface Always {
  /** The configuration last set; null: the local configuration. */
  readonly active: Payload | null;
  /** The configuration last observed with the kubelet process; null: the local configuration. The status reports it. */
  readonly lastObserved: Payload | null;
  /**
   * Reason why the process has not been observed with `lastObserved` since the last change, as a clause; null: it
   * has. Not written to disk.
   */
  readonly notObservedReason: string | null;
  /** The configuration of the last successful trial; null: the local configuration. */
  readonly lastKnownGood: Payload | null;
  /** Newest last. Each hash occurs once. */
  readonly rejected: readonly Rejection[];
  readonly sync: SyncFailure | null;
  /** A switch of the kubelet without a result yet. */
  readonly switching: {
    /** Distinguishes the result from that of an earlier switch to the same payload. */
    readonly id: number;
    readonly to: string | null;
    readonly issue: string | null;
    readonly failures: number;
    /** Time of the next try; null during a try. */
    readonly againAt: number | null;
  } | null;
  readonly switches: number;
  /** Observations of the running kubelet. Reset by each switch and each start of the agent. */
  readonly watch: HealthHistory;
  /**
   * The node before the current trial, until its configuration has been replaced; null: no trial, not recorded
   * yet, or not known.
   */
  readonly baseline: TrialBaseline | null;
  /** The operator permits the current trial to end pods; a probe pod must start nevertheless. */
  readonly mayLosePods: boolean;
  /** Value of the annotation that last requested a retry of a rejected payload. */
  readonly retried: string | null;
  /** The uid of the Node with the current or last assignment; null: unknown. */
  readonly nodeUid: string | null;
  /**
   * The assignment that was deleted with an earlier Node of the same name, until the next assignment, and the creation
   * time of the new Node, in RFC 3339; null: none.
   */
  readonly lost: { readonly identity: ConfigIdentity; readonly createdAt: string } | null;
  /** Version of the kubelet that the rejections are about, e.g. `v1.36.2`. */
  readonly kubelet: string | null;
  /** Start time of the phase, in milliseconds since 1970. */
  readonly since: number;
}

/**
 * State of an agent. It determines the configuration to run: see `desiredPayload`.
 *
 * - `local`: nothing is assigned. Ends with an assignment.
 * - `trial`: the assigned payload runs and is being verified. Becomes `good` after enough healthy time,
 *   `fallen-back` at the first lasting signal.
 * - `good`: the assigned payload runs and is the last known good. Becomes `fallen-back` after a crash loop.
 * - `rejected`: the assigned payload was rejected before any change of the kubelet. The last known good or
 *   the local configuration runs.
 * - `fallen-back`: the assigned payload failed, now or earlier. The last known good or the local
 *   configuration runs.
 *
 * A removed assignment ends every phase with `local`, and another assignment starts another phase.
 */
export type AgentState = Always &
  (
    | { readonly phase: 'local' }
    | { readonly phase: 'trial'; readonly assigned: Payload }
    | { readonly phase: 'good'; readonly assigned: Payload }
    | { readonly phase: 'rejected'; readonly assigned: Candidate; readonly fault: Fault }
    | { readonly phase: 'fallen-back'; readonly assigned: Payload; readonly fault: Fault }
  );

/** The assigned payload; `hash` is null when no kubelet configuration could be built from it. */
export interface Candidate {
  readonly identity: ConfigIdentity;
  readonly hash: string | null;
  readonly changes: readonly string[];
}

/** Value until the first check of a kubelet. */
export const NOT_OBSERVED = 'the kubelet has not been observed yet';

/** The state of a node that was never assigned a configuration. */
export function newAgentState(now: number): AgentState {
  return {
    phase: 'local',
    active: null,
    lastObserved: null,
    notObservedReason: NOT_OBSERVED,
    lastKnownGood: null,
    rejected: [],
    sync: null,
    switching: null,
    switches: 0,
    watch: EMPTY_HEALTH_HISTORY,
    baseline: null,
    mayLosePods: false,
    retried: null,
    nodeUid: null,
    lost: null,
    kubelet: null,
    since: now,
  };
}

/** The payload that the kubelet should run; null: the local configuration. Never a rejected payload. */
export function desiredPayload(state: AgentState): Payload | null {
  switch (state.phase) {
    case 'local':
      return null;
    case 'trial':
    case 'good':
      return state.assigned;
    case 'rejected':
    case 'fallen-back':
      return state.lastKnownGood;
  }
}

/** Whether the kubelet process was observed with the configuration last set. */
export function isObservedWithTarget(state: AgentState): boolean {
  return state.switching === null && isObserved(state);
}

/** Like `isObservedWithTarget`, but also true while a switch to another configuration fails. */
export function isObserved({ active, lastObserved, notObservedReason }: AgentState): boolean {
  return notObservedReason === null && active?.hash === lastObserved?.hash;
}

/** The assigned payload; null: nothing is assigned. */
export function assignedOf(state: AgentState): Candidate | null {
  return state.phase === 'local' ? null : state.assigned;
}

/** The hashes whose checkpoints may be needed by a next step. */
export function neededHashes(state: AgentState): readonly string[] {
  const hashes = [assignedOf(state)?.hash, state.active?.hash, state.lastKnownGood?.hash, desiredPayload(state)?.hash, state.switching?.to];
  return [...new Set(hashes.filter((hash) => typeof hash === 'string'))];
}

export function rejectionOf(state: Pick<AgentState, 'rejected'>, hash: string): Rejection | null {
  return state.rejected.find((one) => one.hash === hash) ?? null;
}

export type AgentEvent =
  /** The agent started, possibly during a switch. `intact`: hashes of the usable checkpoints. */
  | { readonly kind: 'booted'; readonly intact: readonly string[]; readonly kubelet: string | null }
  /**
   * A payload is assigned, and its checkpoint is stored; or the payload was rejected before any change of the
   * kubelet.
   * @param retry a new value of the annotation lifts the rejection of this payload
   */
  | {
      readonly kind: 'assigned';
      readonly candidate: Candidate;
      readonly refusal: Fault | null;
      readonly retry: string | null;
      /** The assignment permits that pods end. Absent: no. */
      readonly mayLosePods?: boolean;
      readonly nodeUid?: string | null;
    }
  /**
   * Nothing is assigned. `node`: the Node without assignment; a Node other than the previous one has lost its
   * assignment.
   */
  | { readonly kind: 'unassigned'; readonly node?: { readonly uid: string; readonly createdAt: string } }
  /** The assigned payload is unavailable. */
  | { readonly kind: 'unavailable'; readonly issue: SyncFailure }
  /**
   * The node before a switch that starts a trial.
   * @param baseline null: the kubelet was switched before, by an agent that was interrupted
   */
  | { readonly kind: 'recorded'; readonly id: number; readonly baseline: TrialBaseline | null }
  /**
   * The kubelet was switched; `runs` is the observed configuration of its process (`local`: the local one),
   * null: unknown yet.
   */
  | {
      readonly kind: 'switched';
      readonly id: number;
      readonly restarts: number | null;
      readonly runs: string | null;
    }
  /**
   * The switch failed; `damaged`: because the checkpoint cannot be used.
   * @param local the pointer was removed, so that no unproven configuration is started again: whether the
   *   process was observed with the local configuration
   */
  | {
      readonly kind: 'switch-failed';
      readonly id: number;
      readonly why: string;
      readonly damaged: boolean;
      readonly local?: { readonly isObserved: boolean } | null;
    }
  | { readonly kind: 'observed'; readonly seen: Observation }
  /** Checkpoints whose payload the node no longer permits, for example after a flag was removed. */
  | { readonly kind: 'forbidden'; readonly payloads: readonly { readonly hash: string; readonly fault: Fault }[] }
  | { readonly kind: 'tick' };

export type EventOf<Kind extends AgentEvent['kind']> = Extract<AgentEvent, { readonly kind: Kind }>;

/** Effect of a step. Each can be executed twice, because the agent may be interrupted before its result is recorded. */
export type AgentEffect =
  /** Record the node before a switch that starts a trial. Answered by `recorded` or `switch-failed`. */
  | { readonly kind: 'record'; readonly id: number; readonly to: string | null }
  /**
   * Switch the kubelet; without a restart if it already runs the configuration. Answered by `switched` or
   * `switch-failed`.
   * @param needsSavedState only if the state is on disk: it has the node before the switch
   */
  | { readonly kind: 'switch'; readonly id: number; readonly to: string | null; readonly needsSavedState: boolean }
  | {
      readonly kind: 'announce';
      readonly type: 'Normal' | 'Warning';
      readonly reason:
        | 'KubeletConfigChanged'
        | 'KubeletConfigGood'
        | 'KubeletConfigRejected'
        | 'KubeletConfigFallenBack'
        | 'KubeletConfigUnavailable'
        | 'KubeletConfigAssignmentLost';
      readonly message: string;
    }
  | { readonly kind: 'collect' };

export type EffectOf<Kind extends AgentEffect['kind']> = Extract<AgentEffect, { readonly kind: Kind }>;
