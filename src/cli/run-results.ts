import type { ReportEvent, Reporter } from '../base/reporter.ts';
import { namesText, sortedNames } from '../base/text/name-ranges.ts';
import { wrapText } from '../base/text/table.ts';
import { summarizeChanges } from '../fleet/plan/change-summary.ts';
import type { HostOutcome, HostStatus } from '../fleet/run/fleet.ts';
import type { HostSteps } from '../fleet/run/run-steps.ts';
import { outcomeText } from '../maintenance/member-outcome.ts';
import { reasonOf } from './fleet-report.ts';

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
  /** Width of the terminal: longer lines are broken at spaces; undefined: no terminal. */
  readonly width?: number | undefined;
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
  { total, folds, width, noun = 'hosts' }: RunResultsOptions & { readonly noun?: 'hosts' | 'nodes' },
): ResultLines {
  const kept = new Map<string, Group>();
  let lines = 0;
  const report = ({ level, code, text, hosts, durationsMs }: Group): void => {
    lines++;
    const host = namesText(sortedNames(hosts));
    const count = hosts.length === 1 ? '' : `(${hosts.length} ${noun}) `;
    const duration = durationsMs.length === 0 ? '' : ` (${durationText(durationsMs)})`;
    reporter.report({ level, code, host, message: wrapped(`${count}${text}${duration}`, host, width) });
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

/** Reporters indent the second and later lines of a message by this. */
const INDENTATION = 2;

/** Breaks a message at spaces: a terminal would break it in the middle of a word. */
function wrapped(message: string, host: string, width: number | undefined): string {
  if (width === undefined || host.length + 1 + message.length <= width) return message;
  const [first = '', ...rest] = wrapText(message, Math.max(width - 1 - Math.max(host.length, INDENTATION), LEAST_WIDTH));
  return [first, ...wrapText(rest.join(' '), Math.max(width - 1 - INDENTATION, LEAST_WIDTH))].join('\n');
}

const LEAST_WIDTH = 20;

/**
 * Reports one line for each host that was changed, is unchanged or failed: `node17 changed: updated
 * config.yaml, kubelet restarted, confirmed (4.1s)`. If results are folded, hosts with the same result share a
 * line, and failed hosts are left to the live display and the recap. Hosts that were not started are part of the
 * recap alone.
 */
export function runResults(reporter: Reporter, options: RunResultsOptions): RunResults {
  const lines = resultLines(reporter, options);
  return {
    ended: (outcome, steps) => {
      const { host, status } = outcome;
      const isReported = status === 'changed' || status === 'unchanged' || (FAILED.has(status) && !options.folds);
      if (!isReported) return;
      lines.add({
        level: FAILED.has(status) ? 'error' : 'info',
        code: CODES[status] ?? 'HOST_ENDED',
        host,
        text: resultText(outcome, steps),
        durationMs: status === 'unchanged' ? null : durationOf(steps),
      });
    },
    close: () => lines.close(),
  };
}

const CODES: Readonly<Partial<Record<HostStatus, string>>> = { changed: 'HOST_CHANGED', unchanged: 'HOST_UNCHANGED' };
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
  if (FAILED.has(status)) return `${outcomeText(status)}: ${reasonOf(outcome)}`;
  const isConfirmed = steps !== undefined && steps.confirmedAt !== null;
  const clauses = [...(plan === null ? [] : summarizeChanges(plan.host)), ...(isConfirmed ? ['confirmed'] : [])];
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
