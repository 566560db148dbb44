import type { ExitCode } from '../base/errors.ts';
import { joinLines, styled, type Text } from '../base/text/styled.ts';
import { type Selection, selectHosts } from '../fleet/file/select.ts';
import { isExpired, type SavedHost, type SavedPlan } from '../fleet/plan/saved-plan.ts';
import { readSavedPlan, type SavedPlanRequest } from '../fleet/use-cases/read-saved-plan.ts';
import { foldChanges, type HostGroup } from '../host/plan/fold.ts';
import { highestImpact } from '../host/plan/impact.ts';
import { canaryLine, extentOf, groupLines, orderLine, shownText, summaryLine } from './fleet-report.ts';
import type { Services } from './output/services.ts';
import { type OutputRequest, renderDocument } from './output/show-document.ts';
import { clusterHead, showPlanText } from './output/show-plan.ts';

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
  const groups = groupsOf(plan, hosts, output);
  showPlanText(
    services.output,
    joinLines([
      [styled('bold', `plan ${plan.id}`), ` of ${plan.fleet.file}`],
      lifetimeLine(plan, services.clock.now()),
      ...signed,
      ...(groups.length === 0 ? [] : [clusterHead({ server: plan.server, context: plan.cluster.context ?? undefined })]),
      ...groupLines(groups, output),
      ...hosts.flatMap(({ problems = [] }) => problems.map((problem) => `not planned: ${problem}`)),
      ...canaryLine(plan.canary ?? []),
      ...orderLine((plan.batches ?? []).map((names, i) => ({ names, isCanary: i === 0 && (plan.canary?.length ?? 0) > 0, isDown: false }))),
      summaryLine(hosts, {
        highest: highestImpact(hosts.map((host) => host.highestImpact)),
        extents: groups.map((group) => extentOf(group.hosts.length, group)),
      }),
    ]),
    output,
  );
  return 0;
}

function lifetimeLine(plan: SavedPlan, now: Date): Text {
  const { createdAt, expiresAt } = plan.validity;
  return isExpired(plan, now)
    ? [`created ${createdAt}, `, styled('red', `expired ${expiresAt}`), ': apply refuses the plan']
    : `created ${createdAt}, expires ${expiresAt}`;
}

/** Values of single hosts are placeholders. */
function groupsOf({ changes }: SavedPlan, hosts: readonly SavedHost[], output: OutputRequest): readonly HostGroup[] {
  const keys = hosts.flatMap(({ name, changes: key }) => (key === undefined ? [] : [[name, key] as const]));
  return foldChanges(keys, (key) => changes[key] ?? { changes: [], deferred: [] }, shownText(output));
}
