import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { defaultEvictionHard } from '../catalogue/conditional-defaults.ts';
import { type DefaultsOptions, fillKubeletDefaults } from './default-kubelet-configuration.ts';

/**
 * The first minor that sets hard eviction thresholds after reading its configuration instead of by
 * defaulting.
 */
const EVICTION_FILLED_SINCE: Minor = 26;

/**
 * The effective configuration of a kubelet with this file: with defaults, and with the hard eviction
 * thresholds set after defaulting.
 * @param config result of `decodeKubeletConfiguration`
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go loadConfigFile (1.26 to 1.36)
 */
export function effectiveConfiguration(config: JsonObject, options: DefaultsOptions): JsonObject {
  const filled = fillKubeletDefaults(config, options);
  if (options.minor < EVICTION_FILLED_SINCE) return filled;
  const { evictionHard } = filled;
  if (!isJsonObject(evictionHard)) return { ...filled, evictionHard: defaultEvictionHard(options.minor) };
  return filled.mergeDefaultEvictionSettings === true
    ? { ...filled, evictionHard: { ...defaultEvictionHard(options.minor), ...evictionHard } }
    : filled;
}
