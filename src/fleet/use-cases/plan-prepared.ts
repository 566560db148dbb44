import { type HostPreparation, isUndeclared } from '../../host/install/model.ts';
import { type PlanStep, planAfter } from '../../host/plan-after.ts';
import { planWorkflow, type Workflow, type WorkflowRun } from '../../host/run-workflow.ts';
import { prepareHostWorkflow } from '../../kubeadm/workflows/prepare-host.ts';
import { planWithHooks } from '../plan-with-hooks.ts';
import type { PlannedHost } from '../saved-plan.ts';
import type { InstallSources } from './install-sources.ts';

/** Plans a workflow after the preparation of its host. */
export type PlanPrepared = <Options, Input>(workflow: Workflow<Options, Input>, options: Options) => PlanStep;

/** Plans the declared preparation of a host, then a workflow, with the hooks of the host around both. */
export function planAfterPreparation(
  { name, preparation, hooks }: Pick<PlannedHost, 'name' | 'preparation' | 'hooks'>,
  sources: InstallSources,
  run: WorkflowRun,
): PlanPrepared {
  const planned = afterPreparation(preparation, sources, run);
  return (workflow, options) => planWithHooks(name, hooks, planned(workflow, options));
}

function afterPreparation(preparation: HostPreparation, sources: InstallSources, run: WorkflowRun): PlanPrepared {
  return (workflow, options) => {
    const then: PlanStep = (context) => planWorkflow(workflow, context, options, run);
    if (isUndeclared(preparation)) return then;
    const preparing = prepareHostWorkflow(preparation);
    const first: PlanStep = (context) => planWorkflow(preparing, context, { ...sources, preparation }, run);
    return (context) => planAfter(context, { first, then, thenPhases: workflow.phases.map(({ name }) => name) });
  };
}
