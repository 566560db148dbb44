/** How fast changes go out, and what stops them. */
export interface RolloutRules {
  /** So many hosts are changed first, and must be well before any other is begun. */
  readonly canary: number;
  /** So many hosts at most are being changed at a time. */
  readonly serial: number;
  /** More failures than this stop the rest; null: nothing does. */
  readonly maxFail: number | null;
}

/** Hosts by what became of them so far. */
export interface RolloutState {
  /** Changed, and well. */
  readonly passed: number;
  /** Refused, failed or gone back. A host that nobody could reach is not among them: nothing was changed there. */
  readonly failed: number;
  /** Of those, hosts on which changes had begun. */
  readonly broken: number;
  readonly changing: number;
}

/** How many more hosts may be begun now. */
export function mayBegin(rules: RolloutRules, state: RolloutState): number {
  if (whyStop(rules, state) !== null) return 0;
  const most = state.passed < rules.canary ? Math.min(rules.canary - state.passed, rules.serial) : rules.serial;
  return Math.max(0, most - state.changing);
}

/** Why no other host is begun any more, as a clause; null: it goes on. */
export function whyStop({ canary, maxFail }: RolloutRules, { passed, failed, broken }: RolloutState): string | null {
  if (broken > 0 && passed < canary) return 'the first host to be changed failed';
  if (maxFail === null || failed <= maxFail) return null;
  return `${failed} ${failed === 1 ? 'host' : 'hosts'} failed, more than --max-fail allows`;
}
