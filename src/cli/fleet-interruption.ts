import type { Clock } from '../base/clock.ts';
import type { ReportEvent, Reporter } from '../base/reporter.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import { reasonOf } from './fleet-report.ts';
import type { Services } from './output/services.ts';

/** Follows a run that changes hosts, to report the state of each host when the run ends at once. */
export interface InterruptionLog {
  /** A reporter for a host that records the host's events. */
  of(host: string, reporter: Reporter): Reporter;
  began(host: string): void;
  ended(outcome: HostOutcome): void;
  /** The known state of the hosts: one line for each state, without hosts that need no action. */
  lines(): readonly string[];
}

/**
 * Prints the state of each host when a second interruption stops the run immediately.
 * @param options.next how to continue, in one line
 * @param options.events receives the same as an event, in place of standard error
 * @returns removes the listener
 */
export function watchForcedExit(
  { onForcedExit, output }: Pick<Services, 'onForcedExit' | 'output'>,
  hosts: InterruptionLog,
  { next, events }: { readonly next: string; readonly events?: ((message: string, lines: readonly string[]) => void) | undefined },
): () => void {
  const forget = onForcedExit?.(() => {
    output.status?.(null);
    const message = 'Interrupted again: the run stopped immediately.';
    if (events !== undefined) events(message, hosts.lines());
    else output.stderr(joinLines([message, ...hosts.lines().map((line) => `  ${line}`), next]));
  });
  return () => forget?.();
}

/**
 * What an interrupted run still does.
 * @param changing the hosts whose changes the run finishes
 * @param options.reads the run changes no host
 */
export function interruptedMessage(changing: readonly string[], { reads }: { readonly reads: boolean }): string {
  if (reads) return 'stopping, nothing was changed; interrupt again to exit immediately';
  const hosts =
    changing.length === 0 ? 'stopping, because no host is being changed' : `finishing the changes in progress on ${namesText(changing)}`;
  return `${hosts}; interrupt again to exit immediately`;
}

/** Progress of the change of a host, derived from its events. */
type Progress = { readonly state: 'begun' | 'confirmed' | 'rolling back' } | { readonly state: 'unconfirmed'; readonly revertsAt: Date };

/**
 * Records the progress of a run that changes hosts.
 * @param hosts all hosts of the run, in its order
 */
export function interruptionLog({ now }: Pick<Clock, 'now'>, hosts: readonly string[]): InterruptionLog {
  const progress = new Map<string, Progress>();
  const outcomes = new Map<string, HostOutcome>();
  const handle = (host: string, { code, data }: ReportEvent): void => {
    if (code === 'REVERT_ARMED' && typeof data?.timeoutSeconds === 'number')
      progress.set(host, { state: 'unconfirmed', revertsAt: new Date(now().getTime() + data.timeoutSeconds * 1000) });
    if (code === 'COMMIT_CONFIRMED') progress.set(host, { state: 'confirmed' });
    if (code === 'ROLLBACK_STARTED') progress.set(host, { state: 'rolling back' });
  };
  const inProgress = (state: Progress['state']): readonly string[] =>
    hosts.filter((host) => !outcomes.has(host) && progress.get(host)?.state === state);
  const endedAs = (...statuses: readonly HostOutcome['status'][]): readonly HostOutcome[] =>
    hosts.flatMap((host) => {
      const outcome = outcomes.get(host);
      return outcome !== undefined && statuses.includes(outcome.status) ? [outcome] : [];
    });
  const describeUnconfirmed = (host: string): string => {
    const one = progress.get(host);
    const time = one?.state === 'unconfirmed' ? `${one.revertsAt.toISOString().slice(0, 19)}Z` : 'an unknown time';
    return `${host} (rolls back automatically at about ${time} unless confirmed)`;
  };
  const describeFailed = (outcome: HostOutcome): string => `${outcome.host} (${reasonOf(outcome)})`;
  return {
    of: (host, own) => ({
      ...own,
      report: (event) => {
        handle(host, event);
        own.report(event);
      },
    }),
    began: (host) => {
      if (!progress.has(host)) progress.set(host, { state: 'begun' });
    },
    ended: (outcome) => {
      outcomes.set(outcome.host, outcome);
    },
    lines: () => {
      const states: readonly (readonly [string, readonly string[]])[] = [
        ['changed', listed(endedAs('changed').map(({ host }) => host))],
        ['not confirmed', inProgress('unconfirmed').map(describeUnconfirmed)],
        ['in progress, the kubelet change is confirmed', listed(inProgress('confirmed'))],
        ['in progress, may be partly changed', listed(inProgress('begun'))],
        ['rolling back', listed(inProgress('rolling back'))],
        ['rolled back', endedAs('rolled-back').map(describeFailed)],
        ['failed', endedAs('failed', 'refused').map(describeFailed)],
        ['unreachable', endedAs('unreachable').map(describeFailed)],
        ['not started', listed(hosts.filter((host) => isNotStarted(outcomes.get(host), progress.has(host))))],
      ];
      return states.flatMap(([state, entries]) => (entries.length === 0 ? [] : [`${state}: ${entries.join(', ')}`]));
    },
  };
}

function listed(hosts: readonly string[]): readonly string[] {
  return hosts.length === 0 ? [] : [namesText(hosts)];
}

function isNotStarted(outcome: HostOutcome | undefined, started: boolean): boolean {
  return outcome === undefined ? !started : outcome.status === 'not-started' || outcome.status === 'interrupted';
}
