import { PREFLIGHT_PHASE, type Workflow } from '../../host/run-workflow.ts';
import { initWorkflow } from './init.ts';
import { initControlPlaneWorkflow } from './init-control-plane.ts';
import { joinWorkflow } from './join.ts';
import { joinControlPlaneWorkflow } from './join-control-plane.ts';
import type { PhaseHelp, PhaseLists } from './phase-help.ts';
import { resetWorkflow } from './reset.ts';
import { upgradeApplyWorkflow } from './upgrade/upgrade-apply.ts';
import { upgradeControlPlaneNodeWorkflow } from './upgrade/upgrade-control-plane-node.ts';
import { upgradeNodeWorkflow } from './upgrade/upgrade-node.ts';

interface CommandWorkflow {
  readonly workflow: Pick<Workflow<never, never>, 'phases'>;
  /** When the command runs this workflow and no other one, for help: `with --kubeconfig`. */
  readonly condition?: string;
}

/** The phases of each command, from its workflows. */
export const PHASE_LISTS: PhaseLists = {
  init: phasesOf({ workflow: initControlPlaneWorkflow }, { workflow: initWorkflow, condition: 'with --kubeconfig' }),
  join: phasesOf({ workflow: joinControlPlaneWorkflow, condition: 'with --control-plane' }, { workflow: joinWorkflow }),
  reset: phasesOf({ workflow: resetWorkflow }),
  'upgrade apply': phasesOf({ workflow: upgradeApplyWorkflow }),
  'upgrade node': phasesOf(
    { workflow: upgradeControlPlaneNodeWorkflow, condition: 'on control planes' },
    { workflow: upgradeNodeWorkflow },
  ),
};

/**
 * Merges the phases of workflows that one command runs. A phase of one workflow with a condition names the condition.
 * @param whole the workflow with most phases, in whose order they are listed
 * @param others a phase that only these have is listed after the phase that precedes it in them
 */
function phasesOf(whole: CommandWorkflow, ...others: readonly CommandWorkflow[]): readonly PhaseHelp[] {
  const all = [whole, ...others];
  const helpOf = ({ name, short }: PhaseHelp, condition: string | undefined): PhaseHelp => {
    const isShared = all.filter(({ workflow }) => workflow.phases.some((phase) => phase.name === name)).length > 1;
    return { name, short: condition === undefined || isShared ? short : `${short} (only ${condition})` };
  };
  const merged = [PREFLIGHT_PHASE, ...whole.workflow.phases.map((phase) => helpOf(phase, whole.condition))];
  const indexOf = (name: string): number => merged.findIndex((phase) => phase.name === name);
  for (const { workflow, condition } of others) {
    let at = 0;
    for (const phase of workflow.phases) {
      if (indexOf(phase.name) < 0) merged.splice(at + 1, 0, helpOf(phase, condition));
      at = indexOf(phase.name);
    }
  }
  return merged;
}
