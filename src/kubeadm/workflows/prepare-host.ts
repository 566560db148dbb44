import type { HostPreparation } from '../../host/install/model.ts';
import type { Phase } from '../../host/phase.ts';
import type { Workflow } from '../../host/run-workflow.ts';
import { type InstallBinariesInput, installBinaries } from '../phases/install-binaries.ts';
import { type InstallPackagesInput, installPackages } from '../phases/install-packages.ts';
import { loadKernelModules, setSysctls, turnOffSwap } from '../phases/prepare-kernel.ts';
import { selectPhase } from './select-phase.ts';

export interface PrepareHostOptions extends Pick<InstallPackagesInput, 'readKey'>, Pick<InstallBinariesInput, 'readFile'> {
  readonly preparation: HostPreparation;
}

/**
 * Prepares a host for a node: swap, kernel, container runtime, kubelet. Undeclared parts are neither checked nor changed.
 * @param preparation decides the phases of the workflow
 */
export function prepareHostWorkflow({
  swap,
  kernelModules,
  sysctls,
  install,
}: HostPreparation): Workflow<PrepareHostOptions, PrepareHostOptions> {
  const kernel = (phase: Phase<HostPreparation>): Phase<PrepareHostOptions> => selectPhase(phase, ({ preparation }) => preparation);
  return {
    name: 'prepare-host',
    phases: [
      ...(swap === null ? [] : [kernel(turnOffSwap)]),
      ...(kernelModules === null ? [] : [kernel(loadKernelModules)]),
      ...(sysctls === null ? [] : [kernel(setSysctls)]),
      ...(install?.kind === 'packages' ? [selectPhase(installPackages, ({ readKey }: PrepareHostOptions) => ({ install, readKey }))] : []),
      ...(install?.kind === 'binaries'
        ? [selectPhase(installBinaries, ({ readFile }: PrepareHostOptions) => ({ install, readFile }))]
        : []),
    ],
    prepare: async (_, options) => ({ input: options, warnings: [], refusals: [] }),
  };
}
