import type { ReportEvent, Reporter } from '../base/reporter.ts';
import { namesText, sortedNames } from '../base/text/name-ranges.ts';
import { summarizeChanges } from '../fleet/plan/change-summary.ts';
import type { HostOutcome, HostStatus } from '../fleet/run/fleet.ts';
import type { HostSteps } from '../fleet/run/run-steps.ts';

/** Prints the results of the hosts of a run as they end. */
export interface RunResults {
  ended(outcome: HostOutcome, steps: HostSteps | undefined): void;
  /** Prints the results that were kept to group equal ones. */
  close(): void;
}

interface RunResultsOptions {
  readonly total: number;
  /** Equal results share a line; otherwise each host has a line as soon as it has ended. */
  readonly folds: boolean;
}

/** The results of a larger run are printed in about this number of groups, and of no fewer hosts than the next number. */
const GROUPS = 20;
const LEAST_GROUP = 10;
/** Changed hosts with different results beyond this number of lines are only counted. */
const MOST_LINES = 40;

/** The result of a host or a node. */
export interface Result extends Pick<ReportEvent, 'level' | 'code'> {
  readonly host: string;
  readonly text: string;
  /** Null: not shown. */
  readonly durationMs: number | null;
}

/** Hosts with the same result. */
interface Group extends Omit<Result, 'host' | 'durationMs'> {
  readonly hosts: string[];
  readonly durationsMs: number[];
}

/** Prints results, with equal ones on one line: `node[3:9] (7 hosts) changed: config.yaml maxPods 70 → 72 (4.1s)`. */
export interface ResultLines {
  add(result: Result): void;
  /** Prints the results that were kept to group equal ones; may be called twice. */
  close(): void;
}

/** @param options.noun plural of the results' subjects */
export function resultLines(
  reporter: Reporter,
  { total, folds, noun = 'hosts' }: RunResultsOptions & { readonly noun?: 'hosts' | 'nodes' },
): ResultLines {
  const kept = new Map<string, Group>();
  let lines = 0;
  const report = ({ level, code, text, hosts, durationsMs }: Group): void => {
    lines++;
    const host = namesText(sortedNames(hosts));
    const count = hosts.length === 1 ? '' : `(${hosts.length} ${noun}) `;
    const duration = durationsMs.length === 0 ? '' : ` (${durationText(durationsMs)})`;
    reporter.report({ level, code, host, message: `${count}${text}${duration}` });
  };
  const print = (isLast: boolean): void => {
    const groups = [...kept.values()];
    const room = folds ? Math.max(0, MOST_LINES - lines) : groups.length;
    if (groups.length > room && !isLast) return;
    for (const group of groups.slice(0, room)) report(group);
    if (groups.length > room) report(counted(groups.slice(room)));
    kept.clear();
  };
  return {
    add: ({ level, code, host, text, durationMs }) => {
      const key = `${code}\0${level}\0${text}`;
      const group = kept.get(key) ?? { level, code, text, hosts: [], durationsMs: [] };
      group.hosts.push(host);
      if (durationMs !== null) group.durationsMs.push(durationMs);
      kept.set(key, group);
      const waiting = [...kept.values()].reduce((sum, { hosts }) => sum + hosts.length, 0);
      if (!folds || total <= GROUPS || waiting >= Math.max(LEAST_GROUP, total / GROUPS)) print(false);
    },
    close: () => print(true),
  };
}

/**
 * Reports one line for each host that was changed or is unchanged: `node17 changed: updated
 * config.yaml, kubelet restarted, confirmed (4.1s)`. If results are folded, hosts with the same result share a
 * line. Failed hosts and hosts that were not started are left to the live display, the recap and the errors.
 */
export function runResults(reporter: Reporter, options: RunResultsOptions): RunResults {
  const lines = resultLines(reporter, options);
  return {
    ended: (outcome, steps) => {
      const { host, status } = outcome;
      if (status !== 'changed' && status !== 'unchanged') return;
      lines.add({
        level: 'info',
        code: status === 'changed' ? 'HOST_CHANGED' : 'HOST_UNCHANGED',
        host,
        text: resultText(outcome, steps),
        durationMs: status === 'unchanged' ? null : durationOf(steps),
      });
    },
    close: () => lines.close(),
  };
}

/** Results of hosts that were started and have not succeeded. */
export const FAILED: ReadonlySet<HostStatus> = new Set(['failed', 'rolled-back', 'refused', 'unreachable']);

function counted(groups: readonly Group[]): Group {
  const hosts = groups.flatMap((group) => group.hosts);
  const text = 'changed in other ways; -v 1 prints the changes of each host';
  return { level: 'info', code: 'HOST_CHANGED', text, hosts, durationsMs: groups.flatMap(({ durationsMs }) => durationsMs) };
}

function resultText(outcome: HostOutcome, steps: HostSteps | undefined): string {
  const { status, plan } = outcome;
  if (status === 'unchanged') {
    const deferred = plan === null ? [] : summarizeChanges(plan.host);
    return deferred.length === 0 ? 'up to date' : `unchanged: ${deferred.join(', ')}`;
  }
  const isConfirmed = steps !== undefined && steps.confirmedAt !== null;
  // Without the name of the Node, equal results share a line.
  const joined = plan?.host.phases.find(({ phase }) => phase === 'kubelet-wait-bootstrap/node')?.plan.noop?.replace(/Node \S+/, 'Node');
  const clauses = [
    ...(plan === null ? [] : summarizeChanges(plan.host)),
    ...(isConfirmed ? ['confirmed'] : []),
    ...(joined === undefined ? [] : [joined]),
  ];
  return clauses.length === 0 ? 'changed' : `changed: ${clauses.join(', ')}`;
}

function durationOf(steps: HostSteps | undefined): number | null {
  const first = steps?.steps.find(({ name }) => name !== 'inspect' && name !== 'queued') ?? steps?.steps[0];
  return first === undefined || steps?.endedAt == null ? null : steps.endedAt - first.startedAt;
}

/** `4.1s`, or `3.8s to 4.4s` of several hosts. */
function durationText(durationsMs: readonly number[]): string {
  const [least, most] = [Math.min(...durationsMs), Math.max(...durationsMs)].map((ms) => `${(ms / 1000).toFixed(1)}s`);
  return least === most ? `${least}` : `${least} to ${most}`;
}
