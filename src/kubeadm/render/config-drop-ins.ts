import { AppError } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import { formatMinor, type Minor } from '../../kubelet/catalogue/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND, type ParsedConfig } from '../../kubelet/documents/decode.ts';
import { listUnknownFields } from '../../kubelet/documents/unknown-fields.ts';
import { type HostText, layerRunningConfig } from '../../kubelet/effective/running-config.ts';
import { CONFIG_DROP_INS_README, ownConfigDropInPath } from '../../kubelet/facts/own-config-drop-ins.ts';
import { setAt } from '../../kubelet/layers/kubeadm-defaults.ts';
import {
  addLayer,
  formatOrigin,
  type LayeredConfig,
  leavesOf,
  mergeConfig,
  type Origin,
  originTexts,
} from '../../kubelet/layers/layers.ts';
import type { FieldSetting } from '../../kubelet/layers/setting.ts';
import { classifyChanges } from '../../kubelet/validate/classify-changes.ts';
import { placeOf } from './cluster-config.ts';
import { layerNodeConfig, type NodeConfigInput, removeAt } from './node-config.ts';
import { kubeletConfigFile, rootFile } from './unit-files.ts';

/** A KubeletConfiguration for some nodes. `layer` names its owner: `baseline`, `group edge`, `host`. */
export interface NodeOverlay extends SourceDocument {
  readonly layer?: string | undefined;
}

/** Kubelets from this minor on read `--config-dir` without an environment variable. */
const FIRST_CONFIG_DIR_MINOR: Minor = 30;

interface ConfigDropInsInput extends NodeConfigInput {
  readonly templates: Templates;
  /** The documents of `overlays`, in the same order. */
  readonly named: readonly NodeOverlay[];
  /** The configuration of all layers. */
  readonly layered: LayeredConfig;
}

type FieldPath = readonly string[];

/** kubeletadm, its agent and other programs read these fields from config.yaml alone. */
const FIELDS_OF_CONFIG_YAML: readonly FieldPath[] = [['healthzBindAddress'], ['healthzPort'], ['authentication', 'x509', 'clientCAFile']];

/**
 * Writes the layers of a node as drop-in files of `--config-dir`, and config.yaml without them. A field to which a drop-in file
 * would give another value than the layers stays in config.yaml: `evictionHard`, whose members the kubelet merges over
 * its defaults, and fields of patches and instance-config, which the drop-in files would override.
 * @returns `base`: config.yaml with the cluster, the detected fields of the host, patches and instance-config; `files`: the
 *   drop-in files, and a text that explains them
 * @throws AppError CONFIG_DIR_UNSUPPORTED (exit code 3): the kubelet reads no drop-in files; CONFIG_DIR_DIFFERS (exit code
 *   2): the kubelet would read another configuration than that of the layers, or the layers are too many
 */
export function designConfigDropIns(input: ConfigDropInsInput) {
  const { minor, layered, templates } = input;
  if (minor < FIRST_CONFIG_DIR_MINOR) throw unsupported(minor);
  const cluster = layerNodeConfig({ ...input, overlays: [], declared: [], settings: [] }).layered;
  const first = split(input, cluster, FIELDS_OF_CONFIG_YAML);
  const kept = new Map(first.differing.map((path) => fieldOf(path)).map((path) => [path.join('.'), path]));
  const { base, layers, files, differing } = kept.size === 0 ? first : split(input, cluster, [...FIELDS_OF_CONFIG_YAML, ...kept.values()]);
  if (differing.length > 0) throw differs(differing, layered);
  const readme = renderTemplate(templates, CONFIG_DROP_INS_README, {
    layers: layers.map(({ path, source }) => ({ name: path.replace(/^.*\//, ''), source })),
  });
  return {
    base,
    files: [rootFile(CONFIG_DROP_INS_README, String(readme)), ...files] as readonly DesiredFile[],
    origins: Object.fromEntries(layers.map(({ path, config, originOf }) => [path, originsIn(config, originOf)])),
  };
}

/** `differing`: fields for which the kubelet would read another value than that of the layers. */
function split(input: ConfigDropInsInput, cluster: LayeredConfig, kept: readonly FieldPath[]) {
  const { catalogue, minor, layered } = input;
  const base = withKept(cluster, layered, kept);
  const layers = ownLayers(input, kept);
  const type = catalogue.configurationType(minor);
  const textOf = (config: JsonObject): string => encodeYaml(config, type);
  const texts = layers.map(({ path, config }) => ({
    path,
    config,
    text: textOf({ apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND, ...config }),
  }));
  const running = (config: JsonObject, dropIns: readonly HostText[]): JsonObject => {
    const configFile = { path: KUBELET_CONFIG_FILE, text: textOf(config) };
    return layerRunningConfig({ catalogue, minor, configFile, dynamicConfig: null, dropIns, flags: [] }).layered.config;
  };
  const differing = classifyChanges(running(layered.config, []), running(base.config, texts), { catalogue, minor });
  return {
    base,
    layers,
    files: texts.map(({ path, ...content }) => kubeletConfigFile(path, content)),
    differing: differing.map(({ path }) => path),
  };
}

/** `evictionHard[memory.available]` is a part of the field `evictionHard`. */
function fieldOf(path: string): FieldPath {
  return path.replace(/\[.*$/s, '').split('.');
}

interface OwnLayer {
  readonly path: string;
  readonly config: JsonObject;
  /** For people: the file or option that declares the layer. */
  readonly source: string;
  readonly originOf: (path: string) => Origin;
}

/** The layers with at least one field, the lowest first. */
function ownLayers(input: ConfigDropInsInput, kept: readonly FieldPath[]): readonly OwnLayer[] {
  const all = [
    ...input.overlays.map((overlay, i) => layerOf(overlay, input.named[i])),
    settingsLayer('node', input.declared),
    settingsLayer('set', input.settings),
  ];
  // A drop-in file cannot remove a field: the layers below do not set it instead.
  const removed = all.map((_, i) => all.slice(i + 1).flatMap(({ removes }) => removes));
  const fields = all.map(({ config }, i) => withoutPaths(config, [...(removed[i] ?? []), ...kept, ...unknownFields(config, input)]));
  let last = 9;
  return all.flatMap(({ name, source, originOf }, i): OwnLayer[] => {
    const config = fields[i] ?? {};
    if (leavesOf(config).size === 0) return [];
    last = Math.max(last + 1, firstNumber(name));
    if (last > 79) throw tooManyLayers();
    return [{ path: ownConfigDropInPath(last, name), config, source, originOf }];
  });
}

function layerOf(
  overlay: ParsedConfig,
  named: NodeOverlay | undefined,
): Omit<OwnLayer, 'path'> & { readonly name: string; readonly removes: readonly FieldPath[] } {
  const { apiVersion: _, kind: __, ...config } = overlay.value;
  return {
    name: named?.layer ?? 'overlay',
    config,
    source: (named?.file ?? overlay.source).replace(/^.*\//, ''),
    originOf: (path) => ({ layer: 'node', source: placeOf(overlay, path) }),
    removes: [],
  };
}

function settingsLayer(name: 'node' | 'set', settings: readonly FieldSetting[]): ReturnType<typeof layerOf> {
  const config = settings.reduce<JsonObject>(
    (under, { path, value }) => (value === null ? removeAt(under, path) : setAt(under, path, value)),
    {},
  );
  return {
    name,
    config,
    source: name === 'set' ? 'the fields of --set' : 'the settings of this node',
    originOf: (path) => ({ layer: name, source: settings.findLast((one) => path.startsWith(one.path[0] ?? ''))?.source ?? name }),
    removes: settings.flatMap(({ path, value }) => (value === null ? [path] : [])),
  };
}

function unknownFields(config: JsonObject, { minor, catalogue }: ConfigDropInsInput): readonly FieldPath[] {
  return listUnknownFields(config, minor, catalogue).map(({ path }) => path.split('.'));
}

function withoutPaths(config: JsonObject, paths: readonly FieldPath[]): JsonObject {
  return withoutEmptied(paths.reduce(removeAt, config), config);
}

function withoutEmptied(config: JsonObject, before: JsonObject): JsonObject {
  const entries = Object.entries(config).flatMap(([key, value]) => {
    const old = before[key];
    if (!isJsonObject(value) || !isJsonObject(old)) return [[key, value] as const];
    const inner = withoutEmptied(value, old);
    return Object.keys(inner).length === 0 && Object.keys(old).length > 0 ? [] : [[key, inner] as const];
  });
  return Object.fromEntries(entries);
}

/** config.yaml without the layers, except for the fields that stay in it. */
function withKept(cluster: LayeredConfig, layered: LayeredConfig, kept: readonly FieldPath[]): LayeredConfig {
  const originOf = (path: string): Origin => layered.history.get(path)?.at(-1)?.origin ?? { layer: 'node', source: KUBELET_CONFIG_FILE };
  return kept.reduce((under, path) => {
    const value = valueAt(layered.config, path);
    if (jsonEqual(value, valueAt(under.config, path))) return under;
    const result = value === undefined ? removeAt(under.config, path) : setAt(under.config, path, value);
    return addLayer(under, { result, originOf });
  }, cluster);
}

function valueAt(config: JsonObject, path: FieldPath): Json | undefined {
  return path.reduce<Json | undefined>((under, key) => (isJsonObject(under) ? under[key] : undefined), config);
}

function originsIn(config: JsonObject, originOf: (path: string) => Origin): Readonly<Record<string, string>> {
  return originTexts(addLayer({ config: {}, history: new Map() }, { overlay: mergeConfig({}, config), originOf }));
}

/** The numbers leave room for files of the administrator: below 10, and from 80 on. */
function firstNumber(name: string): number {
  if (name === 'baseline') return 10;
  if (name.startsWith('group ')) return 20;
  return name === 'node' ? 60 : name === 'set' ? 70 : 50;
}

function unsupported(minor: Minor): AppError {
  const message = `kubelet ${formatMinor(minor)} reads no drop-in configuration files: --config-dir needs kubelet ${formatMinor(FIRST_CONFIG_DIR_MINOR)} or later`;
  const hint = 'Upgrade the kubelet, or set kubeletConfigDir: false in the fleet file (--kubelet-config-dir=false)';
  return new AppError({ code: 'CONFIG_DIR_UNSUPPORTED', message, hint }, { exitCode: 3 });
}

function differs(paths: readonly string[], { history }: LayeredConfig): AppError {
  const shown = paths.map((path) => {
    const origin = history.get(path.replaceAll('[', '.').replaceAll(']', ''))?.at(-1)?.origin ?? history.get(path)?.at(-1)?.origin;
    return origin === undefined ? path : `${path} (${formatOrigin(origin)})`;
  });
  const message = `with drop-in configuration files (--config-dir), the kubelet would ignore these empty lists of config.yaml: ${shown.join(', ')}`;
  const hint = 'Set these fields in an overlay or with --set, or set kubeletConfigDir: false';
  return new AppError({ code: 'CONFIG_DIR_DIFFERS', message, hint }, { exitCode: 2 });
}

function tooManyLayers(): AppError {
  const message = 'the configuration of the node has too many layers (baseline, groups, overlays) for the drop-in files of --config-dir';
  return new AppError(
    { code: 'CONFIG_DIR_DIFFERS', message, hint: 'Use fewer groups for this host, or set kubeletConfigDir: false' },
    { exitCode: 2 },
  );
}
