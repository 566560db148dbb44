import type { Reporter } from '../base/reporter.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines, renderText, styled, type Text } from '../base/text/styled.ts';
import { shownChanges } from '../fleet/plan/operations.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import { hasOrder } from '../fleet/run/planned-batches.ts';
import type { FleetAccess } from '../fleet/use-cases/open-fleet-cluster.ts';
import type { RetriedHosts } from '../fleet/use-cases/run-journal.ts';
import { type HostPlan, impactOfPlan } from '../host/plan/document.ts';
import { foldPlans, type HostChanges, type HostGroup } from '../host/plan/fold.ts';
import { highestImpact, type Impact } from '../host/plan/impact.ts';
import { BOOTSTRAP_CONF } from '../kube/well-known.ts';
import { outcomesText } from '../maintenance/member-outcome.ts';
import type { PlannedBatch } from '../maintenance/next-step.ts';
import type { OutputRequest } from './output/show-document.ts';
import { clusterHead, deferredLines, impactSuffix, planLines } from './output/show-plan.ts';

/** The planned changes; hosts with the same lines share one entry. */
export function foldedLines(
  outcomes: readonly HostOutcome[],
  output: Omit<OutputRequest, 'format'> & { readonly showOrigin?: boolean | undefined },
): readonly Text[] {
  const plans = outcomes.flatMap(({ plan, status }) => (plan === null || status === 'unchanged' ? [] : [plan.host]));
  return foldedPlanLines(plans, output);
}

/** `showOrigin`: each written line has its source. */
export function foldedPlanLines(
  plans: readonly HostPlan[],
  { showOrigin = false, ...output }: Omit<OutputRequest, 'format'> & { readonly showOrigin?: boolean | undefined },
): readonly Text[] {
  const shown = showOrigin ? plans : plans.map(({ origins: _, ...plan }) => plan);
  return groupLines(foldPlans(shown, shownText(output)), output);
}

/** The changes of groups of hosts. */
export function groupLines(groups: readonly HostGroup[], output: Omit<OutputRequest, 'format'>): readonly Text[] {
  return groups.flatMap(({ hosts, ...changes }) => [
    [styled('bold', `${namesText(hosts)}${hosts.length > 1 ? ` (${hosts.length} hosts)` : ''}`)],
    ...linesOf(changes, output),
  ]);
}

/** The text by which hosts are grouped: hosts with equal lines share an entry. */
export function shownText(output: Omit<OutputRequest, 'format'>): (changes: HostChanges) => string {
  return (changes) => renderText(joinLines(linesOf(changes, output)), false);
}

function linesOf({ changes, deferred }: HostChanges, output: Omit<OutputRequest, 'format'>): readonly Text[] {
  return [...planLines(shownChanges(changes, output.verbosity), output), ...deferredLines(deferred)];
}

/** What a plan changes on some hosts, for its summary. */
interface PlannedExtent {
  readonly hosts: number;
  /** Changed fields of running kubelets. */
  readonly fields: readonly string[];
  readonly joins: boolean;
}

/**
 * `6 hosts: 4 changed, 1 unchanged, 1 unreachable.`
 * @param plan of a plan, not of a run: `50 hosts: 50 pending (1 field on 40 hosts; 49 nodes join); highest impact: safe.`
 */
export function summaryLine(
  outcomes: readonly Pick<HostOutcome, 'status'>[],
  { highest, extents }: { readonly highest: Impact | null; readonly extents: readonly PlannedExtent[] } = { highest: null, extents: [] },
): string {
  const statuses = outcomes.map(({ status }) => status);
  return `${outcomesText(statuses, 'host', extentText(extents))}${impactSuffix(highest)}.`;
}

function extentText(extents: readonly PlannedExtent[]): string {
  const hostsOf = (some: readonly PlannedExtent[]): number => some.reduce((sum, { hosts }) => sum + hosts, 0);
  const fields = new Set(extents.flatMap((extent) => extent.fields)).size;
  const changing = hostsOf(extents.filter((extent) => extent.fields.length > 0));
  const joining = hostsOf(extents.filter(({ joins }) => joins));
  const texts = [
    ...(fields === 0 ? [] : [`${fields} ${fields === 1 ? 'field' : 'fields'} on ${changing} ${changing === 1 ? 'host' : 'hosts'}`]),
    ...(joining === 0 ? [] : [`${joining} ${joining === 1 ? 'node joins' : 'nodes join'}`]),
  ];
  return texts.length === 0 ? '' : ` (${texts.join('; ')})`;
}

/** The extent of changes in the format of the plan document. */
export function extentOf(hosts: number, { changes, deferred }: HostChanges): PlannedExtent {
  const fields = changes.flatMap((change) => (Array.isArray(change.fields) ? change.fields : []) as readonly { readonly field: string }[]);
  const joins =
    changes.some(({ kind, path }) => kind === 'write-file' && path === BOOTSTRAP_CONF) || deferred.some(({ phase }) => phase === 'join');
  return { hosts, fields: fields.map(({ field }) => field), joins };
}

/** A reporter without the name of the cluster, which the plan contains. */
export function withoutCluster(reporter: Reporter): Reporter {
  return {
    ...reporter,
    report: (event) => {
      if (event.code !== 'CLUSTER') reporter.report(event);
    },
  };
}

/** The cluster of the changes; nothing for a cluster that does not exist yet. */
export function clusterLine(access: FleetAccess | null): readonly Text[] {
  return access === null ? [] : [clusterHead(access.cluster)];
}

/** `canary: edge-1`; nothing without a canary. */
export function canaryLine(canary: readonly string[]): readonly Text[] {
  return canary.length === 0 ? [] : [`canary: ${namesText(canary)}; the other hosts follow only if the canary succeeds`];
}

/**
 * `order: cp1 (canary), then edge-[1:3], then edge-[4:6]`; nothing if the canary precedes all others.
 * @param batches the hosts in their order
 */
export function orderLine(batches: readonly PlannedBatch[]): readonly Text[] {
  if (!hasOrder(batches)) return [];
  const texts = batches.map(({ names, isCanary, isDown }) => `${namesText(names)}${isCanary ? ' (canary)' : isDown ? ' (down now)' : ''}`);
  const more = texts.length > MOST_BATCHES ? `, and ${texts.length - MOST_BATCHES} more batches` : '';
  return [`order: ${texts.slice(0, MOST_BATCHES).join(', then ')}${more}`];
}

const MOST_BATCHES = 8;

/** `3 hosts: 2 pending (5 fields on 2 hosts), 1 unchanged; highest impact: drain.` */
export function planSummary(outcomes: readonly HostOutcome[]): string {
  const plans = outcomes.flatMap(({ status, plan }) => (status === 'pending' && plan !== null ? [plan.host] : []));
  const extents = plans.map(({ phases }): PlannedExtent => {
    const changes = phases.flatMap(({ plan }) => plan.changes);
    const fields = changes.flatMap((change) => ('fields' in change ? (change.fields ?? []) : []).map(({ field }) => field));
    const joins = changes.some((change) => 'path' in change && change.path === BOOTSTRAP_CONF && change.kind === 'write-file');
    return { hosts: 1, fields, joins: joins || phases.some(({ phase, plan }) => phase === 'join' && plan.deferred !== undefined) };
  });
  return summaryLine(outcomes, { highest: highestImpact(plans.map(impactOfPlan)), extents });
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
