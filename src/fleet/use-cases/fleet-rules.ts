import { type Amount, hostsOf } from '../amount.ts';
import type { FleetRules } from '../fleet.ts';

/** Limits as numbers or percentages of hosts. */
export interface RulesRequest {
  /** Processed at once. */
  readonly parallel: number;
  /** Changed first, before any other. */
  readonly canary: Amount;
  /** Changed at once; null: `parallel`. */
  readonly serial: Amount | null;
  /** May fail before the rest is skipped; null: the default limit. */
  readonly maxFail: Amount | null;
}

/** The rules of a run over a number of hosts. */
export function fleetRules(
  { parallel, canary, serial, maxFail }: RulesRequest,
  { total, dryRun }: { readonly total: number; readonly dryRun: boolean },
): FleetRules {
  return {
    parallel,
    maxOpen: Math.max(parallel, MOST_OPEN),
    // A limit is pointless for one host.
    canary: total === 1 ? 0 : hostsOf(canary, total),
    serial: serial === null ? parallel : Math.max(1, hostsOf(serial, total)),
    maxFail: maxFail === null ? null : hostsOf(maxFail, total),
    cautious: maxFail === null && !dryRun,
    dryRun,
  };
}

/** Maximum number of open connections, including those of queued hosts. */
const MOST_OPEN = 200;
