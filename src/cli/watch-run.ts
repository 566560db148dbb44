import { onAbort } from '../base/abort.ts';
import { formatProblem } from '../base/errors.ts';
import type { ReportEvent, Reporter } from '../base/reporter.ts';
import { replaceWord } from '../base/text/replace-word.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { hostBlocks } from '../fleet/imports/host-blocks.ts';
import type { FleetPorts, FleetProgress, FleetResult, HostOutcome } from '../fleet/run/fleet.ts';
import { problemsOf } from '../fleet/run/fleet-failure.ts';
import { type RunRecord, runRecorder } from '../fleet/run/run-timeline.ts';
import type { InterruptedRun } from '../fleet/use-cases/apply-fleet.ts';
import { countOutcomes } from '../maintenance/member-outcome.ts';
import { eventReporter } from './event-reporter.ts';
import { interruptedMessage, interruptionLog, watchForcedExit } from './fleet-interruption.ts';
import { summaryLine } from './fleet-report.ts';
import { hostsView } from './hosts-view.ts';
import { hostsText, withoutName } from './output/fold-problems.ts';
import { type LiveView, liveDisplay } from './output/live-view.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import { progressLog } from './progress-log.ts';
import { showRecap } from './recap.ts';
import { withoutNotify } from './report/report-words.ts';
import type { RunPage } from './report/run-page.ts';
import type { ShownRun } from './report/run-source.ts';
import { type RunResults, runResults } from './run-results.ts';

/** Observers of a run: the terminal, a reader of events, the journal. */
export interface RunWatch {
  readonly ports: FleetPorts;
  /** Shows the planned run on its page while the operator is asked. */
  showApproval(): void;
  /** Reporter of messages that concern no single host. */
  readonly reporter: Reporter;
  /** May be called twice. */
  close(): void;
  /**
   * Prints the end of a run that changed hosts: the recap, the number of hosts by result, the duration and how to
   * continue; in event mode the last event.
   */
  showEnd(result: FleetResult): void;
}

export interface RunWatchOptions {
  /** The command and its subject: `apply fleet.yaml`. */
  readonly title: string;
  /** Default: created from the output options. */
  readonly reporter?: Reporter;
  /** Results are events with `-o json`. */
  readonly events?: boolean;
  /** The run only inspects hosts. */
  readonly reads?: boolean;
  /** A run on one host prints its phases instead of a result, and reports its interruption itself. */
  readonly isSingle?: boolean;
  /** The hosts that are changed: their state is reported when a second interruption stops the run. */
  readonly interruption?: InterruptedRun | undefined;
  /** A page that shows the run; null: none. */
  readonly page?: (ShownRun & { readonly of: RunPage }) | null | undefined;
}

/**
 * Watches a run over hosts. On a terminal a live display shows the hosts in progress; without a terminal the progress is
 * printed once a minute. In text mode the result of each host is printed when the host is done, with its changes and
 * unchanged phases from `-v 1` on. In event mode each event is printed immediately, with its host.
 */
export function watchRun(
  services: Services,
  { format, verbosity }: OutputRequest,
  { title, reporter: given, events = false, reads = false, isSingle = false, interruption, page = null }: RunWatchOptions,
): RunWatch {
  const { clock, signal } = services;
  const asEvents = events && format === 'json';
  const record = runRecorder(clock);
  const shown = given ?? (asEvents ? eventReporter(services, verbosity) : services.reporter({ verbosity, format: 'text' }));
  const reporter = page === null ? shown : page.of.namingCluster(shown);
  const view = (): LiveView => hostsView(title, record, clock.now().getTime());
  page?.of.showRun(record, page, view);
  const warnings = sameWarnings(reporter);
  const display = hostDisplay(services, { record, view, reporter, verbosity, applies: !reads, isText: !asEvents && !isSingle });
  const reporterOf = (host: string): Reporter => (!asEvents && !isSingle ? warnings.of(display.of(host)) : display.of(host));
  let changing: readonly string[] = [];
  const forget = onAbort(isSingle ? undefined : signal, () => {
    reporter.report({ level: reads ? 'info' : 'warning', code: 'INTERRUPTED', message: interruptedMessage(changing, { reads }) });
  });
  const { hosts: names = null, retryCommand: retry = null } = interruption ?? {};
  const retryCommand = retry === null ? null : sameCommand(services, retry);
  const hosts = names === null ? null : interruptionLog(clock, names);
  const removeExitListener =
    hosts === null
      ? null
      : watchForcedExit(services, hosts, {
          next: retryCommand === null ? 'To continue, rerun the same command.' : `To continue: ${retryCommand}`,
          events: asEvents
            ? (message, lines) =>
                reporter.report({ level: 'error', code: 'RUN_ABORTED', message, data: { hosts: lines, retry: retryCommand } })
            : undefined,
        });
  return {
    reporter,
    showApproval: () => page?.of.showRun(record, { ...page, state: 'approval' }, view),
    ports: record.record({
      signal,
      reporterOf: (host) => (hosts === null ? reporterOf(host) : hosts.of(host, reporterOf(host))),
      begins: async (host) => {
        hosts?.began(host);
      },
      ended: async (outcome) => {
        hosts?.ended(outcome);
        display.ended(outcome);
        if (asEvents && !reads) reportEnd(reporter, outcome);
      },
      progress: (progress) => {
        changing = progress.changing;
        display.progress(progress);
      },
    }),
    close: () => {
      forget();
      removeExitListener?.();
      display.close();
      warnings.flush();
    },
    showEnd: ({ outcomes }) => {
      const data = { ...countOutcomes(outcomes.map(({ status }) => status)) };
      services.runEnded?.(data);
      const elapsedMs = clock.now().getTime() - record.startedAt.getTime();
      if (!asEvents) return showRecap(services, { outcomes, retryCommand, elapsedMs, gates: record.gates });
      reporter.report({ level: 'info', code: 'RUN_ENDED', message: summaryLine(outcomes), data });
    },
  };
}

/** The command of this process for the unfinished hosts, which must permit lost pods again. `fallback`: the command line is unknown. */
function sameCommand({ commandLine }: Pick<Services, 'commandLine'>, fallback: string): string {
  if (commandLine === undefined) return fallback;
  const retries = commandLine.some((word) => /^--retry(?:=|$)/.test(word));
  const words = withoutNotify(commandLine).filter((word) => !/^--allow-pod-loss(?:=|$)/.test(word));
  return ['kubeletadm', ...words.map(quoteShell), ...(retries ? [] : ['--retry failed'])].join(' ');
}

function reportEnd(reporter: Reporter, outcome: HostOutcome): void {
  const { host, status, error } = outcome;
  const problems = problemsOf([outcome]).map(formatProblem);
  const data = { status, ...(problems.length === 0 ? {} : { problems }) };
  reporter.report({ level: error === null ? 'info' : 'error', code: 'HOST_ENDED', host, message: status, data });
}

/**
 * Shows the progress of a run and the result of each host.
 * @param options.applies hosts are changed; otherwise the result of the command lists them
 * @param options.isText the results are lines of text
 */
function hostDisplay(
  services: Services,
  {
    record,
    view,
    reporter,
    verbosity,
    applies,
    isText,
  }: {
    readonly record: RunRecord;
    readonly view: () => LiveView;
    readonly reporter: Reporter;
    readonly verbosity: number;
    readonly applies: boolean;
    readonly isText: boolean;
  },
) {
  const { output } = services;
  const log = progressLog(services, reporter);
  const blocks = hostBlocks(reporter, { applies });
  let results: RunResults | null = null;
  const display = liveDisplay(services, view);
  return {
    of: (host: string): Reporter => log.of(host, isText ? blocks.of(host) : reporter),
    ended: (outcome: HostOutcome): void => {
      if (!isText) return;
      blocks.ended(outcome);
      if (!applies) return;
      const folds = output.status !== undefined && verbosity === 0;
      results ??= runResults(reporter, { total: record.progress()?.total ?? 1, folds });
      results.ended(outcome, record.steps.host(outcome.host));
    },
    progress: (progress: FleetProgress): void => {
      log.progress(progress);
    },
    /** Erases the display and prints the remaining results; may be called twice. */
    close: (): void => {
      log.close();
      display.close();
      results?.close();
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
        const shared = withoutName(message, host);
        const key = [phase, code, shared].join('\0');
        const same = kept.get(key) ?? { event: { ...event, message: shared }, hosts: [] };
        kept.set(key, same);
        same.hosts.push(host);
      },
    }),
    flush: (): void => {
      if (kept.size === 0) return;
      for (const { event, hosts } of kept.values()) {
        const [only = ''] = new Set(hosts);
        const isOne = hosts.every((host) => host === only);
        reporter.report(
          isOne ? { ...event, host: only, message: replaceWord(event.message, '<host>', only) } : { ...event, host: hostsText(hosts) },
        );
      }
      kept.clear();
    },
  };
}
