import { groupBy } from '../base/group-by.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderWrappedTable, truncate } from '../base/text/table.ts';
import { lineWidth } from '../base/text/wrap-line.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import { outcomeText } from '../maintenance/member-outcome.ts';
import { summaryLine } from './fleet-report.ts';
import { hostsText } from './output/fold-problems.ts';
import { formatSeconds } from './output/live-view.ts';
import type { Services } from './output/services.ts';
import { withStates } from './output/state-words.ts';

/** The end of a run. */
interface RecapInput {
  readonly outcomes: readonly HostOutcome[];
  /** The command that processes the unfinished hosts; null: the same command again. */
  readonly retryCommand: string | null;
  readonly elapsedMs: number;
}

/** The complete reasons follow as errors. */
const MAX_REASON = 60;
const MAX_HOSTS = 40;

/** A Node that needs an action. */
export interface RecapRow {
  readonly host: string;
  readonly result: string;
  readonly reason: string;
  readonly action: string;
}

/** The table as cells, below its header; hosts with equal rows share one. */
function foldRows(rows: readonly RecapRow[]): readonly (readonly string[])[] {
  const folded = new Map<string, { readonly hosts: string[]; readonly rest: readonly string[] }>();
  for (const { host, result, reason, action } of rows) {
    const rest = [result, truncate(reason, MAX_REASON), action];
    const same = folded.get(rest.join('\0'));
    if (same === undefined) folded.set(rest.join('\0'), { hosts: [host], rest });
    else same.hosts.push(host);
  }
  const cells = [...folded.values()].map(({ hosts, rest }) => [namesOf(hosts), ...rest]);
  return [['NODE', 'RESULT', 'REASON', 'ACTION'], ...cells];
}

function namesOf(hosts: readonly string[]): string {
  return hosts.length === 1 ? (hosts[0] ?? '') : `${truncate(namesText(hosts), MAX_HOSTS)} (${hosts.length})`;
}

/**
 * Prints the end of a run: the hosts that neither changed nor are up to date, by result (`refused: node[3:9] (7 hosts)`), the
 * number of hosts by result, and `took 7m31s; to continue: kubeletadm apply -f fleet.yaml --retry failed`. The reasons follow
 * as errors.
 */
export function showRecap({ output }: Pick<Services, 'output'>, { outcomes, retryCommand, elapsedMs }: RecapInput): void {
  const unfinished = outcomes.filter(({ status }) => status !== 'changed' && status !== 'unchanged' && status !== 'pending');
  const byStatus = groupBy(unfinished, ({ status }) => status);
  output.stderr(joinLines([...byStatus].map(([status, some]) => withStates(`${outcomeText(status)}: ${unfinishedText(some)}`, 1))));
  output.stdout(joinLines([withStates(summaryLine(outcomes))]));
  const next = unfinished.length > 0 && retryCommand !== null ? `; to continue: ${retryCommand}` : '';
  output.stderr(joinLines([`took ${formatSeconds(elapsedMs)}${next}`]));
}

/** The hosts; of a few, also the Nodes with other names. */
function unfinishedText(outcomes: readonly HostOutcome[]): string {
  const names = outcomes.map((outcome) => {
    const node = outcome.plan?.host.own?.node ?? outcome.node;
    return node === undefined || node === outcome.host ? outcome.host : `${outcome.host} (Node ${node})`;
  });
  return outcomes.length <= MOST_NAMED ? names.join(', ') : hostsText(outcomes.map(({ host }) => host));
}

const MOST_NAMED = 3;

/** Prints the table of a recap; nothing without rows. On a terminal, long cells are broken at spaces. */
export function showRecapTable({ output }: Pick<Services, 'output'>, rows: readonly RecapRow[]): void {
  if (rows.length === 0) return;
  const table = foldRows(rows);
  output.stderr(joinLines(renderWrappedTable(table, { width: lineWidth(output), flexible: 2 })));
}
