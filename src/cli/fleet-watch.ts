import { onAbort } from '../base/abort.ts';
import { formatProblem } from '../base/errors.ts';
import type { ReportEvent, Reporter } from '../base/reporter.ts';
import { namesText, sortedNames } from '../base/text/name-ranges.ts';
import type { FleetPorts } from '../fleet/run/fleet.ts';
import { problemsOf } from '../fleet/run/fleet-failure.ts';
import type { InterruptedRun } from '../fleet/use-cases/apply-fleet.ts';
import { eventReporter } from './event-reporter.ts';
import { interruptedMessage, interruptionLog, watchForcedExit } from './fleet-interruption.ts';
import { followHosts } from './follow-hosts.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';

/** Observers of a run: the terminal, a reader of events, the journal. */
interface FleetWatch {
  readonly ports: FleetPorts;
  /** Reporter of messages that concern no single host. */
  readonly reporter: Reporter;
  /** Results are events (`-o json` of a command that changes hosts): nothing else goes to standard output. */
  readonly asEvents: boolean;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** May be called twice. */
  close(): void;
}

/**
 * Watches a run over a fleet. In text mode the result of each host is printed when the host is done, and the
 * progress is shown as `followHosts` describes. In event mode each event is printed immediately, with its host.
 * @param title the command and its subject
 * @param interruption the state of the hosts, reported when a second interruption stops the run
 * @param reads the run only inspects hosts: a warning that many hosts share is printed once, at the end
 */
export function watchFleet(
  services: Services,
  { format, verbosity }: OutputRequest,
  {
    title,
    events = false,
    reads = false,
    interruption,
  }: {
    readonly title: string;
    readonly events?: boolean;
    readonly reads?: boolean;
    readonly interruption?: InterruptedRun | undefined;
  },
): FleetWatch {
  const { clock, signal } = services;
  const asEvents = events && format === 'json';
  const reporter = asEvents ? eventReporter(services, verbosity) : services.reporter({ verbosity, format: 'text' });
  const warnings = sameWarnings(reporter);
  const follows = followHosts(services, reporter, { title, verbosity, applies: !reads, asEvents });
  const reporterOf = (host: string): Reporter => (reads && !asEvents ? warnings.of(follows.of(host)) : follows.of(host));
  let changing: readonly string[] = [];
  const forget = onAbort(signal, () => {
    reporter.report({ level: 'warning', code: 'INTERRUPTED', message: interruptedMessage(changing) });
  });
  const hosts = interruption === undefined ? null : interruptionLog(clock, interruption.hosts);
  const removeExitListener =
    hosts === null || interruption === undefined
      ? null
      : watchForcedExit(services, hosts, {
          next: `To continue: ${interruption.retryCommand} (add the other options of this run)`,
          events: asEvents
            ? (message, lines) =>
                reporter.report({ level: 'error', code: 'RUN_ABORTED', message, data: { hosts: lines, retry: interruption.retryCommand } })
            : undefined,
        });
  return {
    reporter,
    asEvents,
    startedAt: follows.startedAt,
    ports: {
      signal,
      reporterOf: (host) => (hosts === null ? reporterOf(host) : hosts.of(host, reporterOf(host))),
      begins: async (host) => {
        hosts?.began(host);
      },
      ended: async (outcome) => {
        const { host, status } = outcome;
        hosts?.ended(outcome);
        follows.ended(outcome);
        const problems = problemsOf([outcome]).map(formatProblem);
        const data = { status, ...(problems.length === 0 ? {} : { problems }) };
        if (asEvents && !reads)
          reporter.report({ level: outcome.error === null ? 'info' : 'error', code: 'HOST_ENDED', host, message: status, data });
      },
      progress: (progress) => {
        changing = progress.changing;
        follows.progress(progress);
      },
    },
    close: () => {
      forget();
      removeExitListener?.();
      follows.close();
      warnings.flush();
    },
  };
}

/** Holds back warnings of hosts until all hosts are done, to group equal ones. */
function sameWarnings(reporter: Reporter) {
  const kept = new Map<string, { readonly event: ReportEvent; readonly hosts: string[] }>();
  return {
    of: (own: Reporter): Reporter => ({
      ...own,
      report: (event) => {
        const { host, level, phase = '', code, message } = event;
        if (level !== 'warning' || host === undefined) return own.report(event);
        const key = [phase, code, message].join('\0');
        const same = kept.get(key) ?? { event, hosts: [] };
        kept.set(key, same);
        same.hosts.push(host);
      },
    }),
    flush: (): void => {
      if (kept.size === 0) return;
      for (const { event, hosts } of kept.values()) reporter.report({ ...event, host: namesText(sortedNames(hosts)) });
      kept.clear();
    },
  };
}
