import type { JsonObject } from '../base/json.ts';
import { upTo } from '../base/text/up-to.ts';

/** Fields whose value belongs to one machine: they have no place in a configuration for all nodes. */
const NODE_SPECIFIC: readonly string[] = [
  'address',
  'containerRuntimeEndpoint',
  'imageServiceEndpoint',
  'podCIDR',
  'providerID',
  'registerWithTaints',
  'reservedMemory',
  'reservedSystemCPUs',
  'resolvConf',
  'tlsCertFile',
  'tlsPrivateKeyFile',
];

/** Tells whether a field belongs to one machine. */
export function isNodeSpecific(path: string): boolean {
  return NODE_SPECIFIC.includes(upTo(upTo(path, '.'), '['));
}

/** A configuration parted into what may be shared and what is one machine's. */
export function partNodeSpecific(config: JsonObject): { readonly shared: JsonObject; readonly own: JsonObject } {
  const entries = Object.entries(config);
  return {
    shared: Object.fromEntries(entries.filter(([name]) => !isNodeSpecific(name))),
    own: Object.fromEntries(entries.filter(([name]) => isNodeSpecific(name))),
  };
}
