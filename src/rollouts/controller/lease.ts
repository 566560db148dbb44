import type { Clock } from '../../base/clock.ts';
import { type AppError, isAppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { numberAt, textAt } from '../../kubelet/documents/values.ts';

/** A Lease that its holder does not renew for this time may be taken over. As of kube-controller-manager. */
const LEASE_SECONDS = 15;
/** A leader that could not renew for this time stops: well before others take over. */
const RENEW_DEADLINE_MS = 10_000;
const RETRY_MS = 2_000;

interface LeaseOptions {
  /** Not fenced. */
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly namespace: string;
  /** Unique for each process. */
  readonly identity: string;
  readonly onIssue: (error: AppError) => void;
  /** Called when the Lease was read, and renewed if it is that of this process. */
  readonly onAnswer: () => void;
  readonly onChange: (leader: string) => void;
}

/** The right to act of a leader. */
export interface Leadership {
  readonly identity: string;
  /** Whether the Lease was renewed recently enough. Setting the clock back does not extend this time. */
  isValid(): boolean;
}

/** The Lease of the leader. @param namespace that of the controller */
export function leaderLease(namespace: string): ObjectRef {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: 'kubeletadm-controller' };
}

/**
 * Runs `work` while this process holds the Lease, again after each election, until the signal is aborted.
 * @param work ends when its signal is aborted; before that, no other work is started
 * @see k8s.io/client-go tools/leaderelection (1.36)
 */
export async function whileLeader(
  options: LeaseOptions,
  work: (leadership: Leadership, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { clock, signal, identity, random } = options;
  const election = new Election(options);
  while (!signal.aborted) {
    await election.attempt();
    if (election.isValid()) {
      const stop = new AbortController();
      const working = work({ identity, isValid: () => election.isValid() }, AbortSignal.any([signal, stop.signal])).finally(() =>
        stop.abort(),
      );
      // Its error is thrown below.
      working.catch(() => undefined);
      try {
        while (election.isValid() && !stop.signal.aborted) {
          await clock.sleep(RETRY_MS, AbortSignal.any([signal, stop.signal])).catch(() => undefined);
          if (signal.aborted) break;
          await election.attempt();
        }
      } finally {
        stop.abort(new Error('the lease is lost'));
        await working;
      }
      await election.release();
    }
    await clock.sleep(RETRY_MS * (1 + random()), signal).catch(() => undefined);
  }
}

class Election {
  readonly #options: LeaseOptions;
  /** The Lease as seen last, and since when. */
  #seen: { readonly version: string; readonly at: Elapsed } | null = null;
  #renewed: Elapsed | null = null;
  #leader = '';

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  isValid(): boolean {
    return this.#renewed !== null && this.#renewed() < RENEW_DEADLINE_MS;
  }

  /** Renews the Lease, or acquires one that is free or expired. */
  async attempt(): Promise<void> {
    const { cluster, identity, onIssue, onAnswer, onChange } = this.#options;
    // The time before the request: the answer may be late.
    const started = elapsedSince(this.#options.clock);
    try {
      const lease = await cluster.get(this.#ref());
      const holder = lease === null ? '' : textAt(lease, 'spec.holderIdentity');
      if (holder !== this.#leader) onChange(holder);
      this.#leader = holder;
      if (lease !== null && holder !== '' && holder !== identity && !this.#isExpired(lease)) {
        this.#renewed = null;
        onAnswer();
        return;
      }
      await this.#write(lease, holder);
      onAnswer();
      if (holder !== identity) onChange(identity);
      this.#leader = identity;
      this.#renewed = started;
    } catch (error) {
      if (!isAppError(error)) throw error;
      // Another process was faster.
      if (error.code === 'CLUSTER_CONFLICT' || error.code === 'CLUSTER_ALREADY_EXISTS') this.#renewed = null;
      else onIssue(error);
    }
  }

  /** Lets another process take over at once. */
  async release(): Promise<void> {
    const { cluster, identity } = this.#options;
    this.#renewed = null;
    const lease = await cluster.get(this.#ref()).catch(() => null);
    if (lease === null || textAt(lease, 'spec.holderIdentity') !== identity) return;
    const spec = { ...(lease.spec as JsonObject), holderIdentity: '' };
    await cluster.update({ ...lease, spec }).catch(() => undefined);
  }

  #ref(): ObjectRef {
    return leaderLease(this.#options.namespace);
  }

  /** Whether the Lease did not change for its duration. The time is measured here: clocks of other hosts may differ. */
  #isExpired({ metadata, spec }: KubeObject): boolean {
    const version = metadata.resourceVersion ?? '';
    if (this.#seen?.version !== version) this.#seen = { version, at: elapsedSince(this.#options.clock) };
    const seconds = numberAt({ spec: spec ?? {} }, 'spec.leaseDurationSeconds') ?? LEASE_SECONDS;
    return this.#seen.at() >= seconds * 1000;
  }

  async #write(lease: KubeObject | null, holder: string): Promise<void> {
    const { cluster, clock, identity } = this.#options;
    const now = clock.now().toISOString().replace('Z', '000Z');
    const transitions = lease === null ? 0 : (numberAt(lease, 'spec.leaseTransitions') ?? 0);
    const taken = holder === identity ? {} : { acquireTime: now, leaseTransitions: transitions + (lease === null ? 0 : 1) };
    const before = (lease?.spec ?? {}) as JsonObject;
    const spec = { ...before, ...taken, holderIdentity: identity, leaseDurationSeconds: LEASE_SECONDS, renewTime: now };
    const { apiVersion, kind, name, namespace = '' } = this.#ref();
    if (lease === null) await cluster.create({ apiVersion, kind, metadata: { name, namespace }, spec });
    else await cluster.update({ ...lease, spec });
  }
}

/** Milliseconds since a moment. */
type Elapsed = () => number;

/**
 * Measures the time from now on, by the steady clock and the system time: the greater one counts. The steady clock stands still
 * while a virtual machine is suspended; the system time may be set back.
 */
function elapsedSince(clock: Clock): Elapsed {
  const [wall, steady] = [clock.now().getTime(), clock.steadyMs?.() ?? 0];
  return () => Math.max(clock.now().getTime() - wall, (clock.steadyMs?.() ?? 0) - steady);
}

/** A clock whose time continues steadily from now on, also when the system time is changed. */
export function steadyClock(clock: Clock): Clock {
  const { steadyMs } = clock;
  if (steadyMs === undefined) return clock;
  const [wall, start] = [clock.now().getTime(), steadyMs()];
  return { ...clock, now: () => new Date(wall + steadyMs() - start) };
}
