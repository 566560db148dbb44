import type { Clock } from '../base/clock.ts';
import { isAppError } from '../base/errors.ts';
import type { Dial } from '../kube/dial.ts';
import { CommitGoneError, HostLockedError } from './commit/commit-problems.ts';
import type { LockHolder } from './commit/record.ts';
import type { LockOwner, LockRequest, RevertRequest } from './commit/requests.ts';
import type { FactQueries } from './facts/query.ts';
import type { Host, PerformOptions } from './host.ts';
import type { Operation } from './plan/operation.ts';

/** How a host is written to: one writer at a time, and whether changes have to be confirmed. */
export interface WriterOptions {
  readonly owner: LockOwner;
  /** Whosever lock is there is taken away. */
  readonly breakLock: boolean;
  /** Whether the process that holds a lock ended without giving it back, as far as that can be known here. */
  readonly isGone: (holder: LockHolder) => boolean;
  /** Null: a change of a kubelet is final at once. */
  readonly confirm: ConfirmOptions | null;
}

export interface ConfirmOptions {
  /** Without a confirmation within this time the host takes the change back. */
  readonly timeoutMs: number;
  /** Makes a new connection to the same host, over which the change is confirmed. */
  readonly reconnect: () => Promise<Host>;
}

/** A host whose lock is taken with the first thing that is done there. */
export interface Writer extends Host {
  readonly options: WriterOptions;
  /**
   * Arms a revert with the next program, before its other operations. From then on each program first checks that the change still waits for its
   * confirmation: while a connection was lost, the host may have reverted it. Null: no revert is armed or checked any more.
   */
  arm(revert: RevertRequest | null): void;
  /** Until then (Unix milliseconds) a connection that is lost is made anew when something is asked. Null: it is an error. */
  patientUntil(time: number | null): void;
  /** Works over the connection there is, or over a new one where it was lost. What is done so is done without the lock. */
  over<T>(work: (host: Host) => Promise<T>): Promise<T>;
  /** What gives the lock back; none where it is not held. Whoever has it done says so with `wasReleased`. */
  releasing(): readonly Operation[];
  wasReleased(): void;
  /** Gives the lock back where it is held and the host still answers (else it ends with its time), and closes a connection that was made anew. */
  end(): Promise<void>;
}

/** For the time a program may take that has not taken the lock anew. */
const LOCK_MARGIN_SECONDS = 60;
const LOCK_SECONDS = 900;
const RETRY_MS = 1_000;

/** Makes a host one that is written to by one alone. */
export function lockedHost(first: Host, options: WriterOptions, clock: Clock): Writer {
  let current = first;
  let lost = false;
  let held = false;
  let armed: RevertRequest | null = null;
  /** The change that was armed, and waits for its confirmation as far as we know. */
  let open: string | null = null;
  let patience: number | null = null;
  const { owner, breakLock, confirm } = options;
  const seconds = confirm === null ? LOCK_SECONDS : Math.ceil(confirm.timeoutMs / 1000) + LOCK_MARGIN_SECONDS;
  const lockBy = (breaks: LockRequest['breaks']): Operation => ({ kind: 'take-lock', lock: { owner, seconds, breaks } });

  const performWith = async (
    breaks: LockRequest['breaks'],
    operations: readonly Operation[],
    performOptions: PerformOptions,
  ): Promise<void> => {
    const before: readonly Operation[] = [
      lockBy(breaks),
      ...(armed === null ? [] : [{ kind: 'arm-revert', revert: armed } as const]),
      ...(armed !== null || open === null ? [] : [{ kind: 'check-commit', id: open } as const]),
    ];
    const { onDone } = performOptions;
    try {
      await current.perform([...before, ...operations], {
        ...performOptions,
        ...(onDone === undefined ? {} : { onDone: (index) => (index < before.length ? undefined : onDone(index - before.length)) }),
      });
      open = armed?.id ?? open;
      armed = null;
    } finally {
      held = true;
    }
  };

  const connection = async (): Promise<Host> => {
    if (!lost) return current;
    if (confirm === null) return current;
    const next = await confirm.reconnect();
    await current.close().catch(() => undefined);
    current = next;
    lost = false;
    return current;
  };

  const noticing = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (isConnectionLost(error)) lost = true;
      throw error;
    }
  };
  const over = <T>(work: (host: Host) => Promise<T>): Promise<T> => noticing(connection().then(work));

  const performLocked = async (operations: readonly Operation[], performOptions: PerformOptions): Promise<void> => {
    try {
      await noticing(performWith(breakLock && !held ? { kind: 'any' } : { kind: 'none' }, operations, performOptions));
    } catch (error) {
      if (!(error instanceof HostLockedError)) throw error;
      held = false;
      if (!options.isGone(error.holder)) throw error;
      await noticing(performWith({ kind: 'id', id: error.holder.id }, operations, performOptions));
    }
  };

  return {
    name: first.name,
    options,
    arm: (revert) => {
      armed = revert;
      if (revert === null) open = null;
    },
    patientUntil: (time) => {
      patience = time;
    },
    over,
    releasing: () => (held ? [{ kind: 'release-lock', id: owner.id }] : []),
    wasReleased: () => {
      held = false;
    },
    query: async <Q extends FactQueries>(queries: Q, queryOptions?: Parameters<Host['query']>[1]) => {
      for (;;) {
        try {
          return await over((host) => host.query(queries, queryOptions));
        } catch (error) {
          if (!isConnectionLost(error) || patience === null || clock.now().getTime() >= patience) throw error;
          await clock.sleep(RETRY_MS, queryOptions?.signal);
        }
      }
    },
    perform: async (operations, performOptions = {}) => {
      if (operations.length === 0 && armed === null) return;
      try {
        await performLocked(operations, performOptions);
      } catch (error) {
        if (open === null || !(error instanceof CommitGoneError) || error.record !== null) throw error;
        // Confirmed by hand in the meantime: the host keeps the change, and there is nothing to check any more.
        open = null;
        await performLocked(operations, performOptions);
      }
    },
    ...(first.dial === undefined ? {} : { dial: (address, signal) => over((host) => dialFrom(host, address, signal)) }),
    end: async () => {
      try {
        if (held) await over((host) => host.perform([{ kind: 'release-lock', id: owner.id }]));
      } catch (error) {
        if (!isAppError(error)) throw error;
      }
      held = false;
      if (current !== first) await current.close();
    },
    close: () => current.close(),
  };
}

/** A host that is connected to anew is connected to in the same way. */
function dialFrom({ dial, name }: Host, ...args: Parameters<Dial>): ReturnType<Dial> {
  if (dial === undefined) throw new Error(`cannot reconnect to ${name}`);
  return dial(...args);
}

/** A host that shuts down kills the programs of its sessions before it closes their connections. */
const LOST = /^HOST_(UNREACHABLE|TIMEOUT|CONNECTION_LOST|PROGRAM_KILLED|SHUTTING_DOWN)$/;

/** Whether an error says that the host can't be talked to, now or any more. It may answer again later. */
export function isConnectionLost(error: unknown): boolean {
  return isAppError(error) && LOST.test(error.code);
}
