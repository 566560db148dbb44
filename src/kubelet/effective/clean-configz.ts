import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import type { ObjectNode } from '../../codec/type-node.ts';
import type { Catalogue, Minor } from '../catalogue.ts';
import { defaultKubeletConfiguration } from '../defaults/default-kubelet-configuration.ts';
import { effectiveConfiguration } from '../defaults/effective-configuration.ts';
import { partNodeSpecific } from '../node-specific.ts';
import { kubeletConfigurationType } from '../type.ts';
import { deprecatedFields } from '../validate/deprecation-rules.ts';

export interface CleanConfigz {
  /** What may be shared by all nodes. */
  readonly shared: JsonObject;
  /** What belongs to this machine. */
  readonly own: JsonObject;
  /** Fields whose values the kubelet does not tell. */
  readonly masked: readonly string[];
}

export interface CleanOptions {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  /** Leave out what the kubelet would have anyway. */
  readonly withoutDefaults: boolean;
}

/**
 * Makes a configuration file out of what a running kubelet has in force. A payload made of configz as it is would freeze defaults and carry one machine's
 * values to all. Deprecated fields are left out: they have no effect, or the next versions refuse them.
 * @param config as `readConfigz` gives it
 * @returns without apiVersion and kind
 */
export function cleanConfigz(config: JsonObject, { minor, catalogue, withoutDefaults }: CleanOptions): CleanConfigz {
  const { apiVersion: _version, kind: _kind, ...fields } = config;
  const masked = hasMask(fields.staticPodURLHeader) ? ['staticPodURLHeader'] : [];
  const reported = Object.fromEntries(Object.entries(fields).filter(([name]) => !masked.includes(name)));
  const defaults = effectiveConfiguration(defaultKubeletConfiguration(minor, catalogue), { minor, catalogue });
  const type = kubeletConfigurationType(catalogue, minor);
  const current = withoutPaths(reported, deprecatedFields(reported, minor));
  const kept = withoutDefaults ? dropDefaults(current, defaults, type) : current;
  return { ...partNodeSpecific(kept), masked };
}

/** @param paths names separated by dots */
function withoutPaths(config: JsonObject, paths: readonly string[]): JsonObject {
  return paths.reduce((left, path) => withoutPath(left, path.split('.')), config);
}

function withoutPath(config: JsonObject, [name = '', ...rest]: readonly string[]): JsonObject {
  const { [name]: inner, ...others } = config;
  return rest.length === 0 || !isJsonObject(inner) ? others : { ...config, [name]: withoutPath(inner, rest) };
}

const MASK = '<masked>';

function hasMask(value: Json | undefined): boolean {
  return isJsonObject(value) && Object.values(value).some((list) => Array.isArray(list) && list.includes(MASK));
}

/** Maps are one value: a part of `evictionHard` says something else than the whole. */
function dropDefaults(config: JsonObject, defaults: JsonObject, type: ObjectNode): JsonObject {
  const entries = Object.entries(config).flatMap(([name, value]): [string, Json][] => {
    const field = type.fields.get(name);
    const usual = defaults[name];
    if (field?.type.kind === 'object' && isJsonObject(value)) {
      const inner = dropDefaults(value, isJsonObject(usual) ? usual : {}, field.type);
      return Object.keys(inner).length === 0 ? [] : [[name, inner]];
    }
    if (jsonEqual(value, usual) || (usual === undefined && field?.pointer !== true && isSilent(value))) return [];
    return [[name, value]];
  });
  return Object.fromEntries(entries);
}

function isSilent(value: Json): boolean {
  return value === '' || value === 0 || value === false || value === '0s' || value === '0' || (Array.isArray(value) && value.length === 0);
}
