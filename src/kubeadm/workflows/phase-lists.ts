import { PREFLIGHT_PHASE, type Workflow } from '../../host/run-workflow.ts';
import { initWorkflow } from './init.ts';
import { joinWorkflow } from './join.ts';
import { joinControlPlaneWorkflow } from './join-control-plane.ts';
import { resetWorkflow } from './reset.ts';
import { upgradeControlPlaneNodeWorkflow } from './upgrade/control-plane-upgrade.ts';
import { upgradeApplyWorkflow } from './upgrade/upgrade-apply.ts';
import { upgradeNodeWorkflow } from './upgrade/upgrade-node.ts';

export interface PhaseHelp {
  readonly name: string;
  readonly short: string;
}

export type PhasedCommand = 'init' | 'join' | 'reset' | 'upgrade apply' | 'upgrade node';

/** The phases of each command, in order. */
export type PhaseLists = Readonly<Record<PhasedCommand, readonly PhaseHelp[]>>;

/** The phases of each command, from its workflows. */
export const PHASE_LISTS: PhaseLists = {
  init: phasesOf(initWorkflow),
  join: phasesOf(joinControlPlaneWorkflow, joinWorkflow, 'with --control-plane'),
  reset: phasesOf(resetWorkflow),
  'upgrade apply': phasesOf(upgradeApplyWorkflow),
  'upgrade node': phasesOf(upgradeControlPlaneNodeWorkflow, upgradeNodeWorkflow, 'on control planes'),
};

/**
 * Lists the phases of a command.
 * @param whole the workflow with all phases
 * @param part another workflow of the command, which runs unless the condition holds
 */
function phasesOf(whole: Pick<Workflow<never, never>, 'phases'>, part = whole, condition = ''): readonly PhaseHelp[] {
  const phases = whole.phases.map(({ name, short }): PhaseHelp => {
    const isShared = part.phases.some((phase) => phase.name === name);
    return { name, short: isShared ? short : `${short} (only ${condition})` };
  });
  return [PREFLIGHT_PHASE, ...phases];
}
