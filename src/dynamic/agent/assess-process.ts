/** What shows which content a process has read: the file its command line names, and the times of both. */
export interface ProcessFacts {
  /** The files of the checkpoint hold what its name says. */
  readonly isWhole: boolean;
  /** When the last of them was written, in Unix seconds. */
  readonly changedAt: number;
  /** How long ago the process was started; null: not known. */
  readonly ageMs: number | null;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** File times have whole seconds; a file time further ahead than this is of a clock that was set back since. */
const CLOCK_SLACK_MS = 1_000;

/**
 * Whether a process whose command line names a checkpoint was started with the content of that name: a kubelet reads its configuration once, at its start.
 * @returns why that is not shown, as a clause; null: it is
 */
export function assessProcess({ isWhole, changedAt, ageMs, now }: ProcessFacts): string | null {
  if (!isWhole) return 'the configuration file of the kubelet was changed or removed';
  if (ageMs === null) return 'the start time of the kubelet is not known';
  const writtenAt = changedAt * 1000;
  if (writtenAt <= now - ageMs || writtenAt > now + CLOCK_SLACK_MS) return null;
  return 'the configuration file of the kubelet was written after the kubelet was started';
}
