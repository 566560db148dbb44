import type { Clock } from '../base/clock.ts';
import { AppError, isAppError } from '../base/errors.ts';
import type { ReportEvent } from '../base/reporter.ts';
import { printable } from '../base/text/printable.ts';
import { observe } from './access/observe.ts';
import { isOperationFailure } from './apply.ts';
import { CommitGoneError, commitNotArmed, commitReverted, commitUnknown, HostLockedError } from './commit/commit-problems.ts';
import { type CommitRecord, commitRecord } from './commit/record.ts';
import type { Operation, RevertRequest } from './operation/operation.ts';
import type { Lasts, ObservedPhase, PhaseContext, VerifyCommit } from './phase.ts';
import type { HostChange } from './plan/change.ts';
import { isConnectionLost, type RunHost, type WriterOptions } from './run-host.ts';

/**
 * A change that ends with `confirm` or `rollBack`; if neither reaches the host, its timer or its next boot
 * reverts it.
 */
export interface OpenCommit {
  readonly phase: string;
  /** Marks all operations of the change as done. */
  wasApplied(): void;
  /** Waits until the change is verified and its state has lasted, then confirms it over a new connection. */
  confirm(lasts: Lasts | null): Promise<void>;
  /** Rolls back the change, or detects that the host did. Returns the error to report instead of the given one. */
  rollBack(error: unknown): Promise<unknown>;
}

const RETRY_MS = 1_000;
/** Reserved for the new connection, before the host's timeout. */
const CONFIRM_MARGIN_MS = 15_000;
/** For the host's own rollback, after its timeout. */
const GRACE_MS = 60_000;
const REVERT_TIMEOUT_MS = 300_000;

/**
 * Arms a revert for the next operations if required: the phase requests it, a working state exists for the
 * rollback (or an unconfirmed change that this one joins), and the changes affect only files and units.
 */
export async function openCommit(
  phase: { readonly name: string; readonly observed: ObservedPhase; readonly changes: readonly HostChange[] },
  context: PhaseContext,
): Promise<OpenCommit | null> {
  const { name, observed } = phase;
  const { commit } = observed;
  const { run } = context;
  if (run === undefined || run.writing === null || run.writing.confirm === null || commit === null) return null;
  const changes = phase.changes.filter(({ kind }) => kind !== 'confirm-commit');
  const joins = changes.length < phase.changes.length;
  const checkpoint = checkpointOf(changes);
  const hasRollback = changes.length > 0 && (observed.undo(changes)?.length ?? 0) > 0;
  if (checkpoint === null || !(joins || hasRollback)) return null;
  const verify = await commit.prepare(changes);
  const { owner, confirm } = run.writing;
  const timeoutSeconds = Math.ceil(confirm.timeoutMs / 1000);
  const paths = [...new Set([...checkpoint.paths, ...commit.paths])];
  run.arm({ ...checkpoint, id: owner.id, owner: owner.name, timeoutSeconds, paths });
  const message = `the host rolls back automatically unless the change is confirmed within ${timeoutSeconds} s`;
  const about = { host: context.host.name, phase: name, data: { timeoutSeconds } };
  context.reporter.report({ level: 'info', code: 'REVERT_ARMED', ...about, message, verbosity: 1 });
  return guard({ name, observed, run, id: owner.id, confirm, verify }, context);
}

/** A phase with an armed revert. */
interface GuardedPhase {
  readonly name: string;
  readonly observed: ObservedPhase;
  readonly run: RunHost;
  readonly id: string;
  readonly confirm: NonNullable<WriterOptions['confirm']>;
  readonly verify: VerifyCommit;
}

function guard(phase: GuardedPhase, context: PhaseContext): OpenCommit {
  const { name, run, id, confirm, verify } = phase;
  const { clock, host, reporter, signal } = context;
  // The host starts its timer later than this.
  const end = clock.now().getTime() + confirm.timeoutMs;
  const deadline = end - Math.min(CONFIRM_MARGIN_MS, confirm.timeoutMs / 4);
  const about = { host: host.name, phase: name };
  let applied = false;
  let isAsked = false;
  run.reconnectUntil(deadline);

  const confirmOnce = async (): Promise<void> => {
    const again = await confirm.reconnect();
    isAsked = true;
    const operations: readonly Operation[] = [IS_RUNNING, { kind: 'confirm-commit', id }, ...run.releasing()];
    await again.perform(operations).finally(() => again.close().catch(() => undefined));
  };

  return {
    phase: name,
    wasApplied: () => {
      applied = true;
    },
    confirm: async (lasts) => {
      const unproven = await verify(deadline, async () => {
        const gone = await findGone(run, id);
        if (gone !== null) throw gone;
      });
      await lasts?.();
      signal?.throwIfAborted();
      reporter.report({ level: 'info', code: 'COMMIT_VERIFIED', ...about, message: 'verified: confirming the change', verbosity: 1 });
      // Retries until the host has decided: a confirmation without a response may have been processed.
      const gone = await persist(clock, confirmOnce, end + GRACE_MS, signal);
      // No pending change: the response was lost, or an administrator confirmed it by hand.
      if (gone !== null && gone.record !== null) throw gone;
      run.wasReleased();
      run.reconnectUntil(null);
      reporter.report({ ...confirmed(unproven), ...about });
    },
    rollBack: async (error) => {
      run.arm(null);
      // After a reboot another run may hold the lock; this does not show the state of our change.
      const isLocked = error instanceof HostLockedError;
      const gone = isLocked && applied ? await findGone(run, id) : error;
      if (gone instanceof CommitGoneError && isReverted(gone.record, id)) return commitReverted(host.name, gone.record);
      if (isLocked) return error;
      const cause = isAppError(error) ? (error.problems[0]?.message ?? null) : null;
      reporter.report({ ...rollbackStarted(applied, cause), ...about });
      try {
        return await revert(error, phase, context, { applied, until: end + GRACE_MS });
      } catch (cause) {
        const secondsLeft = Math.round((end - clock.now().getTime()) / 1000);
        const isLost = isConnectionLost(cause);
        return withProblems(error, isLost ? commitUnknown(host.name, secondsLeft, isAsked) : rollbackFailed(about, cause), 1);
      } finally {
        run.reconnectUntil(null);
      }
    },
  };
}

function rollbackStarted(applied: boolean, cause: string | null): ReportEvent {
  const message = `rolling back to the previous files${applied ? '' : ', if the change has begun'}`;
  return { level: 'warning', code: 'ROLLBACK_STARTED', message, data: { cause } };
}

function confirmed(unproven: string | undefined): ReportEvent {
  return unproven === undefined
    ? { level: 'info', code: 'COMMIT_CONFIRMED', message: 'change confirmed over a new connection' }
    : { level: 'warning', code: 'COMMIT_NOT_IN_FORCE', message: `the new files are kept, but ${unproven}` };
}

/** Restores the previous files. @returns the error to report instead of the given one */
async function revert(
  error: unknown,
  phase: GuardedPhase,
  { clock, host }: PhaseContext,
  { applied, until }: { readonly applied: boolean; readonly until: number },
): Promise<unknown> {
  const { name, observed, run, id } = phase;
  const why = isAppError(error) ? (error.problems[0]?.message ?? '') : 'the program was aborted';
  const operations: readonly Operation[] = [{ kind: 'revert-commit', id, why: printable(why, 400) }, ...run.releasing()];
  const revertOnce = () => run.withConnection((existing) => existing.perform(operations, { timeoutMs: REVERT_TIMEOUT_MS }));
  const gone = await persist(clock, revertOnce, until);
  if (gone === null) run.wasReleased();
  else if (gone.record?.id !== id) return applied ? gone : withProblems(error, commitNotArmed(host.name, name), 1);
  else if (error instanceof CommitGoneError && isReverted(gone.record, id)) return commitReverted(host.name, gone.record);
  const isHealthy = observed.verifiedState !== null && (await isHealthyAgain(phase, clock));
  const back = gone !== null ? 'the host rolled back automatically' : 'the previous files were restored';
  const message = `${name}: ${back}${isHealthy ? ' and the kubelet is healthy again' : ''}`;
  // A partly applied change is an ordinary failure; a completely applied change that was rolled back has exit code 5.
  const isPartOnly = !applied && isOperationFailure(error);
  return withProblems(error, new AppError({ host: host.name, code: 'ROLLED_BACK', message }), isPartOnly ? 1 : 5);
}

/** Null when the change waits for its confirmation, was confirmed by hand, or the host is unreachable. */
async function findGone(run: RunHost, id: string): Promise<CommitGoneError | null> {
  try {
    const record = await run.withConnection((existing) => observe(existing, commitRecord));
    const isOpen = record === null || (record.state === 'armed' && record.id === id);
    return isOpen ? null : new CommitGoneError(run.name, record, 'cannot confirm the change');
  } catch (error) {
    if (isConnectionLost(error)) return null;
    throw error;
  }
}

/** Retries until the deadline while the host is unreachable. Returns the refusal of the host; null: success. */
async function persist(clock: Clock, work: () => Promise<void>, until: number, stop?: AbortSignal): Promise<CommitGoneError | null> {
  for (;;) {
    try {
      await work();
      return null;
    } catch (error) {
      if (error instanceof CommitGoneError) return error;
      if (!isConnectionLost(error) || clock.now().getTime() >= until) throw error;
      await clock.sleep(RETRY_MS, stop);
    }
  }
}

/** False: the host is unreachable. @throws AppError: the kubelet is not healthy with the previous files */
async function isHealthyAgain({ observed, run }: GuardedPhase, clock: Clock): Promise<boolean> {
  run.reconnectUntil(clock.now().getTime() + GRACE_MS);
  try {
    await observed.verifyUndone();
    return true;
  } catch (error) {
    if (isConnectionLost(error)) return false;
    throw error;
  }
}

const IS_RUNNING: Operation = {
  kind: 'run',
  argv: ['systemctl', 'is-active', '--quiet', 'kubelet'],
  what: 'the kubelet is not running: systemctl is-active kubelet',
};

function isReverted(record: CommitRecord | null, id: string): record is CommitRecord {
  return record !== null && record.state === 'reverted' && record.id === id;
}

function rollbackFailed({ host, phase }: { readonly host: string; readonly phase: string }, cause: unknown): AppError {
  const why = cause instanceof AppError ? cause.message : String(cause);
  const message = `${phase}: rolling back to the previous files failed: ${why}`;
  return new AppError({ host, code: 'ROLLBACK_FAILED', message, hint: 'See journalctl -u kubeletadm-revert -u kubelet on the host' });
}

/** Appends problems to an error. Other errors are returned unchanged. */
function withProblems(error: unknown, more: AppError, exitCode: 1 | 5): unknown {
  if (!isAppError(error)) return error;
  return new AppError([...error.problems, ...more.problems], { exitCode, cause: error, detail: error.detail });
}

/** The state to save before changes. Null: their rollback needs more than files and units. */
export function checkpointOf(changes: readonly HostChange[]): Pick<RevertRequest, 'paths' | 'units' | 'reload'> | null {
  const paths: string[] = [];
  const units: string[] = [];
  let reload = false;
  for (const change of changes) {
    switch (change.kind) {
      case 'write-file':
      case 'put-file':
      case 'make-directory':
      case 'remove-file':
        paths.push(change.path);
        break;
      case 'move-file':
        paths.push(change.path, change.to);
        break;
      case 'enable-unit':
      case 'restart-unit':
      case 'stop-unit':
      case 'start-unit':
        units.push(change.unit);
        break;
      case 'daemon-reload':
        reload = true;
        break;
      case 'confirm-commit':
      case 'pull-image':
      case 'require-directory':
        break;
      case 'upload-file':
      case 'import-images':
      case 'copy-directory':
      case 'empty-directory':
      case 'remove-directory':
      case 'remove-empty-directory':
      case 'unmount-below':
      case 'remove-pods':
      case 'restart-static-pod':
      case 'install-packages':
      case 'hold-packages':
      case 'download-file':
      case 'extract-archive':
      case 'load-module':
      case 'set-sysctl':
      case 'turn-off-swap':
        return null;
    }
  }
  // Each line of the checkpoint list is one path.
  if (paths.some((path) => path.includes('\n'))) return null;
  return { paths: [...new Set(paths)], units: [...new Set(units)], reload };
}
