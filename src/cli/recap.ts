import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import { cut, renderTable } from '../base/text/table.ts';
import type { HostOutcome, HostStatus } from '../fleet/fleet.ts';
import { reasonOf } from './fleet-report.ts';
import { formatSeconds } from './live-view.ts';
import { FAILURE_WORDS } from './run-results.ts';
import type { Services } from './services.ts';

/** The end of a run. */
export interface RecapInput {
  readonly outcomes: readonly HostOutcome[];
  /** Reason why hosts were not started, as a clause; null: none, or unknown. */
  readonly stopped: string | null;
  /** The command that processes the unfinished hosts; null: the same command again. */
  readonly retryCommand: string | null;
  readonly elapsedMs: number;
}

const WORDS: Readonly<Partial<Record<HostStatus, string>>> = { ...FAILURE_WORDS, stopped: 'not started', interrupted: 'not started' };
/** The complete reasons follow as errors. */
const MAX_REASON = 60;
const MAX_HOSTS = 40;

/**
 * The rows of the recap: the hosts that neither changed nor are up to date, with the result, the reason and the
 * next action. Hosts with equal rows share one.
 */
export function recapRows({ outcomes, stopped, retryCommand }: RecapInput): readonly (readonly string[])[] {
  const rows = new Map<string, { readonly hosts: string[]; readonly rest: readonly string[] }>();
  for (const outcome of outcomes) {
    const { host, status, error } = outcome;
    const word = WORDS[status];
    if (word === undefined) continue;
    const reason = status === 'stopped' ? (stopped ?? 'the run was stopped') : reasonOf(outcome);
    const action = error?.problems.find(({ hint }) => hint !== undefined)?.hint ?? retryText(retryCommand);
    const rest = [word, cut(reason, MAX_REASON), action];
    const same = rows.get(rest.join('\0'));
    if (same === undefined) rows.set(rest.join('\0'), { hosts: [host], rest });
    else same.hosts.push(host);
  }
  return [...rows.values()].map(({ hosts, rest }) => [namesOf(hosts), ...rest]);
}

function retryText(command: string | null): string {
  return command === null ? 'Rerun the command' : `Run ${command}`;
}

function namesOf(hosts: readonly string[]): string {
  return hosts.length === 1 ? (hosts[0] ?? '') : `${cut(namesText(hosts), MAX_HOSTS)} (${hosts.length})`;
}

/**
 * Prints the recap of a run before its result: a table of the hosts that need an action. After it, print the
 * counts and `showDuration`.
 */
export function showRecap({ output }: Pick<Services, 'output'>, input: RecapInput): void {
  const rows = recapRows(input);
  if (rows.length > 0) output.stderr(joinLines(renderTable([['HOST', 'RESULT', 'REASON', 'ACTION'], ...rows])));
}

/** `took 7m31s; to continue: kubeletadm apply -f fleet.yaml --retry failed`. */
export function showDuration({ output }: Pick<Services, 'output'>, input: RecapInput): void {
  const isUnfinished = recapRows(input).length > 0;
  const next = isUnfinished && input.retryCommand !== null ? `; to continue: ${input.retryCommand} with the other options of this run` : '';
  output.stderr(joinLines([`took ${formatSeconds(input.elapsedMs)}${next}`]));
}
