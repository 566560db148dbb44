import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';

/** The layer of a value, in order of application: later layers win. */
export type LayerName =
  | 'kubelet default'
  | 'kubeadm default'
  | 'cluster'
  | 'host'
  | 'node'
  | 'patch'
  | 'instance-config'
  | 'set'
  | 'config file'
  | 'dynamic config'
  | 'drop-in'
  | 'flag';

export interface Origin {
  readonly layer: LayerName;
  /** Exact source: `init.yaml:12:3`, `systemd-resolved is active`, `patches/kubeletconfiguration.yaml`. */
  readonly source: string;
  /** Of a flag on a host: its name, and the file that sets it. */
  readonly flag?: { readonly name: string; readonly file: string | undefined };
}

/** The value of a field in one layer; `value` is undefined if the layer removed the field. */
export interface FieldStep {
  readonly origin: Origin;
  readonly value: Json | undefined;
}

/** A configuration with the history of every leaf by layer; the last entry is in force. */
export interface LayeredConfig {
  readonly config: JsonObject;
  readonly history: ReadonlyMap<string, readonly FieldStep[]>;
}

export const NO_LAYERS: LayeredConfig = { config: {}, history: new Map() };

/** A layer: an overlay that is merged over the previous layers, or the complete configuration including the layer. */
export type Layer = {
  /** Origin of a leaf in this layer. */
  readonly originOf: (path: string) => Origin;
} & (
  | { readonly overlay: JsonObject }
  /** `sets`: leaves that the layer sets, even to the same value: the origin of a repeated value is its last layer. */
  | { readonly result: JsonObject; readonly sets?: Iterable<string> }
);

/** Adds a layer on top. An overlay sets all its leaves. */
export function addLayer(current: LayeredConfig, layer: Layer): LayeredConfig {
  const { originOf } = layer;
  const result = 'overlay' in layer ? mergeConfig(current.config, layer.overlay) : layer.result;
  const before = leavesOf(current.config);
  const after = leavesOf(result);
  const named = new Set('overlay' in layer ? leavesOf(layer.overlay).keys() : layer.sets);
  const history = new Map(current.history);
  for (const path of new Set([...before.keys(), ...after.keys()])) {
    if (jsonEqual(before.get(path), after.get(path)) && !named.has(path)) continue;
    history.set(path, [...(history.get(path) ?? []), { origin: originOf(path), value: after.get(path) }]);
  }
  return { config: result, history };
}

/** The current origin of every leaf as text: `layer: source`. */
export function originTexts(layered: LayeredConfig): Readonly<Record<string, string>> {
  const entries: [string, string][] = [];
  for (const path of leavesOf(layered.config).keys()) {
    const origin = layered.history.get(path)?.at(-1)?.origin;
    if (origin) entries.push([path, formatOrigin(origin)]);
  }
  return Object.fromEntries(entries);
}

/** `layer: source`. */
export function formatOrigin(origin: Origin): string {
  return `${origin.layer}: ${origin.source}`;
}

/**
 * All leaves by path: scalars, lists and empty objects. Keys with special characters are in brackets:
 * `evictionHard[memory.available]`.
 */
export function leavesOf(config: JsonObject): ReadonlyMap<string, Json> {
  const leaves = new Map<string, Json>();
  collectLeaves(config, '', leaves);
  return leaves;
}

/** The path in `leavesOf` of a path that has all keys of maps in brackets, as in problems and changes of fields. */
export function leafPath(path: string): string {
  return path.replace(/\[([A-Za-z_][\w-]*)\]/g, '.$1');
}

/**
 * A path with dots before all members: `evictionHard[memory.available]` and `evictionHard.memory.available`
 * name the same one.
 */
export function dottedPath(path: string): string {
  return path.replaceAll('[', '.').replaceAll(']', '');
}

/** Whether a path names a field, or a part of it. */
export function isAtOrBelow(path: string, field: string): boolean {
  return path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`);
}

function collectLeaves(object: JsonObject, prefix: string, leaves: Map<string, Json>): void {
  for (const [key, value] of Object.entries(object)) {
    const path = joinPath(prefix, key);
    if (isJsonObject(value) && Object.keys(value).length > 0) collectLeaves(value, path, leaves);
    else leaves.set(path, value);
  }
}

function joinPath(prefix: string, key: string): string {
  if (!/^[A-Za-z_][\w-]*$/.test(key)) return `${prefix}[${key}]`;
  return prefix === '' ? key : `${prefix}.${key}`;
}

/** Merges an overlay: objects by key; lists and scalars are replaced (as in the kubelet's own drop-in directory). */
export function mergeConfig(base: JsonObject, overlay: JsonObject): JsonObject {
  const merged = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(overlay)) {
    const under = merged.get(key);
    merged.set(key, isJsonObject(value) && isJsonObject(under) ? mergeConfig(under, value) : value);
  }
  return Object.fromEntries(merged);
}

/**
 * A field's path and its parents, innermost first: `a[0].b` gives `a[0].b`, `a[0]` and `a`. Because names of
 * map members may contain dots and brackets, some paths may not exist, but all existing ones are included.
 */
export function enclosingPaths(path: string): readonly string[] {
  const paths: string[] = [];
  for (let at = path; at !== ''; at = at.slice(0, Math.max(at.lastIndexOf('.'), at.lastIndexOf('['), 0))) paths.push(at);
  return paths;
}
