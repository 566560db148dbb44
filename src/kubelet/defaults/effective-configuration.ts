import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { Catalogue, Field, KubeletReader, Minor } from '../catalogue/catalogue.ts';
import { CONDITIONAL_DEFAULTS, defaultEvictionHard } from '../catalogue/conditional-defaults.ts';
import { type FeatureGates, resolveFeatureGates } from '../catalogue/feature-gates.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../documents/decode.ts';
import { isZero } from '../documents/values.ts';

/**
 * The configuration of a kubelet with an empty file: all defaults of its minor, with apiVersion and kind.
 * Fields unset by defaulting are missing. (The running kubelet sets `evictionHard` of 1.26 and later, see
 * `defaultEvictionHard`.)
 */
export function defaultKubeletConfiguration(minor: Minor, catalogue: Catalogue): JsonObject {
  return fillKubeletDefaults({ apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND }, { minor, catalogue });
}

/**
 * Fills in defaults as the kubelet does: in absent pointers and lists, and in other fields also for an
 * explicit zero.
 * @param config result of `decodeKubeletConfiguration`; not changed
 * @returns a new object; given fields keep their order, defaults follow
 * @see kubernetes/kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go (1.20 to 1.36)
 *   SetDefaults_KubeletConfiguration
 */
export function fillKubeletDefaults(
  config: JsonObject,
  { minor, catalogue, gates }: KubeletReader & { readonly gates?: FeatureGates },
): JsonObject {
  const draft = copyObjects(config);
  const facts = { config, minor, gates: gates ?? resolveFeatureGates(gatesOf(config), minor, catalogue) };
  for (const { path, field } of catalogue.defaultedFields(minor)) {
    const conditional = CONDITIONAL_DEFAULTS.get(field.path);
    const value = conditional === undefined ? field.default : conditional(facts, field.default);
    if (value !== undefined && value !== null) fill(draft, path, field, value);
  }
  return draft;
}

/** `featureGates` of a configuration; values other than booleans are omitted. */
export function gatesOf(config: JsonObject): Readonly<Record<string, boolean>> {
  const given = config.featureGates;
  if (!isJsonObject(given)) return {};
  return Object.fromEntries(Object.entries(given).filter((entry): entry is [string, boolean] => typeof entry[1] === 'boolean'));
}

type Draft = { [key: string]: Json };

function fill(draft: Draft, path: readonly string[], field: Field, value: Json): void {
  let object = draft;
  for (const name of path.slice(0, -1)) {
    const inner = object[name];
    if (isJsonObject(inner)) object = inner as Draft;
    else {
      const made: Draft = Object.create(null);
      object[name] = made;
      object = made;
    }
  }
  const name = path.at(-1) as string;
  const given = object[name];
  // Lists and maps get defaults only if absent: an empty one is a value.
  if (given === undefined || given === null || (!field.pointer && isZero(given)) || ALWAYS_REPLACED.has(field.path)) object[name] = value;
}

/** Fields whose condition also changes given values. */
const ALWAYS_REPLACED: ReadonlySet<string> = new Set(['podPidsLimit']);

/** Copies objects as deep as defaults may be set; lists are shared. */
function copyObjects(object: JsonObject): Draft {
  const draft: Draft = Object.create(null);
  for (const key of Object.keys(object)) {
    const value = object[key] as Json;
    draft[key] = isJsonObject(value) ? copyObjects(value) : value;
  }
  return draft;
}

/** The first minor that sets hard eviction thresholds after reading its configuration instead of by defaulting. */
const EVICTION_FILLED_SINCE: Minor = 26;

/**
 * The effective configuration of a kubelet with this file: with defaults, and with the hard eviction
 * thresholds set after defaulting.
 * @param config result of `decodeKubeletConfiguration`
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go loadConfigFile (1.26 to 1.36)
 */
export function effectiveConfiguration(config: JsonObject, options: KubeletReader): JsonObject {
  const filled = fillKubeletDefaults(config, options);
  if (options.minor < EVICTION_FILLED_SINCE) return filled;
  const { evictionHard } = filled;
  if (!isJsonObject(evictionHard)) return { ...filled, evictionHard: defaultEvictionHard(options.minor) };
  return filled.mergeDefaultEvictionSettings === true
    ? { ...filled, evictionHard: { ...defaultEvictionHard(options.minor), ...evictionHard } }
    : filled;
}
