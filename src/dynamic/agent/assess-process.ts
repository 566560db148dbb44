/** Evidence of the content that a process has read: the file on its command line, and the times of both. */
export interface ProcessFacts {
  /** The content of the checkpoint matches its name. */
  readonly isWhole: boolean;
  /** Time of the last write to its files, in Unix seconds. */
  readonly changedAt: number;
  /** Age of the process; null: unknown. */
  readonly ageMs: number | null;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** File times are rounded to seconds; a file time further in the future means that the clock was set back. */
const CLOCK_SLACK_MS = 1_000;

/**
 * Checks that a process was started with the content of the checkpoint on its command line: a kubelet reads
 * its configuration only at its start.
 * @returns the reason why that is not proven, as a clause; null: proven
 */
export function assessProcess({ isWhole, changedAt, ageMs, now }: ProcessFacts): string | null {
  if (!isWhole) return 'the configuration file of the kubelet was changed or removed';
  if (ageMs === null) return 'the start time of the kubelet is not known';
  const writtenAt = changedAt * 1000;
  if (writtenAt <= now - ageMs || writtenAt > now + CLOCK_SLACK_MS) return null;
  return 'the configuration file of the kubelet was written after the kubelet was started';
}
