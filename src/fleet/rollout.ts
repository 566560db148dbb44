import type { Problem } from '../base/errors.ts';

/** Limits on how fast changes are rolled out, and when a rollout stops. */
export interface RolloutRules {
  /** Number of hosts that are changed first; others start only after these succeeded. */
  readonly canary: number;
  /** Names of the hosts in the order in which they are canaries, also before earlier stages. Absent: the order of the run, by stage. */
  readonly canaryOrder?: readonly string[];
  /** Maximum number of hosts changed at the same time. */
  readonly serial: number;
  /** Maximum number of failures before the rest is stopped; null: no limit. */
  readonly maxFail: number | null;
  /**
   * Default limits: failed changes stop the rest if they exceed one, a tenth of the changed hosts, or ten.
   * After a canary the number of hosts changed at the same time is at most twice the number of successful
   * minus failed hosts, so that the limit takes effect before all hosts are changed. Default: false.
   */
  readonly cautious?: boolean;
}

const DEFAULT_FAIL_PERCENT = 10;
const DEFAULT_MAX_FAIL = 10;

/** Number of hosts by result. */
export interface RolloutState {
  /** Changed and healthy. */
  readonly passed: number;
  /** Refused, failed or rolled back. Unreachable hosts are excluded, because they were not changed. */
  readonly failed: number;
  /** Failed hosts on which changes had started. */
  readonly broken: number;
  readonly changing: number;
}

/** Number of further hosts that may start now. */
export function maxHostsToStart(rules: RolloutRules, state: RolloutState): number {
  if (rolloutStopReason(rules, state) !== null) return 0;
  const isCanary = state.passed < rules.canary;
  const step = isCanary
    ? rules.canary - state.passed
    : rules.cautious === true && rules.canary > 0
      ? Math.max(1, 2 * state.passed - state.broken)
      : rules.serial;
  const most = Math.min(step, rules.serial);
  return Math.max(0, most - state.changing);
}

/** Reason to start no further host, as a clause; null: continue. */
export function rolloutStopReason(
  { canary, maxFail, cautious = false }: RolloutRules,
  { passed, failed, broken }: RolloutState,
): string | null {
  if (broken > 0 && passed < canary) return 'the first host to be changed failed';
  if (cautious && broken > defaultLimit(passed + broken))
    return `${broken} of ${passed + broken} changed hosts failed, more than the default limit of ${defaultLimit(passed + broken)} (${DEFAULT_FAIL_PERCENT}% of the changed hosts, from 1 to ${DEFAULT_MAX_FAIL})`;
  if (maxFail === null || failed <= maxFail) return null;
  return `${failed} ${failed === 1 ? 'host' : 'hosts'} failed, more than --max-fail allows`;
}

/** Maximum number of failed hosts among the changed ones. */
function defaultLimit(changed: number): number {
  return Math.min(DEFAULT_MAX_FAIL, Math.max(1, Math.floor((changed * DEFAULT_FAIL_PERCENT) / 100)));
}

/** Indexes of the members in the order in which they are canaries. */
export function canaryIndexes(
  members: readonly { readonly name: string }[],
  { canaryOrder = [] }: Pick<RolloutRules, 'canaryOrder'>,
): readonly number[] {
  const ranks = new Map(canaryOrder.map((name, rank) => [name, rank]));
  const rankOf = (index: number): number => ranks.get(members[index]?.name ?? '') ?? members.length;
  return [...members.keys()].sort((a, b) => rankOf(a) - rankOf(b) || a - b);
}

const NO_ROUTE = /^HOST_(UNREACHABLE|TIMEOUT|CONNECTION_LOST|AUTH_FAILED|KEY_[A-Z]+)$/;

/** Whether a host failed before it was reached. */
export function isUnreachable({ code }: Pick<Problem, 'code'>): boolean {
  return NO_ROUTE.test(code);
}
