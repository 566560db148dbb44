import type { Clock } from '../base/clock.ts';
import { isAppError } from '../base/errors.ts';
import type { Dial } from '../kube/dial.ts';
import type { Host, PerformOptions } from './access/host.ts';
import { CommitGoneError, HostLockedError } from './commit/commit-problems.ts';
import type { LockHolder } from './commit/record.ts';
import { factCache } from './fact-cache.ts';
import type { ParseText } from './facts/parse-text.ts';
import type { FactQueries } from './facts/query.ts';
import type { LockRequest, Operation, RevertRequest } from './operation/operation.ts';

/** How a host is written to: one writer at a time, and whether changes must be confirmed. */
export interface WriterOptions {
  readonly owner: LockRequest['owner'];
  readonly breakLock: boolean;
  /** Whether the process that holds a lock exited without releasing it, as far as the local host can determine. */
  readonly isGone: (holder: LockHolder) => boolean;
  /**
   * Without a confirmation within `timeoutMs`, over a new connection (`reconnect`), the host rolls back a kubelet change.
   * Null: it is final immediately.
   */
  readonly confirm: { readonly timeoutMs: number; readonly reconnect: () => Promise<Host> } | null;
  /** Operations that run when the lock was taken, before the first change, in the same program. */
  readonly opening?: () => readonly Operation[];
}

/** The host of one run, for which its facts are cached and its lock is held from the first operation on. */
export interface RunHost extends Host {
  /**
   * Starts the inspection of a phase. After `bypassFactCache`, facts older than two seconds are dropped.
   * @param phase its queries are recorded, and sent together in one round trip the next time
   * @param group phases that are inspected together, including `phase`: their recorded queries are sent together
   */
  cacheFacts(phase: string, group?: readonly string[]): void;
  /** A wait needs current values: until the next `cacheFacts` each query goes to the host and drops earlier facts. */
  bypassFactCache(): void;
  /** Null: no lock, and changes are final immediately (files staged into a directory). */
  readonly writing: WriterOptions | null;
  /**
   * Arms a revert with the next program, before its other operations. Each later program first checks that
   * the change still waits for its confirmation: the host may have reverted it while a connection was lost.
   * Null: no revert is armed or checked any more.
   */
  arm(revert: RevertRequest | null): void;
  /** Until then (Unix milliseconds) the next request reopens a lost connection. Null: it is an error. */
  reconnectUntil(time: number | null): void;
  /** Uses the existing connection, or a new one if it was lost. Does not use the lock. */
  withConnection<T>(work: (host: Host) => Promise<T>): Promise<T>;
  /** The operations that release a held lock. After them, the caller must call `wasReleased`. */
  releasing(): readonly Operation[];
  wasReleased(): void;
  /** Releases the lock if the host is reachable (otherwise it expires), and closes a reopened connection. */
  end(): Promise<void>;
}

/** Margin for a program that runs without renewing the lock. */
const LOCK_MARGIN_SECONDS = 60;
const LOCK_SECONDS = 900;
const RETRY_MS = 1_000;

/**
 * A host for one run: queries are answered from the cached facts, and only one run changes the host.
 * @param expected queries by key that the run always needs
 */
export function runHost(
  first: Host,
  context: { readonly clock: Clock; readonly writing?: WriterOptions | undefined; readonly parseText?: ParseText | undefined },
  expected: FactQueries = {},
): RunHost {
  const { clock, writing, parseText } = context;
  const facts = factCache(clock, expected);
  const link = reconnecting(first, clock, writing?.confirm ?? null);
  const writer = writing === undefined ? null : lockedWriter(link, writing);
  return {
    name: first.name,
    writing: writing ?? null,
    cacheFacts: facts.cacheFacts,
    bypassFactCache: facts.bypassFactCache,
    arm: (revert) => writer?.arm(revert),
    reconnectUntil: link.reconnectUntil,
    withConnection: link.use,
    releasing: () => writer?.releasing() ?? [],
    wasReleased: () => writer?.wasReleased(),
    query: <Q extends FactQueries>(queries: Q, options: Parameters<Host['query']>[1] = {}) =>
      facts.query(queries, { areKeys: options.areKeys === true, send: (missing) => link.query(missing, options) }),
    perform: async (operations, options = {}) => {
      facts.drop();
      await (writer ?? link.current()).perform(operations, options);
    },
    dial: first.dial && ((address, signal) => link.use((host) => dialFrom(host, address, signal))),
    parseText,
    end: async () => {
      const release = writer?.releasing() ?? [];
      try {
        if (release.length > 0) await link.use((host) => host.perform(release));
      } catch (error) {
        if (!isAppError(error)) throw error;
      }
      writer?.wasReleased();
      if (link.current() !== first) await link.current().close();
    },
    close: () => link.current().close(),
  };
}

/** The connection to a host, which is replaced after it was lost if changes must be confirmed. */
function reconnecting(first: Host, clock: Clock, confirm: WriterOptions['confirm']) {
  let current = first;
  let lost = false;
  let untilMs: number | null = null;

  const connection = async (): Promise<Host> => {
    if (!lost || confirm === null) return current;
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
  const use = <T>(work: (host: Host) => Promise<T>): Promise<T> => noticing(connection().then(work));

  /** Reopens a lost connection while a change waits for its confirmation. */
  const query: Host['query'] = async (queries, options) => {
    for (;;) {
      try {
        return await use((host) => host.query(queries, options));
      } catch (error) {
        if (!isConnectionLost(error) || untilMs === null || clock.now().getTime() >= untilMs) throw error;
        await clock.sleep(RETRY_MS, options?.signal);
      }
    }
  };
  return {
    current: () => current,
    /** Operations are not repeated over a new connection. */
    perform: (operations: readonly Operation[], options: PerformOptions) => noticing(current.perform(operations, options)),
    query,
    use,
    reconnectUntil: (time: number | null): void => {
      untilMs = time;
    },
  };
}

const NO_LOCK = { held: false, armed: null, open: null };

function lockedWriter(link: ReturnType<typeof reconnecting>, { owner, breakLock, isGone, confirm, opening }: WriterOptions) {
  /** `open`: the armed change that, as far as known, waits for its confirmation. */
  let state: { readonly held: boolean; readonly armed: RevertRequest | null; readonly open: string | null } = NO_LOCK;
  const release: readonly Operation[] = [{ kind: 'release-lock', id: owner.id }];
  const seconds = confirm === null ? LOCK_SECONDS : Math.ceil(confirm.timeoutMs / 1000) + LOCK_MARGIN_SECONDS;

  const performWith = async (breaks: LockRequest['breaks'], operations: readonly Operation[], options: PerformOptions): Promise<void> => {
    const { held, armed, open } = state;
    const before: readonly Operation[] = [
      { kind: 'take-lock', lock: { owner, seconds, breaks } },
      ...(held ? [] : (opening?.() ?? [])),
      ...(armed === null ? [] : [{ kind: 'arm-revert', revert: armed } as const]),
      ...(armed !== null || open === null ? [] : [{ kind: 'check-commit', id: open } as const]),
    ];
    const { onDone, isLast = false } = options;
    const isOwn = (index: number): boolean => index < before.length || index >= before.length + operations.length;
    state = { ...state, held: true };
    await link.perform([...before, ...operations, ...(isLast ? release : [])], {
      ...options,
      onDone: onDone && ((index) => (isOwn(index) ? undefined : onDone(index - before.length))),
    });
    state = { held: !isLast, armed: null, open: armed?.id ?? open };
  };
  const performLocked = async (operations: readonly Operation[], options: PerformOptions): Promise<void> => {
    try {
      await performWith({ kind: breakLock && !state.held ? 'any' : 'none' }, operations, options);
    } catch (error) {
      if (!(error instanceof HostLockedError)) throw error;
      state = { ...state, held: false };
      if (!isGone(error.holder)) throw error;
      await performWith({ kind: 'id', id: error.holder.id }, operations, options);
    }
  };
  return {
    arm: (armed: RevertRequest | null): void => {
      state = { ...state, armed, open: armed === null ? null : state.open };
    },
    releasing: () => (state.held ? release : []),
    wasReleased: (): void => {
      state = { ...state, held: false };
    },
    perform: async (operations: readonly Operation[], options: PerformOptions): Promise<void> => {
      if (operations.length === 0 && state.armed === null) return;
      try {
        await performLocked(operations, options);
      } catch (error) {
        if (state.open === null || !(error instanceof CommitGoneError) || error.record !== null) throw error;
        // Confirmed by hand in the meantime: the host keeps the change, so no further checks are needed.
        state = { ...state, open: null };
        await performLocked(operations, options);
      }
    },
  };
}

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
