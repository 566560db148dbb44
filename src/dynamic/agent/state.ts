import type { ConfigIdentity } from '../../kubelet/config-source.ts';
import type { ConfigErrorCode } from '../error-texts.ts';
import { NEW_WATCH, type Sign, type Watch } from './health.ts';

/** A configuration that a node can be given: where it was read, and the hash of what the kubelet gets to read. The hash alone makes two the same. */
export interface Payload {
  readonly identity: ConfigIdentity;
  readonly hash: string;
  /** What it changes in the local configuration, a field an entry, for people. */
  readonly changes: readonly string[];
}

/** Why an assigned configuration does not run. `code` is one of upstream's where it fits; `cause` is a clause for people. */
export interface Fault {
  readonly code: Extract<ConfigErrorCode, 'LOAD_FAILED' | 'VALIDATION_FAILED' | 'INTERNAL_FAILURE'> | 'NOT_ALLOWED' | 'RUN_FAILED';
  readonly cause: string;
  /** What showed that it does not run; absent where it was never run. */
  readonly sign?: Sign;
}

/** A payload that was run and did no good. */
export interface Rejection {
  readonly hash: string;
  readonly fault: Fault;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The source could not be read: nothing changes, and it is tried again. */
export interface SyncFailure {
  readonly code: Extract<ConfigErrorCode, 'DOWNLOAD_FAILED' | 'SYNC_INTERNAL_FAILURE' | 'UNKNOWN_SOURCE'>;
  readonly cause: string;
}

/** A Node was deleted and created again: its annotations, and so its assignment, are those of a new Node. */
export interface LostAssignment {
  readonly identity: ConfigIdentity;
  /** When the new Node was created, in RFC 3339. */
  readonly createdAt: string;
}

/** The kubelet is to be given another configuration, and nobody has said yet that it has it. */
export interface Switching {
  /** Tells its answer from that to an earlier switch to the same. */
  readonly id: number;
  /** Null: the local configuration. */
  readonly to: string | null;
  /** Why the last try failed. */
  readonly issue: string | null;
  /** How often it failed. */
  readonly failures: number;
  /** When it is tried again; null while it is under way. */
  readonly againAt: number | null;
}

interface Always {
  /** What the kubelet was last given; null: the local configuration. */
  readonly active: Payload | null;
  /** What the process of the kubelet was last seen with; null: the local configuration. This is what the status reports. */
  readonly seen: Payload | null;
  /** Why the running process was not observed with `seen` since the last change, as a clause; null: it was. Not kept on disk. */
  readonly unseen: string | null;
  /** What a healthy trial was last finished with; null: the local configuration. */
  readonly lastKnownGood: Payload | null;
  /** Newest last. A hash is here once. */
  readonly rejected: readonly Rejection[];
  readonly sync: SyncFailure | null;
  readonly switching: Switching | null;
  /** How many switches were asked for. */
  readonly switches: number;
  /** Of the kubelet that runs now. Starts anew with each switch, and with each start of the agent. */
  readonly watch: Watch;
  /** The word by which somebody last asked to try a rejected payload once more. */
  readonly retried: string | null;
  /** The uid of the Node that holds, or held, the assignment; null: not known. */
  readonly nodeUid: string | null;
  /** The assignment that was deleted together with an earlier Node of the same name, until another is made; null: none. */
  readonly lost: LostAssignment | null;
  /** The kubelet that the rejections are about, e.g. `v1.36.2`. */
  readonly kubelet: string | null;
  /** When the phase began, in milliseconds since 1970. */
  readonly since: number;
}

/**
 * What the agent knows. Which configuration is to run follows from it: see `desiredPayload`.
 *
 * - `local`: nothing is assigned. Leaves by an assignment.
 * - `trial`: what is assigned runs and has to prove itself. Leaves to `good` when it was healthy for long enough, to `fallen-back` at the first sign
 *   that it is not.
 * - `good`: what is assigned runs and is the last known good. Leaves to `fallen-back` when the kubelet dies again and again.
 * - `rejected`: what is assigned was refused before the kubelet was touched. Runs the last known good or the local configuration.
 * - `fallen-back`: what is assigned was run, then or earlier, and did no good. Runs the last known good or the local configuration.
 *
 * Every phase leaves to `local` when the assignment is taken away, and to another by another assignment.
 */
export type AgentState = Always &
  (
    | { readonly phase: 'local' }
    | { readonly phase: 'trial'; readonly assigned: Payload }
    | { readonly phase: 'good'; readonly assigned: Payload }
    | { readonly phase: 'rejected'; readonly assigned: Candidate; readonly fault: Fault }
    | { readonly phase: 'fallen-back'; readonly assigned: Payload; readonly fault: Fault }
  );

/** What is assigned; `hash` is null where nothing could be made of it that a kubelet reads. */
export interface Candidate {
  readonly identity: ConfigIdentity;
  readonly hash: string | null;
  readonly changes: readonly string[];
}

/** Until the first look at a kubelet. */
export const NOT_OBSERVED = 'the kubelet has not been observed yet';

/** A node that was never told anything. */
export function newAgentState(now: number): AgentState {
  return {
    phase: 'local',
    active: null,
    seen: null,
    unseen: NOT_OBSERVED,
    lastKnownGood: null,
    rejected: [],
    sync: null,
    switching: null,
    switches: 0,
    watch: NEW_WATCH,
    retried: null,
    nodeUid: null,
    lost: null,
    kubelet: null,
    since: now,
  };
}

/** The payload the kubelet is to run; null: the local configuration. Never one that was rejected. */
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

/** Whether the running process of the kubelet was observed with the configuration it was last given. */
export function isSeen(state: AgentState): boolean {
  return state.switching === null && isObserved(state);
}

/** Whether the running process was observed with what was last set, also while another configuration cannot be set. */
export function isObserved({ active, seen, unseen }: AgentState): boolean {
  return unseen === null && active?.hash === seen?.hash;
}

/** What is assigned; null: nothing. */
export function assignedOf(state: AgentState): Candidate | null {
  return state.phase === 'local' ? null : state.assigned;
}

/** The hashes whose checkpoints are needed, whatever happens next. */
export function neededHashes(state: AgentState): readonly string[] {
  const hashes = [assignedOf(state)?.hash, state.active?.hash, state.lastKnownGood?.hash, desiredPayload(state)?.hash, state.switching?.to];
  return [...new Set(hashes.filter((hash) => typeof hash === 'string'))];
}

/** The rejection of a hash, or null. */
export function rejectionOf(state: Pick<AgentState, 'rejected'>, hash: string): Rejection | null {
  return state.rejected.find((one) => one.hash === hash) ?? null;
}
