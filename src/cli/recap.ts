import { isAppError } from '../base/errors.ts';
import { groupBy } from '../base/group-by.ts';
import { joinLines } from '../base/text/styled.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import type { GateRecord } from '../maintenance/gates/batch-gates.ts';
import { type MemberOutcome, outcomeText } from '../maintenance/member-outcome.ts';
import { summaryLine } from './fleet-report.ts';
import { hostsText } from './output/fold-problems.ts';
import { formatSeconds } from './output/live-view.ts';
import type { Output, Services } from './output/services.ts';
import { withStates } from './output/state-words.ts';

/** The end of a run. */
interface RecapInput {
  readonly outcomes: readonly HostOutcome[];
  /** The command that processes the unfinished hosts; null: the same command again. */
  readonly retryCommand: string | null;
  readonly elapsedMs: number;
  readonly gates: readonly GateRecord[];
}

/**
 * Prints the end of a run: the hosts that neither changed nor are up to date, by result (`refused: node[3:9] (7 hosts)`), the
 * number of hosts by result, and `took 7m31s; to continue: kubeletadm apply -f fleet.yaml --retry failed`. The reasons follow
 * as errors. Hosts that were refused or rolled back would have the same result again, unless only their plan is stale: their causes
 * must be fixed first.
 */
export function showRecap({ output }: Pick<Services, 'output'>, { outcomes, retryCommand, elapsedMs, gates }: RecapInput): void {
  const unfinished = outcomes.filter(({ status }) => status !== 'changed' && status !== 'unchanged' && status !== 'pending');
  showUnfinished(output, unfinished, unfinishedText);
  output.stdout(joinLines([...(outcomes.length === 0 ? [] : [withStates(summaryLine(outcomes))]), ...gateSummary(gates)]));
  output.stderr(joinLines([`took ${formatSeconds(elapsedMs)}${retryCommand === null ? '' : nextText(unfinished, retryCommand)}`]));
}

const REPEATED: ReadonlySet<HostOutcome['status']> = new Set(['refused', 'rolled-back']);

function nextText(unfinished: readonly HostOutcome[], retryCommand: string): string {
  if (unfinished.length === 0) return '';
  const isRepeated = unfinished.some(({ status, error }) => REPEATED.has(status) && !isAppError(error, 'PLAN_STALE'));
  // Only a saved plan is stale so that its hosts must be planned again; other runs always plan.
  const replans = unfinished.some(({ error }) => error?.problems.some(({ hint = '' }) => hint.includes('--replan')));
  return `; ${isRepeated ? 'fix the causes, then run' : 'to continue'}: ${retryCommand}${replans ? ' --replan' : ''}`;
}

/** `Gates: 3 passed, 1 failed (smoke-test after batch 2).`; no line without gates. */
export function gateSummary(gates: readonly GateRecord[]): readonly string[] {
  const failed = gates.filter(({ isPassed }) => !isPassed);
  const passed = gates.length - failed.length;
  const names = failed.map(({ gate, kind, batch }) =>
    kind === 'window' ? 'maintenance window closed' : `${gate} ${batch === 0 ? 'before any batch' : `after batch ${batch}`}`,
  );
  const parts = [
    ...(passed === 0 ? [] : [`${passed} passed`]),
    ...(names.length === 0 ? [] : [`${names.length} failed (${names.join(', ')})`]),
  ];
  return parts.length === 0 ? [] : [`Gates: ${parts.join(', ')}.`];
}

/** Prints a line for each result: `refused: node[3:9] (7 hosts)`. @param text names the hosts or Nodes with the same result */
export function showUnfinished<T extends { readonly status: MemberOutcome }>(
  output: Pick<Output, 'stderr'>,
  unfinished: readonly T[],
  text: (members: readonly T[]) => string,
): void {
  const byStatus = groupBy(unfinished, ({ status }) => status);
  output.stderr(joinLines([...byStatus].map(([status, some]) => withStates(`${outcomeText(status)}: ${text(some)}`, 1))));
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
