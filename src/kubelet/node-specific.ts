import type { JsonObject } from '../base/json.ts';
import { upTo } from '../base/text/up-to.ts';

/** Fields with host-specific values, which do not belong in a configuration for all nodes. */
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

/** Whether a field is host-specific. */
export function isNodeSpecific(path: string): boolean {
  return NODE_SPECIFIC.includes(upTo(upTo(path, '.'), '['));
}

/** Splits a configuration into shared and host-specific fields. */
export function partNodeSpecific(config: JsonObject): { readonly shared: JsonObject; readonly own: JsonObject } {
  const entries = Object.entries(config);
  return {
    shared: Object.fromEntries(entries.filter(([name]) => !isNodeSpecific(name))),
    own: Object.fromEntries(entries.filter(([name]) => isNodeSpecific(name))),
  };
}
