import type { Clock } from '../base/clock.ts';
import { isAppError } from '../base/errors.ts';
import type { Dial } from '../kube/dial.ts';
import { CommitGoneError, HostLockedError } from './commit/commit-problems.ts';
import type { LockHolder } from './commit/record.ts';
import type { LockOwner, LockRequest, RevertRequest } from './commit/requests.ts';
import type { FactQueries } from './facts/query.ts';
import type { Host, PerformOptions } from './host.ts';
import type { Operation } from './plan/operation.ts';

/** How a host is written to: one writer at a time, and whether changes must be confirmed. */
export interface WriterOptions {
  readonly owner: LockOwner;
  /** Breaks any existing lock. */
  readonly breakLock: boolean;
  /**
   * Whether the process that holds a lock exited without releasing it, as far as the local host can
   * determine.
   */
  readonly isGone: (holder: LockHolder) => boolean;
  /** Null: a kubelet change is final immediately. */
  readonly confirm: ConfirmOptions | null;
}

export interface ConfirmOptions {
  /** Without a confirmation within this time the host rolls back the change. */
  readonly timeoutMs: number;
  /** Opens a new connection to the same host for the confirmation. */
  readonly reconnect: () => Promise<Host>;
}

/** A host whose lock is taken with the first operation. */
export interface Writer extends Host {
  readonly options: WriterOptions;
  /**
   * Arms a revert with the next program, before its other operations. After that each program first checks
   * that the change still waits for its confirmation, because the host may have reverted it while a
   * connection was lost. Null: no revert is armed or checked any more.
   */
  arm(revert: RevertRequest | null): void;
  /**
   * Until then (Unix milliseconds) a lost connection is reopened on the next request. Null: a lost connection
   * is an error.
   */
  patientUntil(time: number | null): void;
  /** Uses the existing connection, or a new one if it was lost. Does not use the lock. */
  over<T>(work: (host: Host) => Promise<T>): Promise<T>;
  /**
   * The operations that release the lock; empty if it is not held. After running them, the caller must call
   * `wasReleased`.
   */
  releasing(): readonly Operation[];
  wasReleased(): void;
  /**
   * Releases the lock if it is held and the host is reachable (otherwise it expires), and closes a reopened
   * connection.
   */
  end(): Promise<void>;
}

/** Margin for a program that runs without renewing the lock. */
const LOCK_MARGIN_SECONDS = 60;
const LOCK_SECONDS = 900;
const RETRY_MS = 1_000;

/** Wraps a host so that only one writer changes it. */
export function lockedHost(first: Host, options: WriterOptions, clock: Clock): Writer {
  let current = first;
  let lost = false;
  let held = false;
  let armed: RevertRequest | null = null;
  /** The armed change that, as far as known, waits for its confirmation. */
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
        // Confirmed by hand in the meantime: the host keeps the change, so no further checks are needed.
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

/** Reconnects in the same way as the first connection. */
function dialFrom({ dial, name }: Host, ...args: Parameters<Dial>): ReturnType<Dial> {
  if (dial === undefined) throw new Error(`cannot reconnect to ${name}`);
  return dial(...args);
}

/** A host that shuts down kills the programs of its sessions before it closes their connections. */
const LOST = /^HOST_(UNREACHABLE|TIMEOUT|CONNECTION_LOST|PROGRAM_KILLED|SHUTTING_DOWN)$/;

/** Whether an error means that the host is unreachable. It may become reachable again. */
export function isConnectionLost(error: unknown): boolean {
  return isAppError(error) && LOST.test(error.code);
}
