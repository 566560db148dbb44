import type { ReportEvent, Reporter } from '../base/reporter.ts';
import type { HostOutcome } from './fleet.ts';

/** Reporters of hosts that work at the same time: what one of them says stays together. */
export interface HostBlocks {
  /** What is said here is kept until the host is done. */
  of(host: string): Reporter;
  /** Says what was kept of a host, and in one line that it needed nothing. */
  ended(outcome: HostOutcome): void;
}

/**
 * Keeps what each host says until it is done; what is too much to keep goes on at once. Of many hosts the changes are what counts: that a phase has nothing to do is
 * told with `-v`.
 * @param applies whether hosts are changed; where they are only looked at the plan says what they need
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
      if (applies && neededNothing(outcome)) reporter.report({ level: 'info', code: 'HOST_UNCHANGED', host, message: 'nothing to do' });
    },
  };
}

/** And waits for nothing. */
function neededNothing({ status, plan }: HostOutcome): boolean {
  return status === 'unchanged' && plan !== null && plan.host.phases.every((phase) => phase.plan.deferred === undefined);
}

/** A host's memory here has an end, whatever it says. */
const MOST_EVENTS = 2_000;
