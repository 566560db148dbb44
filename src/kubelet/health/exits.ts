import type { UnitState } from '../../host/facts/unit.ts';

/** A unit, as far as it shows the exits of its process. */
type Unit = Pick<UnitState, 'activeState' | 'subState' | 'restarts'> | null;

/** The exits of a kubelet, from one observation of its unit to the next. Times are in milliseconds of any one clock. */
export interface Exits {
  /** systemd's counter of automatic restarts at the last observation, and the lowest one; null: not observed yet. */
  readonly restarts: number | null;
  readonly fewest: number | null;
  /** Times of the last exits, newest last. */
  readonly times: readonly number[];
  /** The last explained exits: in a row for the same cause; `at`: the counter when they were explained. */
  readonly equal: { readonly cause: string; readonly count: number; readonly sinceMs: number; readonly at: number } | null;
}

/** `unit active (running), 0 restarts`. @param unit null: not known */
export function describeUnit(unit: Unit): string {
  return unit === null ? 'unit state unknown' : `unit ${unit.activeState} (${unit.subState}), ${unit.restarts} restarts`;
}

/** Before the first observation. */
export const NO_EXITS: Exits = { restarts: null, fewest: null, times: [], equal: null };

/** More exits than any rule counts. */
const MOST_TIMES = 20;

/** Adds an observation. @param unit null: not known */
export function countExits(before: Exits, unit: Unit, now: number): Exits {
  if (unit === null) return before;
  const { restarts } = unit;
  const ended = Math.max(0, restarts - (before.restarts ?? restarts));
  // Times after `now` are of a clock that was set back.
  const earlier = before.times.filter((at) => at <= now);
  const times = [...earlier, ...Array.from({ length: Math.min(ended, MOST_TIMES) }, () => now)].slice(-MOST_TIMES);
  return { ...before, restarts, fewest: Math.min(before.fewest ?? restarts, restarts), times };
}

/**
 * Whether the kubelet has crashed, with the latest observation in its exits. systemd keeps its counter across a `systemctl restart`
 * of a unit that waits for its next start, so a high count alone proves nothing about the current process; a unit that waits has
 * failed at least once since.
 * @param rule `times`: number of exits, within `withinMs` (absent: since the counter was lowest); `waiting`: or a unit that waits
 *   for its next start with this counter (absent: no)
 */
export function isCrashing(
  { fewest, times }: Exits,
  unit: Unit,
  rule: { readonly times: number; readonly withinMs?: number; readonly waiting?: number },
  now: number,
): boolean {
  if (unit === null) return false;
  const { withinMs, waiting } = rule;
  const count = withinMs === undefined ? unit.restarts - (fewest ?? unit.restarts) : times.filter((at) => now - at < withinMs).length;
  const isWaiting = waiting !== undefined && unit.subState === 'auto-restart' && unit.restarts >= waiting;
  return unit.activeState === 'failed' || count >= rule.times || isWaiting;
}

/** Adds the cause of the exits since the last explained ones. */
export function explainExits(before: Exits, cause: string, now: number): Exits {
  const { fewest, equal } = before;
  const at = before.restarts ?? 0;
  const count = Math.max(1, at - Math.min(equal?.at ?? fewest ?? at, at));
  const text = comparable(cause);
  const isSame = equal?.cause === text;
  return { ...before, equal: { cause: text, count: isSame ? equal.count + count : count, sinceMs: isSame ? equal.sinceMs : now, at } };
}

/** Equal for the same reason: without the state of the unit, numbers, addresses and checksums, which differ between two runs. */
function comparable(cause: string): string {
  return cause.replace(/^unit \S{1,32} \(\S{1,32}\)|[0-9a-f]{8,64}|[0-9]{1,64}/g, '#');
}
