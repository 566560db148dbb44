import { namesText } from '../base/text/name-ranges.ts';
import { styled, type Text } from '../base/text/styled.ts';
import { shownChanges } from '../fleet/plan/operations.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import type { FleetAccess } from '../fleet/use-cases/open-fleet-cluster.ts';
import type { RetriedHosts } from '../fleet/use-cases/run-journal.ts';
import type { Change } from '../host/plan/change.ts';
import { formatClusterName, type HostPlan, impactOfPlan } from '../host/plan/document.ts';
import { foldPlans, type HostGroup } from '../host/plan/fold.ts';
import { highestImpact, type Impact } from '../host/plan/impact.ts';
import { outcomesText } from '../maintenance/member-outcome.ts';
import { changeLines, impactSuffix } from './output/show-plan.ts';

/**
 * The planned changes; hosts with the same changes share one entry.
 * @param origins print the source of each written line
 * @param verbosity 1 or more shows the program's internal files. Default: 0
 */
export function planLines(
  outcomes: readonly HostOutcome[],
  { origins, verbosity = 0 }: { readonly origins: boolean; readonly verbosity?: number },
): readonly Text[] {
  const plans = outcomes.flatMap(({ plan, status }): readonly HostPlan[] => {
    if (plan === null || status === 'unchanged') return [];
    const { origins: _, ...host } = plan.host;
    return [origins ? plan.host : host];
  });
  return groupLines(foldPlans(plans), verbosity);
}

/**
 * The changes of groups of hosts.
 * @param verbosity 1 or more shows the program's internal files
 */
export function groupLines(groups: readonly HostGroup[], verbosity: number): readonly Text[] {
  return groups.flatMap(({ hosts, changes, deferred }) => [
    [styled('bold', `${namesText(hosts)}${hosts.length > 1 ? ` (${hosts.length} hosts)` : ''}`)],
    ...shownChanges(changes, verbosity).flatMap((change) => changeLines(change)),
    ...deferred.map(({ phase, reason }) => `  > [${String(phase)}] later: ${String(reason)}`),
  ]);
}

/** The extent of a plan, shown in its summary. */
interface PlanExtent {
  readonly highest: Impact | null;
  /** Number of changed kubelet fields, over all hosts. */
  readonly fields: number;
}

/**
 * `6 hosts: 4 changed, 1 unchanged, 1 unreachable.`
 * @param extent of a plan, not of a run
 */
export function summaryLine(
  outcomes: readonly Pick<HostOutcome, 'status'>[],
  { highest, fields }: PlanExtent = { highest: null, fields: 0 },
): string {
  const counted = fields === 0 ? '' : ` (${fields === 1 ? '1 kubelet field' : `${fields} kubelet fields`})`;
  const statuses = outcomes.map(({ status }) => status);
  return `${outcomesText(statuses, 'host', counted)}${impactSuffix(highest)}.`;
}

/** The cluster of the changes; nothing for a cluster that does not exist yet. */
export function clusterLine(access: FleetAccess | null): readonly Text[] {
  return access === null ? [] : [[styled('bold', 'cluster'), ` ${formatClusterName(access.cluster)}`]];
}

/** `canary: edge-1`; nothing without a canary. */
export function canaryLine(canary: readonly string[]): readonly Text[] {
  return canary.length === 0 ? [] : [`canary: ${namesText(canary)}; the other hosts follow only if the canary succeeds`];
}

/** `3 hosts: 2 pending (5 kubelet fields), 1 unchanged; highest impact: drain.` */
export function planSummary(outcomes: readonly HostOutcome[]): string {
  const plans = outcomes.flatMap(({ status, plan }) => (status === 'pending' && plan !== null ? [plan.host] : []));
  const fields = plans.flatMap(({ phases }) => phases.flatMap(({ plan }) => plan.changes.flatMap(fieldsOf))).length;
  return summaryLine(outcomes, { highest: highestImpact(plans.map(impactOfPlan)), fields });
}

function fieldsOf(change: Change): readonly unknown[] {
  return 'fields' in change ? (change.fields ?? []) : [];
}

/** Hosts whose actual state was not read, grouped by reason: `dead1 was not checked: connection refused`. */
export function uncheckedLines(outcomes: readonly HostOutcome[]): readonly string[] {
  const byReason = new Map<string, string[]>();
  for (const outcome of outcomes) {
    if (outcome.plan !== null) continue;
    const reason = reasonOf(outcome);
    const hosts = byReason.get(reason);
    if (hosts === undefined) byReason.set(reason, [outcome.host]);
    else hosts.push(outcome.host);
  }
  return [...byReason].map(([reason, hosts]) => `${namesText(hosts)} ${hosts.length === 1 ? 'was' : 'were'} not checked: ${reason}`);
}

/**
 * The reason why a host was not checked, as a clause without the address; stderr has the complete problem.
 */
export function reasonOf({ error, status }: HostOutcome): string {
  const [problem] = error?.problems ?? [];
  if (problem === undefined || status === 'interrupted') return 'interrupted';
  const { code, message } = problem;
  const colon = message.indexOf(': ');
  return code === 'HOST_UNREACHABLE' && colon >= 0 ? message.slice(colon + 2) : message;
}

/** Why a run with `--retry failed` has no hosts. */
export function retryLine({ hosts, last }: RetriedHosts): string {
  // The last run may have covered other hosts than the user expects.
  if (hosts.length === 0)
    return `Nothing to do: the last run (started ${last.startedAt}, hosts ${namesText(last.hosts)}) left no host to retry.`;
  return `Nothing to do on the selected hosts. Earlier runs left other hosts unfinished: ${namesText(hosts)} (last run: ${last.startedAt}).`;
}
