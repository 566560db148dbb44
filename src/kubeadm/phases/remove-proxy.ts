import { planProxyRemoval, type RemovedProxyFacts, removedProxyFacts } from '../../host/install/proxy.ts';
import { observe } from '../../host/observe.ts';
import { definePhase } from '../../host/phase.ts';

/** Removes the proxy that `apply` configured. Its file may contain credentials. A proxy of the image is kept. */
export const removeProxy = definePhase<null, RemovedProxyFacts>({
  name: 'proxy',
  short: 'Remove the HTTP proxy settings that a fleet file configured',
  observe: ({ host, signal }) => observe(host, removedProxyFacts, signal),
  plan: planProxyRemoval,
});
