import type { JsonObject } from '../../base/json.ts';
import { type FixedPlan, planStale, reportDifference } from '../../host/apply-phases.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import { type HostChanges, sharedChangesOf } from '../../host/plan/fold.ts';
import { planDifference } from '../../host/plan/same-plan.ts';
import { textAt } from '../../kubelet/documents/values.ts';
import { differingOperations, type Operations, operationsOf } from '../plan/operations.ts';
import type { FleetMember } from '../run/fleet-member.ts';

/** The exact operations of a saved or approved plan. */
export interface ApprovedOperations {
  readonly operations?: Operations;
  /** The operations as the plan shows them. */
  readonly planned?: HostChanges;
  /** Where the operations are from. Default: `saved`. */
  readonly origin?: FixedPlan;
}

/**
 * A host that is rejected, with the difference, if its task has operations and the current ones differ. An empty list of
 * current operations is accepted.
 * @param options.replan show and apply a new plan instead of rejecting the host
 * @param options.compares whether the changes of a phase are compared, by the current plan. Default: all are
 */
export function approvedMember(
  member: FleetMember,
  { operations, planned, origin = 'saved' }: ApprovedOperations,
  { replan, compares = () => true }: { readonly replan: boolean; readonly compares?: (phase: string, now: HostPlan) => boolean },
): FleetMember {
  if (operations === undefined) return member;
  return {
    ...member,
    open: async (ports) => {
      const open = await member.open(ports);
      const { host } = open.planned;
      const now = operationsOf(host);
      const compared = (all: Operations): Operations => all.filter(([what]) => compares(what.split(' ')[0] ?? '', host));
      const different = now.length === 0 ? [] : differingOperations(compared(operations), compared(now));
      if (different.length === 0) return open;
      const { reporter } = ports;
      const current = JSON.parse(sharedChangesOf(host)) as HostChanges;
      const difference = planDifference(planned === undefined ? current : withoutAccepted(planned, current), current);
      const subjects = difference.fields.length > 0 ? difference.fields : different;
      const shown = `${subjects.slice(0, 5).join('; ')}${subjects.length > 5 ? '; …' : ''}`;
      if (replan) {
        const message = `the host or the cluster changed since the plan was ${origin}, so this host was planned again: ${shown}`;
        reporter.report({ level: 'warning', code: 'PLAN_CHANGED', host: member.name, message });
        reportDifference(reporter, { host: member.name }, { difference, between: `the ${origin} plan and the applied changes` });
        return open;
      }
      reportDifference(reporter, { host: member.name }, { difference, between: `the ${origin} plan and the current plan` });
      await open.close();
      throw planStale(member.name, origin, {
        message: `the host or the cluster changed since the plan was ${origin}: ${shown}`,
        exitCode: 3,
      });
    },
  };
}

/** Without the objects to create that exist by now as they were planned: they are no difference. */
function withoutAccepted(planned: HostChanges, now: HostChanges): HostChanges {
  const objectOf = (change: JsonObject): string =>
    ['apiVersion', 'kind', 'metadata.namespace', 'metadata.name'].map((path) => textAt(change, `object.${path}`)).join(' ');
  const changed = new Set(now.changes.map(objectOf));
  const isKept = (change: JsonObject): boolean =>
    change.action !== 'create' || change.object === undefined || changed.has(objectOf(change));
  return { ...planned, changes: planned.changes.filter(isKept) };
}
