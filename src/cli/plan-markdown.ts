import { groupBy } from '../base/group-by.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines, renderText, type Text } from '../base/text/styled.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import type { FleetAccess } from '../fleet/use-cases/open-fleet-cluster.ts';
import type { PlannedBatch } from '../maintenance/next-step.ts';
import { canaryLine, clusterLine, foldedLines, orderLine, planSummary, reasonOf } from './fleet-report.ts';

/** More lines are folded. */
const MAX_LINES = 40;
/** Of each of the two blocks: a comment on GitHub has at most 65,536 characters. */
const MAX_CHARACTERS = 30_000;

/** A plan for the description or a comment of a merge request: the short lines, and the contents and diffs folded. */
export function planMarkdown(
  outcomes: readonly HostOutcome[],
  {
    access,
    canary,
    batches,
  }: { readonly access: FleetAccess | null; readonly canary: readonly string[]; readonly batches: readonly PlannedBatch[] },
): string {
  const lines = foldedLines(outcomes, { verbosity: 0, showsDiff: false });
  const failed = groupBy(
    outcomes.filter(({ error }) => error !== undefined && error !== null),
    (outcome) => `${outcome.status}: ${reasonOf(outcome)}`,
  );
  const failedLines = [...failed].map(([reason, some]) => `! ${namesText(some.map(({ host }) => host))} ${reason}`);
  const short = [
    ...(lines.length === 0 ? [] : clusterLine(access)),
    ...lines,
    ...failedLines,
    ...canaryLine(canary),
    ...orderLine(batches),
  ];
  const summary = `**kubeletadm plan:** ${planSummary(outcomes)}\n`;
  if (short.length === 0) return summary;
  const overview = short.length > MAX_LINES ? folded(`${short.length} lines`, short) : block(short);
  const full = foldedLines(outcomes, { verbosity: 0, showsDiff: true });
  return [summary, overview, ...(full.length > lines.length ? [folded('Contents and diffs', full)] : [])].join('\n');
}

function folded(summary: string, lines: readonly Text[]): string {
  return `<details><summary>${summary}</summary>\n\n${block(lines)}\n</details>\n`;
}

/** A code block with a fence that its text does not contain. */
function block(lines: readonly Text[]): string {
  const shown = [...lines];
  let text = renderText(joinLines(shown), false);
  while (text.length > MAX_CHARACTERS) {
    shown.splice(Math.floor(shown.length * Math.min(0.95, MAX_CHARACTERS / text.length)));
    text = renderText(joinLines(shown), false);
  }
  const rest = lines.length - shown.length;
  const end = rest === 0 ? '' : `… ${rest} more lines: kubeletadm plan --diff\n`;
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return `${fence}diff\n${text}${end}${fence}\n`;
}
