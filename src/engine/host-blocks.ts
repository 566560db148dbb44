import type { ReportEvent, Reporter } from '../ports/reporter.ts';

/** Reporters of hosts that work at the same time: what one of them says stays together. */
export interface HostBlocks {
  /** What is said here is kept until the host is done. */
  of(host: string): Reporter;
  /** Says what was kept of a host. */
  flush(host: string): void;
}

/** Keeps what each host says until it is done; what is too much to keep goes on at once. */
export function hostBlocks(reporter: Reporter): HostBlocks {
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
        events.push(event);
        if (events.length >= MOST_EVENTS) flush(host);
      },
    }),
    flush,
  };
}

/** A host's memory here has an end, whatever it says. */
const MOST_EVENTS = 2_000;
