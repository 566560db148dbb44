import { PREFLIGHT_PHASE, type Workflow } from '../../host/run-workflow.ts';
import { initWorkflow } from './init.ts';
import { initControlPlaneWorkflow } from './init-control-plane.ts';
import { joinWorkflow } from './join.ts';
import { joinControlPlaneWorkflow } from './join-control-plane.ts';
import type { PhaseHelp, PhaseLists } from './phase-help.ts';
import { resetWorkflow } from './reset.ts';
import { upgradeApplyWorkflow } from './upgrade/upgrade-apply.ts';
import { upgradeControlPlaneNodeWorkflow } from './upgrade/upgrade-control-plane-node.ts';
import { upgradeNodeWorkflow } from './upgrade-node.ts';

type Phases = Pick<Workflow<never, never>, 'phases'>;

/** The phases of each command, from its workflows. */
export const PHASE_LISTS: PhaseLists = {
  init: phasesOf(initControlPlaneWorkflow, initWorkflow),
  join: phasesOf(joinControlPlaneWorkflow, joinWorkflow),
  reset: phasesOf(resetWorkflow),
  'upgrade apply': phasesOf(upgradeApplyWorkflow),
  'upgrade node': phasesOf(upgradeControlPlaneNodeWorkflow, upgradeNodeWorkflow),
};

/**
 * Merges the phases of workflows that one command runs.
 * @param whole the workflow with most phases, in whose order they are listed
 * @param others a phase that only these have is listed after the phase that precedes it in them
 */
function phasesOf(whole: Phases, ...others: readonly Phases[]): readonly PhaseHelp[] {
  const merged: PhaseHelp[] = [PREFLIGHT_PHASE, ...whole.phases].map(({ name, short }) => ({ name, short }));
  const indexOf = (name: string): number => merged.findIndex((phase) => phase.name === name);
  for (const { phases } of others) {
    let at = 0;
    for (const { name, short } of phases) {
      if (indexOf(name) < 0) merged.splice(at + 1, 0, { name, short });
      at = indexOf(name);
    }
  }
  return merged;
}
