import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { upTo } from '../../base/text/up-to.ts';
import type { ObjectNode } from '../../codec/type-node.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { defaultKubeletConfiguration, effectiveConfiguration } from '../defaults/effective-configuration.ts';
import { withoutHeader } from '../documents/decode.ts';
import { isUnset } from '../documents/values.ts';
import { deprecatedFields } from '../validate/advice-rules.ts';

/**
 * Converts the running configuration of a kubelet into a configuration file. Unfiltered configz as a payload
 * would freeze defaults and copy host-specific values to all nodes. Deprecated fields are omitted, because
 * they have no effect or later versions reject them.
 * @param config result of `readConfigz`
 * @param options.withoutDefaults omit values equal to the kubelet's defaults
 * @returns without apiVersion and kind: the fields that all nodes can share, the host-specific ones, and the names of those
 *   whose values configz hides
 */
export function cleanConfigz(
  config: JsonObject,
  { minor, catalogue, withoutDefaults }: KubeletReader & { readonly withoutDefaults: boolean },
): { readonly shared: JsonObject; readonly nodeSpecific: JsonObject; readonly masked: readonly string[] } {
  const fields = withoutHeader(config);
  const masked = hasMask(fields.staticPodURLHeader) ? ['staticPodURLHeader'] : [];
  const reported = Object.fromEntries(Object.entries(fields).filter(([name]) => !masked.includes(name)));
  const defaults = effectiveConfiguration(defaultKubeletConfiguration(minor, catalogue), { minor, catalogue });
  const type = catalogue.configurationType(minor);
  const current = deprecatedFields(reported, minor).reduce((left, path) => withoutPath(left, path.split('.')), reported);
  const kept = withoutDefaults ? dropDefaults(current, defaults, type) : current;
  const select = (isChosen: boolean): JsonObject =>
    Object.fromEntries(Object.entries(kept).filter(([name]) => isNodeSpecific(name) === isChosen));
  return { shared: select(false), nodeSpecific: select(true), masked };
}

function withoutPath(config: JsonObject, [name = '', ...rest]: readonly string[]): JsonObject {
  const { [name]: inner, ...others } = config;
  return rest.length === 0 || !isJsonObject(inner) ? others : { ...config, [name]: withoutPath(inner, rest) };
}

const MASK = '<masked>';

function hasMask(value: Json | undefined): boolean {
  return isJsonObject(value) && Object.values(value).some((list) => Array.isArray(list) && list.includes(MASK));
}

/** Maps are compared as a whole: a part of `evictionHard` means something else than the complete map. */
function dropDefaults(config: JsonObject, defaults: JsonObject, type: ObjectNode): JsonObject {
  const entries = Object.entries(config).flatMap(([name, value]): [string, Json][] => {
    const field = type.fields.get(name);
    const usual = defaults[name];
    if (field?.type.kind === 'object' && isJsonObject(value)) {
      const inner = dropDefaults(value, isJsonObject(usual) ? usual : {}, field.type);
      return Object.keys(inner).length === 0 ? [] : [[name, inner]];
    }
    if (jsonEqual(value, usual) || (usual === undefined && field?.pointer !== true && isUnset(value))) return [];
    return [[name, value]];
  });
  return Object.fromEntries(entries);
}

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
