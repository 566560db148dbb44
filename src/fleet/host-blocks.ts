import type { ReportEvent, Reporter } from '../base/reporter.ts';
import type { HostOutcome } from './fleet.ts';

/** Reporters of hosts processed in parallel, which keep the output of each host together. */
export interface HostBlocks {
  /** Output to this reporter is buffered until the host has ended. */
  of(host: string): Reporter;
  /** Prints the buffered output of a host, or one line if the host is unchanged. */
  ended(outcome: HostOutcome): void;
}

/**
 * Buffers the output of each host until it has ended; beyond a limit, output is printed at once. With several
 * hosts, messages about unchanged phases need `-v`.
 * @param applies whether hosts are changed; otherwise the plan lists their changes
 */
export function hostBlocks(reporter: Reporter, { applies }: { readonly applies: boolean }): HostBlocks {
  const kept = new Map<string, ReportEvent[]>();
  const flush = (host: string): void => {
    for (const event of kept.get(host) ?? []) reporter.report(event);
    kept.delete(host);
  };
  return {
    of: (host) => ({
      ...(reporter.verbosity === undefined ? {} : { verbosity: reporter.verbosity }),
      report: (event) => {
        const events = kept.get(host) ?? [];
        kept.set(host, events);
        events.push(event.code === 'PHASE_NOOP' ? { ...event, verbosity: 1 } : event);
        if (events.length >= MOST_EVENTS) flush(host);
      },
    }),
    ended: (outcome) => {
      const { host } = outcome;
      flush(host);
      if (applies && neededNothing(outcome)) reporter.report({ level: 'info', code: 'HOST_UNCHANGED', host, message: 'up to date' });
    },
  };
}

/** Whether a host has no changes and waits for nothing. */
function neededNothing({ status, plan }: HostOutcome): boolean {
  return status === 'unchanged' && plan !== null && plan.host.phases.every((phase) => phase.plan.deferred === undefined);
}

/** Limit of buffered events per host. */
const MOST_EVENTS = 2_000;
