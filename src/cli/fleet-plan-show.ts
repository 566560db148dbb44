import type { ExitCode } from '../base/errors.ts';
import { joinLines, styled, type Text } from '../base/text/styled.ts';
import { type Selection, selectHosts } from '../fleet/file/select.ts';
import { isExpired, type SavedHost, type SavedPlan } from '../fleet/plan/saved-plan.ts';
import { readSavedPlan, type SavedPlanRequest } from '../fleet/use-cases/read-saved-plan.ts';
import { formatClusterName } from '../host/plan/document.ts';
import type { HostGroup } from '../host/plan/fold.ts';
import { highestImpact } from '../host/plan/impact.ts';
import { canaryLine, groupLines, summaryLine } from './fleet-report.ts';
import type { Services } from './output/services.ts';
import { type OutputRequest, renderDocument } from './output/show-document.ts';

export interface ShowPlanRequest extends SavedPlanRequest {
  readonly selection: Selection;
  readonly output: OutputRequest;
}

/** `plan show`, `fleet plan show`. An expired plan is shown too. */
export async function runShowPlan(services: Services, { selection, output, ...request }: ShowPlanRequest): Promise<ExitCode> {
  const { plan, signer } = await readSavedPlan(services, request);
  const hosts = plan.hosts.length === 0 ? [] : selectHosts(plan.hosts, selection);
  if (output.format !== 'text') {
    services.output.stdout(renderDocument({ ...plan, hosts }, output.format));
    return 0;
  }
  const signed = signer === null ? [] : [`signed with the key ${signer.fingerprint} by ${signer.principal}`];
  const groups = groupsOf(plan, hosts);
  services.output.stdout(
    joinLines([
      [styled('bold', `plan ${plan.id}`), ` of ${plan.fleet.file}`],
      lifetimeLine(plan, services.clock.now()),
      ...signed,
      ...(groups.length === 0 ? [] : [clusterLine(plan)]),
      ...groupLines(groups, output.verbosity),
      ...hosts.flatMap(({ problems = [] }) => problems.map((problem) => `not planned: ${problem}`)),
      ...canaryLine(plan.canary ?? []),
      summaryLine(hosts, { highest: highestImpact(hosts.map((host) => host.highestImpact)), fields: countFields(groups) }),
    ]),
  );
  return 0;
}

function countFields(groups: readonly HostGroup[]): number {
  return groups.reduce((sum, { hosts, changes }) => {
    const fields = changes.reduce((count, change) => count + (Array.isArray(change.fields) ? change.fields.length : 0), 0);
    return sum + hosts.length * fields;
  }, 0);
}

function lifetimeLine(plan: SavedPlan, now: Date): Text {
  const { createdAt, expiresAt } = plan.validity;
  return isExpired(plan, now)
    ? [`created ${createdAt}, `, styled('red', `expired ${expiresAt}`), ': apply refuses the plan']
    : `created ${createdAt}, expires ${expiresAt}`;
}

function clusterLine({ server, cluster: { context } }: SavedPlan): Text {
  return [styled('bold', 'cluster'), ` ${formatClusterName({ server, context: context ?? undefined })}`];
}

/** Hosts with the same changes, in the order of the plan; values of single hosts are placeholders. */
function groupsOf({ changes }: SavedPlan, hosts: readonly SavedHost[]): readonly HostGroup[] {
  const groups = new Map<string, string[]>();
  for (const { name, changes: key } of hosts) {
    if (key === undefined) continue;
    const names = groups.get(key);
    if (names === undefined) groups.set(key, [name]);
    else names.push(name);
  }
  return [...groups].map(([key, names]) => ({ hosts: names, ...(changes[key] ?? { changes: [], deferred: [] }) }));
}
