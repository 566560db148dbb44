import type { Arg } from '../../base/arg.ts';
import { AppError, type Position, type Problem } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { parseSource, type Source, type SourceNode, sourceToJson } from '../../codec/source.ts';
import { type Catalogue, formatMinor, type Minor } from '../catalogue.ts';
import { type DecodedKubeletConfiguration, decodeKubeletConfiguration, syntaxOf } from '../decode.ts';
import { defaultKubeletConfiguration, fillKubeletDefaults } from '../defaults/default-kubelet-configuration.ts';
import { effectiveConfiguration } from '../defaults/effective-configuration.ts';
import { encodeKubeletConfiguration } from '../encode.ts';
import { readFlagSettings } from '../flags/apply-flags.ts';
import { setAt } from '../kubeadm-defaults.ts';
import { addLayer, type LayeredConfig, type LayerName, leavesOf, mergeConfig, NO_LAYERS, type Origin } from '../layers.ts';
import { resolveRelativePaths } from './host-paths.ts';

/** A file of the host. */
export interface HostText {
  readonly path: string;
  readonly text: string;
}

/** The same, read: for one that is looked at more than once. */
export interface ReadHostText {
  readonly path: string;
  readonly source: Source;
  readonly syntax: 'yaml' | 'json';
}

/** Reads a file of a host; what is wrong with it is in `source.problems`. */
export function readHostText({ path, text }: HostText): ReadHostText {
  return { path, source: parseSource(text, path), syntax: syntaxOf(text) };
}

/** A flag of a kubelet's command line, and where on the host it is written. */
export interface PlacedFlag extends Arg {
  readonly source: string;
}

export interface RunningConfigInput {
  readonly catalogue: Catalogue;
  /** Of the kubelet that runs there. */
  readonly minor: Minor;
  /** What `--config` names; null without that flag: then other defaults count. */
  readonly configFile: HostText | ReadHostText | null;
  /** The checkpoint of the dynamic configuration, which takes the place of the file (kubelets up to 1.23). */
  readonly dynamicConfig: HostText | ReadHostText | null;
  /** Fragments of `--config-dir`, in the order they are merged. */
  readonly dropIns: readonly (HostText | ReadHostText)[];
  readonly flags: readonly PlacedFlag[];
}

export interface RunningConfig {
  /** What a kubelet that starts now would have in force, without apiVersion and kind, and which layer each field is from. */
  readonly layered: LayeredConfig;
  /** What the kubelet passes over: unknown fields and values of flags it does not take. Warnings. */
  readonly problems: readonly Problem[];
}

/**
 * Lays a host's kubelet configuration together as the kubelet does at its start: defaults < configuration file < drop-in fragments < flags.
 * @throws AppError with the places of what a file has wrong, where the kubelet would not start with it
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go NewKubeletCommand (1.20 to 1.36)
 */
export function layerRunningConfig(input: RunningConfigInput): RunningConfig {
  const problems: Problem[] = [];
  const { minor, catalogue, configFile, dynamicConfig, dropIns } = input;
  const defaults = withoutHeader(defaultKubeletConfiguration(minor, catalogue));
  const bottom = addLayer(NO_LAYERS, defaults, () => ({ layer: 'kubelet default', source: `kubelet ${formatMinor(minor)}` }));
  let current = configFile === null ? addFlagsOnlyDefaults(bottom) : addFile(bottom, configFile, 'config file', input, problems);
  if (dynamicConfig !== null) current = addFile(current, dynamicConfig, 'dynamic config', input, problems);
  if (dropIns.length > 0) current = addDropIns(current, input, problems);
  return { layered: addFlags(current, input, problems), problems };
}

/** What counts without a configuration file. */
const FLAGS_ONLY_DEFAULTS: readonly (readonly [string, Json])[] = [
  ['authentication.anonymous.enabled', true],
  ['authentication.webhook.enabled', false],
  ['authorization.mode', 'AlwaysAllow'],
  ['readOnlyPort', 10255],
];

function addFlagsOnlyDefaults(current: LayeredConfig): LayeredConfig {
  const config = FLAGS_ONLY_DEFAULTS.reduce((under, [path, value]) => setAt(under, path.split('.'), value), current.config);
  return addLayer(current, config, () => ({ layer: 'kubelet default', source: 'without a configuration file' }));
}

/** A file replaces all that was there: what it leaves out has its default again. */
function addFile(
  current: LayeredConfig,
  file: HostText | ReadHostText,
  layer: LayerName,
  { minor, catalogue }: RunningConfigInput,
  problems: Problem[],
): LayeredConfig {
  const decoded = readFile(file, { minor, catalogue }, problems).decoded;
  const given = resolveRelativePaths(decoded.value, file.path, minor);
  const config = withoutHeader(effectiveConfiguration(given, { minor, catalogue }));
  const written = inForce(withoutHeader(given), config);
  const originOf = (path: string): Origin =>
    written.has(path)
      ? { layer, source: placeIn(decoded.fields, path, file) }
      : { layer: 'kubelet default', source: `${file.path} leaves it out` };
  return addLayer(current, config, originOf, written);
}

/**
 * Fragments are JSON merge patches over what Go prints of the configuration, defaults included and empty lists left out; then defaults are filled in once more.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go mergeKubeletConfigurations (1.28 to 1.36)
 */
function addDropIns(current: LayeredConfig, { dropIns, minor, catalogue }: RunningConfigInput, problems: Problem[]): LayeredConfig {
  const options = { minor, catalogue };
  const printed = onlyPrinted(current.config, encodeKubeletConfiguration(current.config, options));
  const bottom = addLayer(current, printed, () => ({
    layer: 'kubelet default',
    source: 'what is empty does not outlive the merge of fragments',
  }));
  const merged = dropIns.reduce((under, file) => addDropIn(under, file, options, problems), bottom);
  const config = withoutHeader(fillKubeletDefaults(merged.config, options));
  return addLayer(merged, config, () => ({ layer: 'kubelet default', source: 'unset after the fragments' }));
}

/** Without what Go leaves out when it prints: empty lists and maps, zeros that are no pointers. */
function onlyPrinted(config: JsonObject, printed: Json | undefined): JsonObject {
  if (!isJsonObject(printed)) return config;
  const entries = Object.entries(config).filter(([key]) => Object.hasOwn(printed, key));
  return Object.fromEntries(entries.map(([key, value]) => [key, isJsonObject(value) ? onlyPrinted(value, printed[key]) : value]));
}

function addDropIn(
  current: LayeredConfig,
  file: HostText | ReadHostText,
  options: { readonly minor: Minor; readonly catalogue: Catalogue },
  problems: Problem[],
): LayeredConfig {
  const { decoded, root } = readFile(file, options, problems);
  const reported = root === null ? {} : sourceToJson(root);
  const patch = withoutNulls(withoutHeader(decoded.value), reported);
  const merged = mergeConfig(withoutNulls(current.config, reported), patch);
  const originOf = (path: string): Origin => ({ layer: 'drop-in', source: placeIn(decoded.fields, path, file) });
  return addLayer(current, merged, originOf, leavesOf(patch).keys());
}

function addFlags(current: LayeredConfig, { flags, minor, catalogue }: RunningConfigInput, problems: Problem[]): LayeredConfig {
  const { settings, unreadable } = readFlagSettings(flags, current.config, { minor, catalogue });
  for (const { flag, path, why } of unreadable)
    problems.push({
      code: 'KUBELET_FLAG_INVALID',
      severity: 'warning',
      path,
      message: `--${flag.name}: ${why}: the kubelet does not start with it`,
    });
  return settings.reduce((under, { path, value, own, last }) => {
    const reported = leavesOf(setAt({}, path.split('.'), own)).keys();
    const source = flags.findLast((flag) => flag.name === last.name)?.source ?? 'command line';
    return addLayer(
      under,
      setAt(under.config, path.split('.'), value),
      () => ({ layer: 'flag', source: `--${last.name}, ${source}` }),
      reported,
    );
  }, current);
}

interface ReadFile {
  readonly decoded: DecodedKubeletConfiguration;
  readonly root: SourceNode | null;
}

/** The first document: the kubelet reads no other. */
function readFile(
  file: HostText | ReadHostText,
  options: { readonly minor: Minor; readonly catalogue: Catalogue },
  problems: Problem[],
): ReadFile {
  const { source, syntax } = 'source' in file ? file : readHostText(file);
  const document = source.documents[0];
  if (source.problems.length > 0) throw new AppError(source.problems);
  if (document === undefined)
    throw new AppError({ code: 'CONFIG_NO_DOCUMENT', message: `${file.path} is empty: the kubelet does not start with it` });
  const decoded = decodeKubeletConfiguration(document, { ...options, lenient: true, syntax });
  const errors = decoded.problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors);
  problems.push(...decoded.problems);
  return { decoded, root: document.root };
}

/** The leaves of a layer that have the value it gave: a zero counts as left out where a default takes its place. */
function inForce(given: JsonObject, config: JsonObject): ReadonlySet<string> {
  const leaves = leavesOf(config);
  return new Set([...leavesOf(given)].flatMap(([path, value]) => (jsonEqual(leaves.get(path), value) ? [path] : [])));
}

/** Decoded values have positions by `kubeReserved[cpu]`, leaves are `kubeReserved.cpu`. */
function placeIn(fields: ReadonlyMap<string, Position>, path: string, { path: file }: Pick<HostText, 'path'>): string {
  const position = fields.get(path) ?? fields.get(path.replace(/\.([^.[\]]+)$/, '[$1]'));
  return position === undefined ? file : `${file}:${position.line}`;
}

/** Takes out what a fragment sets to null, at any depth: to the kubelet a merge patch, in which null removes. */
export function withoutNulls(config: JsonObject, patch: Json): JsonObject {
  if (!isJsonObject(patch)) return config;
  const entries = Object.entries(config).flatMap(([key, value]): [string, Json][] => {
    const reported = Object.hasOwn(patch, key) ? patch[key] : undefined;
    if (reported === null) return [];
    return [[key, isJsonObject(value) && isJsonObject(reported) ? withoutNulls(value, reported) : value]];
  });
  return Object.fromEntries(entries);
}

function withoutHeader({ apiVersion: _version, kind: _kind, ...fields }: JsonObject): JsonObject {
  return fields;
}
