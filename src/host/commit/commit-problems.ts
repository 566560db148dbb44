import { AppError } from '../../base/errors.ts';
import { type CommitRecord, type LockHolder, revertsAt } from './record.ts';

/** Another run holds the lock of the host. `holder` lets the caller recognize its own earlier run. */
export class HostLockedError extends AppError {
  readonly holder: LockHolder;

  constructor(host: string, holder: LockHolder) {
    const since = holder.since === 0 ? '' : `, since ${utc(holder.since)}`;
    const message = `locked by another kubeletadm run (${holder.name}, pid ${holder.processId}${since})`;
    const hint = `Wait until that run has finished. If its process no longer exists, add --break-lock, or wait at most ${holder.secondsLeft} s until the lock expires`;
    super({ host, code: 'HOST_LOCKED', message, hint });
    this.holder = holder;
  }
}

/** The change to be confirmed or rolled back is not in the expected state. `record`: the actual state. */
export class CommitGoneError extends AppError {
  readonly record: CommitRecord | null;

  constructor(host: string, record: CommitRecord | null, what: string) {
    const hint = HINTS[record?.state ?? 'none'];
    super({ host, code: 'COMMIT_GONE', message: `${what}: ${describeCommit(record)}`, hint });
    this.record = record;
  }
}

const HINTS: Readonly<Partial<Record<CommitRecord['state'] | 'none', string>>> = {
  armed: 'To keep the pending change, run kubeletadm fleet confirm; to roll it back now, run kubeletadm fleet revert',
  reverting: 'Wait a moment, then rerun the command',
};

/** Describes a pending or rolled-back change; null: no change. */
export function describeCommit(record: CommitRecord | null): string {
  if (record === null) return 'no change is pending on the host';
  const change = describeChangeOf(record);
  switch (record.state) {
    case 'armed':
      return `the change pending on the host was ${madeBy(record)}; without a confirmation, the host rolls back this change at ${utc(revertsAt(record))}`;
    case 'reverting':
      return `${change} is being rolled back`;
    case 'reverted':
      return `${change} was rolled back${record.revertedAt === null ? '' : ` at ${utc(record.revertedAt)}`}: ${record.why ?? 'no reason was recorded'}${record.issue === null ? '' : `; ${record.issue}`}`;
  }
}

export function describeChangeOf(record: CommitRecord): string {
  return `the change ${madeBy(record)}`;
}

function madeBy({ owner, armedAt }: CommitRecord): string {
  return `made by ${owner || 'an unknown owner'} at ${utc(armedAt)}`;
}

function utc(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}

/** The host rolled back the change before it was confirmed. Never a success. */
export function commitReverted(host: string, record: CommitRecord): AppError {
  const hint = 'The previous files were restored. Fix the cause and rerun the command';
  return new AppError({ host, code: 'COMMIT_REVERTED', message: describeCommit(record), hint }, { exitCode: 5 });
}

/** systemd starts no more units: the host reverts the change at the next boot. */
export function hostShuttingDown(host: string, what: string): AppError {
  const hint = 'Wait until the host has booted, then rerun the command';
  return new AppError({ host, code: 'HOST_SHUTTING_DOWN', message: `${what}: the host is shutting down`, hint });
}

/** The connection was lost before the host had armed the revert, so nothing was changed. */
export function commitNotArmed(host: string, phase: string): AppError {
  const message = `${phase}: the run stopped before the change began; nothing was changed on the host`;
  return new AppError({ host, code: 'COMMIT_NOT_ARMED', message, hint: 'Rerun the command' });
}

/** The host is unreachable. @param isAsked the confirmation was sent, but the host did not respond */
export function commitUnknown(host: string, secondsLeft: number, isAsked: boolean): AppError {
  const rollback =
    secondsLeft > 0 ? `the host rolls back automatically in ${secondsLeft} s` : 'the host should already have rolled back automatically';
  const message = isAsked
    ? `the host became unreachable before it answered the confirmation. If the confirmation did not reach the host, ${rollback}`
    : `change not confirmed and host unreachable: ${rollback}`;
  const hint = 'When the host is reachable again, check its configuration: kubeletadm fleet drift';
  return new AppError({ host, code: 'COMMIT_UNCONFIRMED', message, hint });
}
