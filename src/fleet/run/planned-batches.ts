import { type PlannedBatch, planBatches } from '../../maintenance/next-step.ts';
import type { FleetRules, HostOutcome } from './fleet.ts';
import type { FleetMember } from './fleet-member.ts';

/**
 * The batches in which a run changes the hosts if all succeed. A number of hosts that grows with the run is not considered.
 * @param members with their places in the run; `outcomes` are those of a dry run
 */
export function plannedBatches(
  members: readonly Pick<FleetMember, 'name' | 'stage' | 'zone' | 'isExclusive' | 'isNeeded'>[],
  outcomes: readonly Pick<HostOutcome, 'host' | 'status' | 'plan'>[],
  { canary, canaryOrder, hasCanaryPerStage, order, maxUnavailable }: FleetRules,
): readonly PlannedBatch[] {
  const pending = new Map(outcomes.flatMap(({ host, status, plan }) => (status === 'pending' ? [[host, plan] as const] : [])));
  const left = members.flatMap(({ name, stage, zone, isExclusive, isNeeded }) => {
    const plan = pending.get(name);
    if (plan === undefined) return [];
    const place = { stage: plan?.stage ?? stage, zone, isNeeded, isExclusive: isExclusive === true || plan?.isExclusive === true };
    return [{ name, ...place, isDown: plan?.isDown === true, state: 'queued' as const }];
  });
  const choice = { canary: left.length <= 1 ? 0 : canary, ...(canaryOrder === undefined ? {} : { canaryOrder }) };
  const rules = { ...choice, order, maxUnavailable: Math.max(1, maxUnavailable), maxFail: null, inBatches: true };
  return planBatches(left, hasCanaryPerStage === true ? { ...rules, hasCanaryPerStage } : rules).batches;
}

/** Whether batches are more than a canary and all others. */
export function hasOrder(batches: readonly PlannedBatch[]): boolean {
  return batches.filter(({ isCanary }) => !isCanary).length > 1;
}
