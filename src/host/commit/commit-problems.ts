import { AppError } from '../../base/errors.ts';
import type { CommitRecord, LockHolder } from './record.ts';
import { revertsAt } from './record.ts';

/** Somebody else works on the host. `holder` goes along, so that a run of one's own that has ended can be told from others. */
export class HostLockedError extends AppError {
  readonly holder: LockHolder;

  constructor(host: string, holder: LockHolder) {
    const since = holder.since === 0 ? '' : `, since ${utc(holder.since)}`;
    const message = `locked by another kubeletadm run (${holder.name}, pid ${holder.processId}${since})`;
    const hint = `Wait for it (the lock expires in at most ${holder.secondsLeft} s) or, if that process is gone, use --break-lock`;
    super({ host, code: 'HOST_LOCKED', message, hint });
    this.holder = holder;
  }
}

/** What was to be confirmed or taken back is not there as it should be. `record`: what is there. */
export class CommitGoneError extends AppError {
  readonly record: CommitRecord | null;

  constructor(host: string, record: CommitRecord | null, what: string) {
    const hint = HINTS[record?.state ?? 'none'];
    super({ host, code: 'COMMIT_GONE', message: `${what}: ${describeCommit(record)}`, ...(hint === undefined ? {} : { hint }) });
    this.record = record;
  }
}

const HINTS: Readonly<Partial<Record<CommitRecord['state'] | 'none', string>>> = {
  armed: 'kubeletadm fleet confirm keeps the change, kubeletadm fleet revert rolls the host back now',
  reverting: 'Wait a moment, then rerun the command',
};

/** A change that waits, or was taken back, in words; for null that there is none. */
export function describeCommit(record: CommitRecord | null): string {
  if (record === null) return 'no change is pending on the host';
  const change = describeChangeOf(record);
  switch (record.state) {
    case 'armed':
      return `${change} is not confirmed: the host rolls back at ${utc(revertsAt(record))}`;
    case 'reverting':
      return `${change} is being rolled back`;
    case 'reverted':
      return `${change} was rolled back${record.revertedAt === null ? '' : ` at ${utc(record.revertedAt)}`}: ${record.why ?? 'no reason was recorded'}${record.issue === null ? '' : `; ${record.issue}`}`;
  }
}

/** Whose change it is, and of when. */
export function describeChangeOf({ owner, armedAt }: CommitRecord): string {
  return `the change of ${owner || 'an unknown owner'} of ${utc(armedAt)}`;
}

/** Unix seconds as people write them. */
function utc(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}

/** The host took the change back before it was confirmed. Never a success. */
export function commitReverted(host: string, record: CommitRecord): AppError {
  const hint = 'The previous files were restored. Fix the cause and rerun the command';
  return new AppError({ host, code: 'COMMIT_REVERTED', message: describeCommit(record), hint }, { exitCode: 5 });
}

/** systemd starts nothing any more: the host reverts the change when it boots. */
export function hostShuttingDown(host: string, what: string): AppError {
  return new AppError({
    host,
    code: 'HOST_SHUTTING_DOWN',
    message: `${what}: the host is shutting down`,
    hint: 'Wait until it has booted',
  });
}

/** The connection broke before the host had armed the revert, without which nothing is changed. */
export function commitNotArmed(host: string, phase: string): AppError {
  return new AppError({
    host,
    code: 'COMMIT_NOT_ARMED',
    message: `${phase}: nothing was changed on the host`,
    hint: 'Rerun the command',
  });
}

/**
 * The change is not confirmed as far as we know, and the host can't be asked.
 * @param isAsked the host was asked to keep the change, and did not answer
 */
export function commitUnknown(host: string, secondsLeft: number, isAsked: boolean): AppError {
  const when = secondsLeft > 0 ? `in ${secondsLeft} s` : 'by now';
  const message = isAsked
    ? `the host did not answer the confirmation and is unreachable: the change may have been confirmed; otherwise the host rolls back automatically ${when}`
    : `change not confirmed and host unreachable: the host rolls back automatically ${when}`;
  return new AppError({
    host,
    code: 'COMMIT_UNCONFIRMED',
    message,
    hint: 'When the host is reachable again, check it with kubeletadm fleet drift',
  });
}
