import type { ReportEvent, Reporter } from '../../base/reporter.ts';
import type { HostOutcome } from '../run/fleet.ts';

/** Reporters of hosts processed in parallel, which keep the output of each host together. */
interface HostBlocks {
  /** Output to this reporter is buffered until the host has ended. */
  of(host: string): Reporter;
  /** Prints the buffered output of a host. */
  ended(outcome: Pick<HostOutcome, 'host'>): void;
}

/**
 * Buffers the output of each host until it has ended; beyond a limit, output is printed at once. With several
 * hosts, warnings and errors are printed, and single changes and unchanged phases need `-v`.
 * @param applies whether hosts are changed; otherwise messages about single changes do not occur
 */
export function hostBlocks(reporter: Reporter, { applies }: { readonly applies: boolean }): HostBlocks {
  const kept = new Map<string, ReportEvent[]>();
  const flush = (host: string): void => {
    for (const event of kept.get(host) ?? []) reporter.report(event);
    kept.delete(host);
  };
  const isDetail = ({ code, level }: ReportEvent): boolean =>
    code === 'PHASE_NOOP' || (applies && level === 'info' && !SHOWN.includes(code));
  return {
    of: (host) => ({
      verbosity: reporter.verbosity,
      report: (event) => {
        const events = kept.get(host) ?? [];
        kept.set(host, events);
        events.push(isDetail(event) ? { ...event, verbosity: moreVerbose(event.verbosity) } : event);
        if (events.length >= MOST_EVENTS) flush(host);
      },
    }),
    ended: ({ host }) => flush(host),
  };
}

function moreVerbose(verbosity: ReportEvent['verbosity']): NonNullable<ReportEvent['verbosity']> {
  return verbosity === undefined || verbosity === 0 ? 1 : verbosity;
}

/** Messages about a change that are shown without `-v`. */
const SHOWN: readonly string[] = ['PLAN_DIFFERENCE', 'UNDO_CHANGE'];

/** Limit of buffered events per host. */
const MOST_EVENTS = 2_000;
