import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { Minor } from '../catalogue.ts';
import { defaultEvictionHard } from './default-eviction.ts';
import { type DefaultsOptions, fillKubeletDefaults } from './default-kubelet-configuration.ts';

/** The first minor that fills in hard eviction thresholds after it has read its configuration, not by defaulting. */
const EVICTION_FILLED_SINCE: Minor = 26;

/**
 * What is in force in a kubelet that runs with this configuration file: its defaults, and the hard eviction thresholds it fills in after them.
 * @param config as `decodeKubeletConfiguration` gives it
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
