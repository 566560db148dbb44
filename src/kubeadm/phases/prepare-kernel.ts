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
import type { HostPreparation } from '../../host/install/model.ts';
import { observe } from '../../host/observe.ts';
import { definePhase } from '../../host/phase.ts';

/** Disables swap now and at boot, if declared. */
export const turnOffSwap = definePhase<HostPreparation, SwapFacts>({
  name: 'swap',
  short: 'Disable swap',
  observe: ({ host, signal }) => observe(host, swapFacts, signal),
  plan: planSwapOff,
});

/** Loads kernel modules now and at boot. */
export const loadKernelModules = definePhase<HostPreparation, ModuleFacts>({
  name: 'kernel-modules',
  short: 'Load kernel modules',
  observe: ({ host, signal }, { kernelModules }) => observe(host, moduleFacts(kernelModules ?? []), signal),
  plan: (facts, { kernelModules }) => planModules(kernelModules ?? [], facts),
});

/** Sets kernel parameters now and at boot. */
export const setSysctls = definePhase<HostPreparation, SysctlFacts>({
  name: 'sysctls',
  short: 'Set kernel parameters',
  observe: ({ host, signal }, { sysctls }) => observe(host, sysctlFacts(Object.keys(sysctls ?? {})), signal),
  plan: (facts, { sysctls }) => planSysctls(sysctls ?? {}, facts),
});
