/** The results of hosts and Nodes in a run, in the order in which they are counted. Text has spaces in place of `-`. */
const OUTCOMES = [
  /** Planned only: changes are pending. */
  'pending',
  'changed',
  /** Up to date. */
  'unchanged',
  /** Failed after changes had started; the previous configuration was restored. */
  'rolled-back',
  /** The previous configuration could not be restored. */
  'not-rolled-back',
  'failed',
  /** Refused, or failed before any change. */
  'refused',
  /** Not touched: it is in the maintenance of another program or operator, or about to be removed. */
  'skipped',
  /** No answer; no result is known. */
  'unreachable',
  /** Another operator changed it during the run. */
  'replaced',
  /** The command ended before the result was known. */
  'in-progress',
  /** Not started because the run was stopped. */
  'not-started',
  /** Not started because the user interrupted the run. */
  'interrupted',
] as const;

export type MemberOutcome = (typeof OUTCOMES)[number];

/** The name of an outcome in text. */
export function outcomeText(outcome: MemberOutcome): string {
  return outcome.replaceAll('-', ' ');
}

/** Number of members by outcome. */
export function countOutcomes(outcomes: readonly MemberOutcome[]): Readonly<Partial<Record<MemberOutcome, number>>> {
  const counts: Partial<Record<MemberOutcome, number>> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/**
 * `6 hosts: 4 changed, 1 unchanged, 1 unreachable`.
 * @param pending added to the number of members with pending changes
 */
export function outcomesText(outcomes: readonly MemberOutcome[], noun: 'host' | 'node', pending = ''): string {
  const counts = countOutcomes(outcomes);
  const parts = OUTCOMES.flatMap((outcome) =>
    counts[outcome] === undefined ? [] : [`${counts[outcome]} ${outcomeText(outcome)}${outcome === 'pending' ? pending : ''}`],
  );
  return `${outcomes.length} ${noun}${outcomes.length === 1 ? '' : 's'}: ${parts.join(', ')}`;
}
