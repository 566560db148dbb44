/** Result of a host or a Node in a run, with the same name in text (with spaces) and in JSON. */
export type MemberOutcome =
  /** Up to date. */
  | 'unchanged'
  /** Planned only: changes are pending. */
  | 'pending'
  | 'changed'
  /** Refused, or failed before any change. */
  | 'refused'
  | 'failed'
  /** Failed after changes had started; the previous configuration was restored. */
  | 'rolled-back'
  /** The previous configuration could not be restored. */
  | 'not-rolled-back'
  /** No answer; no result is known. */
  | 'unreachable'
  /** Another operator changed it during the run. */
  | 'replaced'
  /** Not started because the run was stopped. */
  | 'not-started'
  /** Not started because the user interrupted the run. */
  | 'interrupted';

/** The name of an outcome in text: that of JSON, with spaces. */
export function outcomeText(outcome: MemberOutcome | 'in-progress'): string {
  return outcome.replaceAll('-', ' ');
}
