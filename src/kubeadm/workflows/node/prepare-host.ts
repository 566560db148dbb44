import type { HostPreparation } from '../../../host/operation/install-model.ts';
import type { DefinedPhase, Phase } from '../../../host/phase.ts';
import type { Workflow } from '../../../host/run-workflow.ts';
import { type ImportImagesInput, importImages } from '../../phases/import-images.ts';
import {
  disableSwap,
  type InstallBinariesInput,
  type InstallPackagesInput,
  installBinaries,
  installPackages,
  loadKernelModules,
  type PrepareKernelInput,
  setSysctls,
  writeHostFiles,
} from '../../phases/prepare-host.ts';
import { configureProxy, type ProxyInput } from '../../phases/proxy.ts';

export interface PrepareHostOptions
  extends Pick<InstallPackagesInput, 'templates' | 'readKey'>,
    Pick<InstallBinariesInput, 'readFile'>,
    Pick<ProxyInput, 'clusterExceptions' | 'joinServer' | 'readCredentials'> {
  readonly preparation: HostPreparation;
}

/** The bundle of a run, and the host that it is for. */
export type HostBundle = Omit<ImportImagesInput, 'installsRuntime'>;

/**
 * Prepares a host for a node: swap, kernel, proxy, container runtime, kubelet. Undeclared parts are neither checked nor changed.
 * @param preparation decides the phases of the workflow
 * @param bundle null: no images are imported
 */
export function prepareHostWorkflow(
  { swap, kernelModules, sysctls, files, install, proxy }: HostPreparation,
  bundle: HostBundle | null,
): Workflow<PrepareHostOptions, PrepareHostOptions> {
  const kernel = (phase: DefinedPhase<PrepareKernelInput>): Phase<PrepareHostOptions> => phase.select((options) => options);
  return {
    name: 'prepare-host',
    phases: [
      ...(swap === null ? [] : [kernel(disableSwap)]),
      ...(kernelModules === null ? [] : [kernel(loadKernelModules)]),
      ...(sysctls === null ? [] : [kernel(setSysctls)]),
      ...(files === undefined ? [] : [kernel(writeHostFiles)]),
      ...(proxy === undefined
        ? []
        : [
            configureProxy.select(({ templates, clusterExceptions, joinServer, readCredentials }: PrepareHostOptions) => ({
              templates,
              proxy,
              clusterExceptions,
              joinServer,
              readCredentials,
            })),
          ]),
      ...(install?.kind === 'packages'
        ? [installPackages.select(({ templates, readKey }: PrepareHostOptions) => ({ templates, install, readKey }))]
        : []),
      ...(install?.kind === 'binaries'
        ? [installBinaries.select(({ readFile }: PrepareHostOptions) => ({ install, readFile, bundle: bundle?.bundle ?? null }))]
        : []),
      ...(bundle === null ? [] : [importImages.select((_: PrepareHostOptions) => ({ ...bundle, installsRuntime: install !== null }))]),
    ],
    prepare: async (_, options) => ({ input: options, warnings: [], refusals: [] }),
  };
}
