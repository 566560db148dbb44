/** How fast changes go out, and what stops them. */
export interface RolloutRules {
  /** So many hosts are changed first, and must be well before any other is begun. */
  readonly canary: number;
  /** So many hosts at most are being changed at a time. */
  readonly serial: number;
  /** More failures than this stop the rest; null: no such limit. */
  readonly maxFail: number | null;
  /**
   * The rules where no other limit was given: hosts whose change failed stop the rest when they are more than one, or a tenth of the changed hosts, or ten; and after
   * a canary at most twice as many hosts as have passed, less those that failed, are being changed at a time, so that the limit takes effect before all hosts are changed. Default: false.
   */
  readonly cautious?: boolean;
}

const DEFAULT_FAIL_PERCENT = 10;
const DEFAULT_MAX_FAIL = 10;

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
  const isCanary = state.passed < rules.canary;
  const step = isCanary
    ? rules.canary - state.passed
    : rules.cautious === true && rules.canary > 0
      ? Math.max(1, 2 * state.passed - state.broken)
      : rules.serial;
  const most = Math.min(step, rules.serial);
  return Math.max(0, most - state.changing);
}

/** Why no other host is begun any more, as a clause; null: it goes on. */
export function whyStop({ canary, maxFail, cautious = false }: RolloutRules, { passed, failed, broken }: RolloutState): string | null {
  if (broken > 0 && passed < canary) return 'the first host to be changed failed';
  if (cautious && broken > defaultLimit(passed + broken))
    return `${broken} of ${passed + broken} changed hosts failed, more than the default limit (1, or ${DEFAULT_FAIL_PERCENT}% of the changed hosts, at most ${DEFAULT_MAX_FAIL}); --max-fail sets another limit`;
  if (maxFail === null || failed <= maxFail) return null;
  return `${failed} ${failed === 1 ? 'host' : 'hosts'} failed, more than --max-fail allows`;
}

/** How many of the hosts that were changed may have failed. */
function defaultLimit(changed: number): number {
  return Math.min(DEFAULT_MAX_FAIL, Math.max(1, Math.floor((changed * DEFAULT_FAIL_PERCENT) / 100)));
}
