import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderWrappedTable, truncate } from '../base/text/table.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import { outcomeText } from '../maintenance/member-outcome.ts';
import { reasonOf, summaryLine } from './fleet-report.ts';
import { formatSeconds } from './live-view.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';

/** The end of a run. */
interface RecapInput {
  readonly outcomes: readonly HostOutcome[];
  /** Reason why hosts were not started, as a clause; null: none, or unknown. */
  readonly stopped: string | null;
  /** The command that processes the unfinished hosts; null: the same command again. */
  readonly retryCommand: string | null;
  readonly elapsedMs: number;
}

/** The complete reasons follow as errors. */
const MAX_REASON = 60;
const MAX_HOSTS = 40;

/** A host or node that needs an action. */
export interface RecapRow {
  readonly host: string;
  /** Absent: unknown, or the row is that of a Node. */
  readonly node?: string | undefined;
  readonly result: string;
  readonly reason: string;
  readonly action: string;
}

/** The rows of the recap: the hosts that neither changed nor are up to date. */
function hostRows({ outcomes, stopped, retryCommand }: RecapInput): readonly RecapRow[] {
  return outcomes.flatMap((outcome) => {
    const { host, status, error } = outcome;
    if (status === 'changed' || status === 'unchanged' || status === 'pending') return [];
    const reason = status === 'not-started' ? (stopped ?? 'the run was stopped') : reasonOf(outcome);
    const action = error?.problems.find(({ hint }) => hint !== undefined)?.hint ?? retryText(retryCommand);
    return [{ host, node: outcome.plan?.host.own?.node ?? outcome.node, result: outcomeText(status), reason, action }];
  });
}

/** The table as cells, below its header; hosts with equal rows share one. */
function foldRows(rows: readonly RecapRow[], subject: 'HOST' | 'NODE'): readonly (readonly string[])[] {
  const node = nodeColumn(rows);
  const folded = new Map<string, { readonly hosts: string[]; readonly rest: readonly string[] }>();
  for (const { host, result, reason, action } of rows) {
    const rest = [result, truncate(reason, MAX_REASON), action];
    const same = folded.get(rest.join('\0'));
    if (same === undefined) folded.set(rest.join('\0'), { hosts: [host], rest });
    else same.hosts.push(host);
  }
  const cells = [...folded.values()].map(({ hosts, rest }) => [namesOf(hosts), ...node.cells(...hosts), ...rest]);
  return [[subject, ...node.header, 'RESULT', 'REASON', 'ACTION'], ...cells];
}

/** The cells of the recap of hosts. */
export function recapRows(input: RecapInput): readonly (readonly string[])[] {
  return foldRows(hostRows(input), 'HOST').slice(1);
}

function retryText(command: string | null): string {
  return command === null ? 'Rerun the command' : `Run ${command}`;
}

function namesOf(hosts: readonly string[]): string {
  return hosts.length === 1 ? (hosts[0] ?? '') : `${truncate(namesText(hosts), MAX_HOSTS)} (${hosts.length})`;
}

/**
 * Prints the end of a run: a table of the hosts that need an action, the number of hosts by result, and
 * `took 7m31s; to continue: kubeletadm apply -f fleet.yaml --retry failed`.
 */
export function showRecap({ output }: Pick<Services, 'output'>, input: RecapInput): void {
  const rows = hostRows(input);
  showRecapTable({ output }, rows, 'HOST');
  output.stdout(`${summaryLine(input.outcomes)}\n`);
  const isUnfinished = rows.length > 0 && input.retryCommand !== null;
  const next = isUnfinished ? `; to continue: ${input.retryCommand} (add the other options of this run)` : '';
  output.stderr(joinLines([`took ${formatSeconds(input.elapsedMs)}${next}`]));
}

/** Prints the table of a recap; nothing without rows. On a terminal, long cells are broken at spaces. */
export function showRecapTable({ output }: Pick<Services, 'output'>, rows: readonly RecapRow[], subject: 'HOST' | 'NODE'): void {
  if (rows.length === 0) return;
  const table = foldRows(rows, subject);
  output.stderr(joinLines(renderWrappedTable(table, { width: output.width === undefined ? undefined : output.width() - 1, flexible: 2 })));
}
