import { declined } from '../../base/errors.ts';
import { toPlan } from '../../host/run-settings.ts';
import { targetName } from '../host-target.ts';
import type { HostOutcome } from '../run/fleet.ts';
import { exactTasks, withPlanned } from './approve-plan.ts';
import { failureOf, type HostsCommand, type HostsResult, type HostsSettings, runTargets } from './run-hosts.ts';

/**
 * Plans the hosts of a command, asks the operator, and changes the hosts with exactly these plans: a host with other changes by
 * then is refused.
 * @param view.approve shows the plans, and asks. Called only if a host has changes
 * @returns the results of all hosts, of those without changes as planned
 * @throws AppError DECLINED (exit code 1) if the operator declines
 */
export async function runApproved(
  ports: Parameters<typeof runTargets>[0],
  command: HostsCommand,
  settings: HostsSettings,
  view: {
    /** The command, for messages. */
    readonly title: string;
    readonly planning: Parameters<typeof runTargets>[3];
    readonly applying: () => Parameters<typeof runTargets>[3];
    approve(outcomes: readonly HostOutcome[]): Promise<boolean>;
  },
): Promise<HostsResult> {
  const planned = await runTargets(ports, toPlan(command), settings, view.planning);
  const pending = planned.outcomes.filter(({ status }) => status === 'pending');
  if (ports.signal.aborted || pending.length === 0) return planned;
  if (!(await view.approve(planned.outcomes))) throw declined(view.title);
  const exactOf = exactTasks();
  const approved = new Map(pending.map((outcome) => [outcome.host, exactOf({}, outcome)]));
  const targets = command.targets.filter((target) => approved.has(targetName(target)));
  const applied = await runTargets(ports, { ...command, targets, approved }, settings, view.applying());
  const result = withPlanned(applied, planned.outcomes);
  return {
    ...result,
    batches: planned.batches,
    drainForecast: planned.drainForecast,
    failure: failureOf(result, ports, settings),
  };
}
