import type { Reporter } from '../base/reporter.ts';
import { hostBlocks } from '../fleet/imports/host-blocks.ts';
import type { FleetProgress, HostOutcome } from '../fleet/run/fleet.ts';
import { runSteps } from '../fleet/run/run-steps.ts';
import { hostsView } from './hosts-view.ts';
import { liveDisplay } from './live-display.ts';
import type { Services } from './output/services.ts';
import { progressLog } from './progress-log.ts';
import { type RunResults, runResults } from './run-results.ts';

/** Shows the progress of a run over hosts, and the result of each host. */
interface FollowedHosts {
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** A reporter that records the events of a host. @param own default: the reporter of the output of the host */
  of(host: string, own?: Reporter): Reporter;
  ended(outcome: HostOutcome): void;
  progress(progress: FleetProgress): void;
  /** Erases the display and prints the remaining results; may be called twice. */
  close(): void;
}

interface FollowHostsOptions {
  /** The command and its subject: `apply fleet.yaml`. */
  readonly title: string;
  readonly verbosity: number;
  /** Hosts are changed; otherwise the result of the command lists them. */
  readonly applies: boolean;
  /** Results are events: no line of text is printed. Default: false. */
  readonly asEvents?: boolean;
  /** A run on one host prints its phases instead of a result. Default: false. */
  readonly isSingle?: boolean;
}

/**
 * Follows a run over hosts. On a terminal a live display shows the hosts in progress; without a terminal the
 * progress is printed once a minute. The result of each host is one line, with its changes and unchanged phases
 * from `-v 1` on.
 */
export function followHosts(services: Services, reporter: Reporter, options: FollowHostsOptions): FollowedHosts {
  const { clock, output } = services;
  const { title, verbosity, applies, asEvents = false, isSingle = false } = options;
  const steps = runSteps(clock);
  const log = progressLog(services, reporter);
  const blocks = hostBlocks(reporter, { applies });
  const isText = !asEvents && !isSingle;
  const outcomes: HostOutcome[] = [];
  let last: FleetProgress | null = null;
  let results: RunResults | null = null;
  const display = liveDisplay(services, () => hostsView({ title, steps, progress: last, outcomes, now: clock.now().getTime() }));
  return {
    startedAt: steps.startedAt,
    of: (host, own) => steps.of(host, log.of(host, own ?? (isText ? blocks.of(host) : reporter))),
    ended: (outcome) => {
      steps.ended(outcome);
      outcomes.push(outcome);
      if (!isText) return;
      blocks.ended(outcome);
      if (!applies) return;
      const folds = output.status !== undefined && verbosity === 0;
      results ??= runResults(reporter, { total: last?.total ?? 1, folds, width: output.width?.() });
      results.ended(outcome, steps.host(outcome.host));
    },
    progress: (progress) => {
      last = progress;
      steps.progress(progress);
      log.progress(progress);
    },
    close: () => {
      log.close();
      display.close();
      results?.close();
    },
  };
}
