import type { PhaseContext } from '../../src/host/phase.ts';
import { planWorkflow, type Workflow, type WorkflowResult, type WorkflowRun } from '../../src/host/run-workflow.ts';

/** Plans a workflow on one host and, unless it is a dry run, applies it. */
export async function runWorkflow<Options, Input>(
  workflow: Workflow<Options, Input>,
  context: PhaseContext,
  options: Options,
  run: WorkflowRun,
): Promise<WorkflowResult> {
  const { apply, ...planned } = await planWorkflow(workflow, context, options, run);
  return run.dryRun ? planned : { ...planned, host: await apply(context) };
}
