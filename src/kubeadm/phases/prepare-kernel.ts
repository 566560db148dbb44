import type { Templates } from '../../codec/render-template.ts';
import { observe } from '../../host/access/observe.ts';
import {
  type ModuleFacts,
  moduleFacts,
  planModules,
  planSwapOff,
  planSysctls,
  type SwapFacts,
  type SysctlFacts,
  swapFacts,
  sysctlFacts,
} from '../../host/install/kernel.ts';
import type { HostPreparation } from '../../host/operation/install-model.ts';
import { definePhase } from '../../host/phase.ts';

export interface PrepareKernelInput {
  readonly templates: Templates;
  readonly preparation: HostPreparation;
}

/** Disables swap now and at boot, if declared. */
export const disableSwap = definePhase<PrepareKernelInput, SwapFacts>({
  name: 'swap',
  short: 'Disable swap',
  observe: ({ host, signal }) => observe(host, swapFacts, signal),
  plan: planSwapOff,
});

/** Loads kernel modules now and at boot. */
export const loadKernelModules = definePhase<PrepareKernelInput, ModuleFacts>({
  name: 'kernel-modules',
  short: 'Load kernel modules',
  observe: ({ host, signal }, { preparation: { kernelModules } }) => observe(host, moduleFacts(kernelModules ?? []), signal),
  plan: (facts, { templates, preparation: { kernelModules } }) => planModules(templates, kernelModules ?? [], facts),
});

/** Sets kernel parameters now and at boot. */
export const setSysctls = definePhase<PrepareKernelInput, SysctlFacts>({
  name: 'sysctls',
  short: 'Set kernel parameters',
  observe: ({ host, signal }, { preparation: { sysctls } }) => observe(host, sysctlFacts(Object.keys(sysctls ?? {})), signal),
  plan: (facts, { templates, preparation: { sysctls } }) => planSysctls(templates, sysctls ?? {}, facts),
});
