import type { HostPreparation } from '../../host/install/model.ts';
import type { Phase } from '../../host/phase.ts';
import type { Workflow } from '../../host/run-workflow.ts';
import { type InstallBinariesInput, installBinaries } from '../phases/install-binaries.ts';
import { type InstallPackagesInput, installPackages } from '../phases/install-packages.ts';
import { loadKernelModules, type PrepareKernelInput, setSysctls, turnOffSwap } from '../phases/prepare-kernel.ts';
import { selectPhase } from './select-phase.ts';

export interface PrepareHostOptions extends Pick<InstallPackagesInput, 'templates' | 'readKey'>, Pick<InstallBinariesInput, 'readFile'> {
  readonly preparation: HostPreparation;
}

/**
 * What comes before a host can be a node: swap, kernel, container runtime, kubelet. Only what is declared is looked at.
 * @param preparation decides which phases there are
 */
export function prepareHostWorkflow({
  swap,
  kernelModules,
  sysctls,
  install,
}: HostPreparation): Workflow<PrepareHostOptions, PrepareHostOptions> {
  const kernel = (phase: Phase<PrepareKernelInput>): Phase<PrepareHostOptions> => selectPhase(phase, (options) => options);
  return {
    name: 'prepare-host',
    phases: [
      ...(swap === null ? [] : [kernel(turnOffSwap)]),
      ...(kernelModules === null ? [] : [kernel(loadKernelModules)]),
      ...(sysctls === null ? [] : [kernel(setSysctls)]),
      ...(install?.kind === 'packages'
        ? [selectPhase(installPackages, ({ templates, readKey }: PrepareHostOptions) => ({ templates, install, readKey }))]
        : []),
      ...(install?.kind === 'binaries'
        ? [selectPhase(installBinaries, ({ readFile }: PrepareHostOptions) => ({ install, readFile }))]
        : []),
    ],
    prepare: async (_, options) => ({ input: options, warnings: [], refusals: [] }),
  };
}
