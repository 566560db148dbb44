import type { Arg } from '../../base/arg.ts';
import { AppError, type Position, type Problem } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { cleanPath } from '../../base/text/clean-path.ts';
import { parseSource, type Source, sourceToJson } from '../../codec/source.ts';
import type { CommandLinePlace } from '../../host/systemd/exec-start.ts';
import { type Catalogue, formatMinor, type KubeletReader, type Minor } from '../catalogue/catalogue.ts';
import { defaultKubeletConfiguration, effectiveConfiguration, fillKubeletDefaults } from '../defaults/effective-configuration.ts';
import { decodeKubeletConfiguration, syntaxOf, withoutHeader } from '../documents/decode.ts';
import { encodeKubeletConfiguration } from '../documents/encode.ts';
import { textAt } from '../documents/values.ts';
import { readFlagSettings } from '../flags/flag-value.ts';
import { setAt } from '../layers/kubeadm-defaults.ts';
import { addLayer, type LayeredConfig, type LayerName, leavesOf, mergeConfig, NO_LAYERS, type Origin } from '../layers/layers.ts';

/** A file of the host. */
export interface HostText {
  readonly path: string;
  readonly text: string;
}

/** A parsed file, for several uses. */
export interface ParsedHostFile {
  readonly path: string;
  readonly source: Source;
  readonly syntax: 'yaml' | 'json';
}

/** Parses a file of a host; its errors are in `source.problems`. */
export function parseHostFile({ path, text }: HostText): ParsedHostFile {
  return { path, source: parseSource(text, path), syntax: syntaxOf(text) };
}

/** A flag of a kubelet's command line with its place on the host. */
export interface PlacedFlag extends Arg, CommandLinePlace {}

export interface RunningConfigInput {
  readonly catalogue: Catalogue;
  /** Minor of the host's kubelet. */
  readonly minor: Minor;
  /** File of `--config`; null without that flag, which also changes the defaults. */
  readonly configFile: HostText | ParsedHostFile | null;
  /** Checkpoint of the dynamic configuration, which replaces the file (kubelets up to 1.23). */
  readonly dynamicConfig: HostText | ParsedHostFile | null;
  /** Drop-in files of `--config-dir`, in merge order. */
  readonly dropIns: readonly (HostText | ParsedHostFile)[];
  readonly flags: readonly PlacedFlag[];
}

export interface RunningConfig {
  /** Effective configuration of the next start, without apiVersion and kind, with the layer of each field. */
  readonly layered: LayeredConfig;
  /** Ignored parts: unknown fields and invalid flag values, as warnings. */
  readonly problems: readonly Problem[];
}

/**
 * Merges the configuration of a host's kubelet as the kubelet does at its start: defaults < configuration
 * file < drop-in files < flags.
 * @throws AppError with the positions of errors in a file that prevent the kubelet from starting
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go NewKubeletCommand (1.20 to 1.36)
 */
export function layerRunningConfig(input: RunningConfigInput): RunningConfig {
  const problems: Problem[] = [];
  const { minor, catalogue, configFile, dynamicConfig, dropIns } = input;
  const defaults = withoutHeader(defaultKubeletConfiguration(minor, catalogue));
  const bottom = addLayer(NO_LAYERS, {
    result: defaults,
    originOf: () => ({ layer: 'kubelet default', source: `kubelet ${formatMinor(minor)}` }),
  });
  let current = configFile === null ? addFlagsOnlyDefaults(bottom) : addFile(bottom, configFile, 'config file', input, problems);
  if (dynamicConfig !== null) current = addFile(current, dynamicConfig, 'dynamic config', input, problems);
  if (dropIns.length > 0) current = addDropIns(current, input, problems);
  return { layered: addFlags(current, input, problems), problems };
}

const FLAGS_ONLY_DEFAULTS: readonly (readonly [string, Json])[] = [
  ['authentication.anonymous.enabled', true],
  ['authentication.webhook.enabled', false],
  ['authorization.mode', 'AlwaysAllow'],
  ['readOnlyPort', 10255],
];

function addFlagsOnlyDefaults(current: LayeredConfig): LayeredConfig {
  const config = FLAGS_ONLY_DEFAULTS.reduce((under, [path, value]) => setAt(under, path.split('.'), value), current.config);
  return addLayer(current, {
    result: config,
    originOf: () => ({ layer: 'kubelet default', source: 'without a configuration file' }),
  });
}

/** A file replaces all previous values: omitted fields have their defaults again. */
function addFile(
  current: LayeredConfig,
  file: HostText | ParsedHostFile,
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
      : { layer: 'kubelet default', source: `not set in ${file.path}` };
  return addLayer(current, { result: config, originOf, sets: written });
}

/**
 * Drop-in files are JSON merge patches on Go's output of the configuration, which includes defaults but no empty
 * lists; then defaults are set again.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go mergeKubeletConfigurations (1.28 to 1.36)
 */
function addDropIns(current: LayeredConfig, { dropIns, minor, catalogue }: RunningConfigInput, problems: Problem[]): LayeredConfig {
  const options = { minor, catalogue };
  const printed = onlyPrinted(current.config, encodeKubeletConfiguration(current.config, options));
  const bottom = addLayer(current, {
    result: printed,
    originOf: () => ({ layer: 'kubelet default', source: 'removed by the merge of drop-in files because empty' }),
  });
  const merged = dropIns.reduce((under, file) => addDropIn(under, file, options, problems), bottom);
  const config = withoutHeader(fillKubeletDefaults(merged.config, options));
  return addLayer(merged, { result: config, originOf: () => ({ layer: 'kubelet default', source: 'not set by the drop-in files' }) });
}

/** Removes values that Go omits from its output: empty lists and maps, and zeros that are not pointers. */
function onlyPrinted(config: JsonObject, printed: Json | undefined): JsonObject {
  if (!isJsonObject(printed)) return config;
  const entries = Object.entries(config).filter(([key]) => Object.hasOwn(printed, key));
  return Object.fromEntries(entries.map(([key, value]) => [key, isJsonObject(value) ? onlyPrinted(value, printed[key]) : value]));
}

function addDropIn(current: LayeredConfig, file: HostText | ParsedHostFile, options: KubeletReader, problems: Problem[]): LayeredConfig {
  const { decoded, root } = readFile(file, options, problems);
  const reported = root === null ? {} : sourceToJson(root);
  const patch = withoutNulls(withoutHeader(decoded.value), reported);
  const merged = mergeConfig(withoutNulls(current.config, reported), patch);
  const originOf = (path: string): Origin => ({ layer: 'drop-in', source: placeIn(decoded.fields, path, file) });
  return addLayer(current, { result: merged, originOf, sets: leavesOf(patch).keys() });
}

function addFlags(current: LayeredConfig, { flags, minor, catalogue }: RunningConfigInput, problems: Problem[]): LayeredConfig {
  const { settings, unreadable } = readFlagSettings(flags, current.config, { minor, catalogue });
  for (const { flag, path, why } of unreadable)
    problems.push({
      code: 'KUBELET_FLAG_INVALID',
      severity: 'warning',
      path,
      message: `the kubelet does not start with --${flag.name}: ${why}`,
    });
  return settings.reduce((under, { path, value, own, last }) => {
    const { source = 'command line', file } = flags.findLast((flag) => flag.name === last.name) ?? {};
    return addLayer(under, {
      result: setAt(under.config, path.split('.'), value),
      originOf: () => ({ layer: 'flag', source: `--${last.name}, ${source}`, flag: { name: last.name, file } }),
      sets: leavesOf(setAt({}, path.split('.'), own)).keys(),
    });
  }, current);
}

/** Reads the first document, because the kubelet ignores others. */
function readFile(file: HostText | ParsedHostFile, options: KubeletReader, problems: Problem[]) {
  const { source, syntax } = 'source' in file ? file : parseHostFile(file);
  const document = source.documents[0];
  if (source.problems.length > 0) throw new AppError(source.problems);
  if (document === undefined)
    throw new AppError({ code: 'CONFIG_NO_DOCUMENT', message: `${file.path} is empty: the kubelet does not start with an empty file` });
  const decoded = decodeKubeletConfiguration(document, { ...options, lenient: true, syntax });
  const errors = decoded.problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors);
  problems.push(...decoded.problems);
  return { decoded, root: document.root };
}

/** The leaves of a layer whose value took effect: a zero replaced by a default counts as omitted. */
function inForce(given: JsonObject, config: JsonObject): ReadonlySet<string> {
  const leaves = leavesOf(config);
  return new Set([...leavesOf(given)].flatMap(([path, value]) => (jsonEqual(leaves.get(path), value) ? [path] : [])));
}

/** Positions use `kubeReserved[cpu]`, leaves `kubeReserved.cpu`. */
function placeIn(fields: ReadonlyMap<string, Position>, path: string, { path: file }: Pick<HostText, 'path'>): string {
  const position = fields.get(path) ?? fields.get(path.replace(/\.([^.[\]]+)$/, '[$1]'));
  return position === undefined ? file : `${file}:${position.line}`;
}

/** Removes fields that a drop-in file sets to null, at any depth: the kubelet applies it as a merge patch. */
export function withoutNulls(config: JsonObject, patch: Json): JsonObject {
  if (!isJsonObject(patch)) return config;
  const entries = Object.entries(config).flatMap(([key, value]): [string, Json][] => {
    const reported = Object.hasOwn(patch, key) ? patch[key] : undefined;
    if (reported === null) return [];
    return [[key, isJsonObject(value) && isJsonObject(reported) ? withoutNulls(value, reported) : value]];
  });
  return Object.fromEntries(entries);
}

/** Fields with a path, and the first minor that resolves a relative path against the directory of the file. */
const PATH_FIELDS: readonly (readonly [string, Minor])[] = [
  ['staticPodPath', 0],
  ['authentication.x509.clientCAFile', 0],
  ['tlsCertFile', 0],
  ['tlsPrivateKeyFile', 0],
  ['resolvConf', 0],
  ['volumePluginDir', 20],
  ['podLogsDir', 30],
];

/**
 * Makes the relative paths of a configuration absolute, as the kubelet does when it loads the file.
 * @param file absolute path of the file
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig/configfiles (1.20 to 1.36)
 */
export function resolveRelativePaths(config: JsonObject, file: string, minor: Minor): JsonObject {
  const directory = file.slice(0, file.lastIndexOf('/'));
  return PATH_FIELDS.reduce((current, [path, since]) => {
    const value = textAt(current, path);
    return value === '' || value.startsWith('/') || minor < since
      ? current
      : setAt(current, path.split('.'), cleanPath(`${directory}/${value}`));
  }, config);
}

/**
 * Whether a path is resolved against the directory of the file in this minor, but as a flag against the
 * kubelet's working directory.
 */
export function isRelativePath(path: string, value: Json, minor: Minor): boolean {
  const since = PATH_FIELDS.find(([field]) => field === path)?.[1];
  return since !== undefined && minor >= since && typeof value === 'string' && value !== '' && !value.startsWith('/');
}
