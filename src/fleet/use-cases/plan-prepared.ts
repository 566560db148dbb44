import { type HostPreparation, NO_PREPARATION } from '../../host/operation/install-model.ts';
import { type PlanStep, planAfter } from '../../host/plan-after.ts';
import { hasPhase, planWorkflow, type Workflow, type WorkflowRun } from '../../host/run-workflow.ts';
import { withScheme } from '../../kubeadm/config/defaults.ts';
import { type HostBundle, prepareHostWorkflow } from '../../kubeadm/workflows/node/prepare-host.ts';
import type { PlannedHost } from '../file/model.ts';
import { planWithHooks } from '../run/plan-with-hooks.ts';
import type { InstallSources } from './install-sources.ts';

/** Plans a workflow after the preparation of its host. */
export type PlanPrepared = <Options, Input>(workflow: Workflow<Options, Input>, options: Options) => PlanStep;

/** Plans the declared preparation of a host, then a workflow, with the hooks of the host around both. */
export function planAfterPreparation(
  { name, preparation, hooks, role, nodeRegistration }: Pick<PlannedHost, 'name' | 'preparation' | 'hooks' | 'role' | 'nodeRegistration'>,
  sources: InstallSources,
  run: WorkflowRun,
): PlanPrepared {
  const { bundle } = sources;
  const { criSocket } = nodeRegistration;
  const ofHost = bundle === null ? null : { bundle, role, criSocket: criSocket === undefined ? null : withScheme(criSocket) };
  const planned = afterPreparation({ preparation, bundle: ofHost }, sources, run);
  return (workflow, options) => planWithHooks(name, hooks, planned(workflow, options), sources.readHookSecret);
}

interface HostWork {
  readonly preparation: HostPreparation | undefined;
  readonly bundle: HostBundle | null;
}

function afterPreparation({ preparation: declared, bundle }: HostWork, sources: InstallSources, run: WorkflowRun): PlanPrepared {
  return (workflow, options) => {
    const then: PlanStep = (context) => planWorkflow(workflow, context, options, run);
    if (declared === undefined && bundle === null) return then;
    const preparation = declared ?? NO_PREPARATION;
    const preparing = prepareHostWorkflow(preparation, bundle);
    // Skipped phases are those of the workflow: a new cluster skips phases of init.
    const skipPhases = run.skipPhases.filter((name) => hasPhase(preparing, name));
    const first: PlanStep = (context) => planWorkflow(preparing, context, { ...sources, preparation }, { ...run, skipPhases });
    return (context) => planAfter(context, { first, then, thenPhases: workflow.phases.map(({ name }) => name) });
  };
}
