import type { Arg } from '../../base/arg.ts';
import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { parseKubernetesVersion, releaseOfVersion } from '../../base/kubernetes-version.ts';
import { formatFieldPath } from '../../codec/field-path.ts';
import { applyClusterDefaults } from './defaults.ts';
import { encodeClusterConfiguration } from './encode.ts';
import type { ClusterConfiguration } from './model.ts';

/** A setting with different values in a file and in the cluster. */
export interface ClusterDifference {
  /** `apiServer.extraArgs.v` for an argument; a list is one setting. */
  readonly path: string;
  /** Undefined: not set. */
  readonly declared: Json | undefined;
  readonly found: Json | undefined;
}

/**
 * Compares the settings of a ClusterConfiguration file with those of the cluster. Settings that the file does not contain are not
 * compared, and no version that is only a label (`stable-1`).
 * @param declared as written
 * @param bindPort of the API server, for a `controlPlaneEndpoint` without a port
 */
export function diffClusterConfiguration(
  declared: ClusterConfiguration,
  found: ClusterConfiguration,
  bindPort?: number,
): readonly ClusterDifference[] {
  return leavesOf(declared as JsonObject, comparable(declared, bindPort), comparable(found, bindPort), []);
}

function leavesOf(written: JsonObject, declared: JsonObject, found: JsonObject, parent: readonly string[]): readonly ClusterDifference[] {
  return Object.entries(written).flatMap(([name, value]) => {
    const path = [...parent, name];
    if (isJsonObject(value)) return leavesOf(value, membersOf(declared[name]), membersOf(found[name]), path);
    if (name === 'extraArgs') return diffArgs(membersOf(declared[name]), membersOf(found[name]), path);
    if (path[0] === 'kubernetesVersion' && parseKubernetesVersion(String(value))?.kind !== 'release') return [];
    return jsonEqual(declared[name], found[name]) ? [] : [{ path: formatFieldPath(path), declared: declared[name], found: found[name] }];
  });
}

/** An argument that only the cluster has is a difference too: the file declares the whole list. */
function diffArgs(declared: JsonObject, found: JsonObject, path: readonly string[]): readonly ClusterDifference[] {
  return [...new Set([...Object.keys(declared), ...Object.keys(found)])]
    .filter((name) => !jsonEqual(declared[name], found[name]))
    .map((name) => ({ path: formatFieldPath([...path, name]), declared: declared[name], found: found[name] }));
}

/** The document as kubeadm stores it; arguments by name, and lists of texts sorted, because their order has no effect. */
function comparable(cluster: ClusterConfiguration, bindPort: number | undefined): JsonObject {
  const encoded = encodeClusterConfiguration(applyClusterDefaults(cluster, bindPort));
  return normalize({ ...encoded, kubernetesVersion: releaseOfVersion(String(encoded.kubernetesVersion)) });
}

function normalize(members: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => {
      if (isJsonObject(value)) return [name, normalize(value)];
      if (name === 'extraArgs') return [name, byName(value as unknown as readonly Arg[])];
      const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string');
      return [name, isTexts ? [...value].sort() : value];
    }),
  );
}

/** The values of each argument. */
function byName(args: readonly Arg[]): JsonObject {
  return Object.fromEntries(args.map(({ name }) => [name, args.filter((each) => each.name === name).map(({ value }) => value)]));
}

function membersOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
