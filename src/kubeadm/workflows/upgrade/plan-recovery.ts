import { AppError } from '../../../base/errors.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { type PlannedWorkflow, planWorkflow, type WorkflowRun } from '../../../host/run-workflow.ts';
import { observeReplacedData } from '../../phases/upgrade/restore-etcd-data.ts';
import { observeUpgrade } from '../../phases/upgrade/upgrade-progress.ts';
import type { ApiAccess } from '../control-plane/api-access.ts';
import { componentsToRecover, type RecoverUpgradeOptions, recoverUpgradeWorkflow } from './recover-upgrade.ts';
import { waitForInterrupted } from './wait-interrupted.ts';

/**
 * The recovery from an interrupted upgrade that left a component which does not run; null: all components of the
 * interrupted upgrade run, if necessary after they have started and the API server answers, or no upgrade was interrupted.
 * @throws AppError UPGRADE_INTERRUPTED, exit code 3, for a run of a single phase; UPGRADE_NOT_RECOVERED if etcd does not run and
 * no manifest is to blame
 */
export async function planRecovery(
  context: PhaseContext,
  run: WorkflowRun,
  { api, timeoutMs }: { readonly api: ApiAccess; readonly timeoutMs: number },
): Promise<PlannedWorkflow | null> {
  const record = await observeUpgrade(context);
  if (record === null) return null;
  const { reporter, host } = context;
  const replaced = await observeReplacedData(context, record);
  if (replaced !== null) reporter.report({ level: 'warning', code: 'ETCD_DATA_RESTORED', host: host.name, message: replaced });
  const { components, hasEtcdAnswered } = await componentsToRecover(context, record, timeoutMs);
  if (components.length === 0) {
    await waitForInterrupted(context, record, { api, timeoutMs });
    return null;
  }
  const state = `the upgrade to ${record.version} was interrupted, and ${components.join(', ')} ${components.length === 1 ? 'does' : 'do'} not run`;
  if (run.onlyPhase !== undefined) {
    const hint = 'Rerun the command without phase, which restores the previous static Pods';
    throw new AppError({ host: host.name, code: 'UPGRADE_INTERRUPTED', message: state, hint }, { exitCode: 3 });
  }
  const message = `${state}: restoring the previous static Pods`;
  reporter.report({ level: 'warning', code: 'UPGRADE_RECOVERY', host: host.name, message });
  const others: string[] = replaced === null ? [] : [replaced];
  const options: RecoverUpgradeOptions = { record, components, hasEtcdAnswered, api, timeoutMs, onRestored: (text) => others.push(text) };
  const planned = await planWorkflow(recoverUpgradeWorkflow, context, options, { ...run, skipPhases: [] });
  return {
    ...planned,
    apply: async (applied) => {
      const { phases } = await planned.apply(applied);
      const files = phases.some(({ plan }) => plan.changes.length > 0)
        ? 'were restored, and run again'
        : 'were restored by the interrupted run, and run again';
      const back = `the upgrade to ${record.version} was interrupted; the previous static Pods (${components.join(', ')}) ${files}${others.map((text) => `. ${text}`).join('')}`;
      const hint = 'Find out why the new static Pods did not start, then rerun the command';
      throw new AppError({ host: host.name, code: 'ROLLED_BACK', message: back, hint }, { exitCode: 5 });
    },
  };
}
