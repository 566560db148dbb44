import { formatProblem, isAppError, type Problem } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import { CONFIG_LIMITS, type SourceDocument, sourceToJson } from '../../codec/source.ts';
import { encodeYaml, withBigIntegers } from '../../codec/yaml-encode.ts';
import { MAX_FILE_BYTES } from '../../host/facts/query.ts';
import { decodeKubeletConfiguration } from '../../kubelet/documents/decode.ts';
import { encodeKubeletConfiguration } from '../../kubelet/documents/encode.ts';
import { layerRunningConfig, type ParsedHostFile, parseHostFile, withoutNulls } from '../../kubelet/effective/running-config.ts';
import type { ConfigIdentity } from '../../kubelet/layers/config-source.ts';
import { leavesOf, mergeConfig } from '../../kubelet/layers/layers.ts';
import { otherMinorWarning } from '../../kubelet/minor-option.ts';
import {
  type CheckpointFiles,
  checkpointDirectory,
  hashOfFiles,
  isFileName,
  MANIFEST_FILE,
  PAYLOAD_FILE,
} from '../../kubelet/node-agent/layout.ts';
import { type ClassifiedChange, classifyChanges } from '../../kubelet/validate/classify-changes.ts';
import { isStartupRule, validateKubeletConfiguration } from '../../kubelet/validate/validate.ts';
import { asKubeletDocument, isOverlayDocument, OVERLAY_KIND } from './overlay.ts';
import {
  type ChangePolicy,
  changesOf,
  describeChange,
  describeForbidden,
  excessOf,
  forbiddenChanges,
  overriddenBy,
  type PayloadNode,
  shadowsOf,
} from './payload-changes.ts';
import type { Candidate, Fault } from './state.ts';

/** Label of a Node: the group whose layer it receives. */
export const GROUP_LABEL = 'kubeletadm.dev/group';

export interface PreparedPayload {
  readonly candidate: Candidate;
  /** Null if the payload is rejected. */
  readonly files: CheckpointFiles | null;
  /** The leaves that the ConfigMap sets; null: it is complete and replaces the local configuration. */
  readonly sets: readonly string[] | null;
  /** Key and line of each field in the ConfigMap: `kubelet.group.edge:4`. Empty if the payload is rejected. */
  readonly places: Readonly<Record<string, string>>;
  readonly refusal: Fault | null;
  /** The effective configuration with the payload; null: it could not be determined. */
  readonly config: JsonObject | null;
  /**
   * The fields that the ConfigMap itself sets to other values than the local configuration, without flags and drop-ins,
   * with their class and danger. Empty for a payload that is rejected before they are known.
   */
  readonly fields: readonly ClassifiedChange[];
  /** Warning about the rules used for validation, if they are those of another minor. */
  readonly warning: ReturnType<typeof otherMinorWarning>;
}

/** A payload that is rejected before its content is known. */
export function refusedPayload(identity: ConfigIdentity, refusal: Fault): PreparedPayload {
  const candidate = { identity, hash: null, changes: [] };
  return { candidate, files: null, sets: null, places: {}, refusal, config: null, fields: [], warning: null };
}

/**
 * Builds the payload of one node from a ConfigMap, before the node is changed: the document under the key
 * (complete, or an overlay on the local configuration), then the layers `KEY.group.GROUP` and
 * `KEY.node.NAME`. The payload is validated by the rules of the node's kubelet, and each changed field is
 * checked against the policy. The hash covers the result: a version without effect on this node is the same
 * payload.
 * @param source one version of a ConfigMap; its `binaryData` is ignored
 */
export function preparePayload(
  { identity, data }: { readonly identity: ConfigIdentity; readonly data: Readonly<Record<string, string>> },
  node: PayloadNode,
  policy: ChangePolicy,
): PreparedPayload {
  const warning = otherMinorWarning(node.kubeletMinor ?? node.minor);
  const refuse = (code: Fault['code'], cause: string, more: Partial<PreparedPayload> = {}): PreparedPayload => ({
    ...refusedPayload(identity, { code, cause }),
    warning,
    ...more,
  });
  const key = identity.kubeletConfigKey;
  if (!Object.hasOwn(data, key)) return refuse('LOAD_FAILED', `the ConfigMap has no key ${JSON.stringify(key)} in data`);
  const local = parseHostFile(node.local);
  const merged = mergeKeys(data, key, local, node);
  if ('issue' in merged) return refuse('LOAD_FAILED', merged.issue);
  const { config, sets, places } = merged;
  const rendered = render(config, node);
  if ('issue' in rendered) return refuse('LOAD_FAILED', rendered.issue);
  const siblings = siblingsOf(config, data);
  const clash = Object.keys(siblings).find((name) => name === PAYLOAD_FILE || name === MANIFEST_FILE || !isFileName(name));
  if (clash !== undefined) return refuse('LOAD_FAILED', `the key ${JSON.stringify(clash)} of the ConfigMap cannot be used as a file name`);
  const files = { ...siblings, [PAYLOAD_FILE]: rendered.text };
  const large = Object.entries(files).find(([, text]) => Buffer.byteLength(text) > MAX_FILE_BYTES);
  if (large !== undefined) return refuse('LOAD_FAILED', `the file ${large[0]} is larger than ${MAX_FILE_BYTES / 1024} KiB`);
  const hash = hashOfFiles(files);

  const path = `${checkpointDirectory(node.directory, hash)}/${PAYLOAD_FILE}`;
  const configFile: ParsedHostFile = { path, source: { documents: [rendered.document], problems: [] }, syntax: 'yaml' };
  const found = changesOf(configFile, local, node);
  const verdict = validate(rendered.document, node);
  if (verdict !== null) {
    const cause = warning === null ? verdict : `${verdict} (${warning.message})`;
    return refuse('VALIDATION_FAILED', cause, { candidate: { identity, hash, changes: [] }, sets, config: found.desired });
  }
  const changes = [...overriddenBy(found, sets), ...found.ofLocal.map(describeChange)];
  const candidate = { identity, hash, changes };
  const forbidden = forbiddenChanges(found, policy, { isProven: policy.proven?.includes(hash) === true, sets: null });
  if (forbidden.length > 0)
    return refuse('NOT_ALLOWED', describeForbidden(forbidden, found, policy), { candidate, fields: found.ofPayload });
  const excess = excessOf(found, sets, policy);
  if (excess !== null) return refuse('NOT_ALLOWED', excess, { candidate, fields: found.ofPayload });
  return {
    candidate,
    files,
    sets,
    places,
    refusal: null,
    config: found.desired,
    fields: found.ofPayload,
    warning,
  };
}

/** Merges the document under the key, the local configuration below an overlay, and the layers of the group and the node. */
function mergeKeys(
  data: Readonly<Record<string, string>>,
  key: string,
  local: ParsedHostFile,
  node: PayloadNode,
): (Pick<PreparedPayload, 'sets' | 'places'> & { readonly config: JsonObject }) | { readonly issue: string } {
  let config: JsonObject = {};
  let sets: readonly string[] | null = null;
  const places = new Map<string, string>();
  for (const name of [key, `${key}.group.${node.group ?? ''}`, `${key}.node.${node.name}`]) {
    if (!Object.hasOwn(data, name)) continue;
    const layer = readLayer(parseHostFile({ path: name, text: data[name] as string }), node);
    if ('issue' in layer) return layer;
    if (!layer.isOverlay && name !== key)
      return { issue: `the key ${name} of the ConfigMap must contain a document of kind ${OVERLAY_KIND}` };
    const below = name === key && layer.isOverlay ? readLayer(local, node) : { value: config };
    if ('issue' in below) return below;
    config = layer.isOverlay ? mergeConfig(withoutNulls(below.value, layer.reported), layer.value) : layer.value;
    for (const [path, line] of layer.lines) places.set(path, line === null ? name : `${name}:${line}`);
    if (layer.isOverlay && (name === key || sets !== null)) sets = [...new Set([...(sets ?? []), ...setBy(layer)])];
  }
  return { config, sets, places: Object.fromEntries(places) };
}

/**
 * The fields that the configz of a kubelet must show for a payload: those that no flag and no drop-in file
 * overrides.
 * @param configFile the payload as the kubelet reads it
 */
export function expectedConfigz(
  configFile: ParsedHostFile,
  { minor, catalogue, flags, dropIns }: Pick<PayloadNode, 'minor' | 'catalogue' | 'flags' | 'dropIns'>,
): JsonObject {
  const document = configFile.source.documents[0];
  if (document === undefined) return {};
  const { apiVersion: _version, kind: _kind, ...fields } = decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value;
  return withoutShadowed(fields, shadowsOf(layerRunningConfig({ catalogue, minor, flags, dropIns, dynamicConfig: null, configFile })));
}

/** The fields of a running kubelet that differ from the expected ones. */
export function differingFields(
  configz: JsonObject,
  expected: JsonObject,
  options: Pick<PayloadNode, 'minor' | 'catalogue'>,
): readonly string[] {
  return classifyChanges(configz, mergeConfig(configz, expected), options).map(({ path }) => path);
}

/** The leaves of an overlay, including those that it removes. */
function setBy({ value, reported }: Extract<Layer, { readonly value: JsonObject }>): readonly string[] {
  const leaves = [...leavesOf(value).keys(), ...leavesOf(reported).keys()];
  return leaves.filter((path) => path !== 'apiVersion' && path !== 'kind');
}

type Layer =
  | {
      readonly value: JsonObject;
      readonly reported: JsonObject;
      readonly lines: ReadonlyMap<string, number | null>;
      readonly isOverlay: boolean;
    }
  | { readonly issue: string };

/** Reads leniently, as the kubelet does: unknown fields and duplicates are ignored. */
function readLayer({ path: name, source, syntax }: ParsedHostFile, { minor, catalogue }: PayloadNode): Layer {
  const { documents, problems } = source;
  const broken = problems.find(isError);
  if (broken !== undefined) return { issue: formatProblem(broken) };
  const [document] = documents;
  if (document === undefined || document.root === null) return { issue: `${name} is empty` };
  if (documents.length > 1) return { issue: `${name} has more than one document` };
  const isOverlay = isOverlayDocument(document);
  const decoded = decodeKubeletConfiguration(isOverlay ? asKubeletDocument(document) : document, {
    minor,
    catalogue,
    lenient: true,
    syntax,
  });
  const error = decoded.problems.find(isError);
  if (error !== undefined) return { issue: formatProblem(error) };
  const reported = sourceToJson(document.root);
  const lines = new Map([...leavesOf(decoded.value).keys()].map((path) => [path, decoded.fields.get(path)?.line ?? null] as const));
  return { value: decoded.value, reported: isJsonObject(reported) ? reported : {}, lines, isOverlay };
}

function isError({ severity }: Problem): boolean {
  return severity !== 'warning';
}

/** The text of the payload file, and its parsed form. */
function render(
  config: JsonObject,
  node: PayloadNode,
): { readonly text: string; readonly document: SourceDocument } | { readonly issue: string } {
  try {
    const value = encodeKubeletConfiguration(config, node);
    const type = node.catalogue.configurationType(node.minor);
    const text = encodeYaml(value, type);
    // The agent reads the file again later, so its own size limit applies.
    if (text.length > CONFIG_LIMITS.characters)
      return { issue: `the configuration has ${text.length} characters with its overlays; the limit is ${CONFIG_LIMITS.characters}` };
    return { text, document: documentOfValue(withBigIntegers(value, type), PAYLOAD_FILE) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { issue: error.message };
  }
}

/**
 * Fields whose relative paths are resolved against the directory of the configuration, so that a ConfigMap
 * can contain the files.
 */
const PATH_FIELDS: readonly (readonly string[])[] = [
  ['staticPodPath'],
  ['authentication', 'x509', 'clientCAFile'],
  ['tlsCertFile'],
  ['tlsPrivateKeyFile'],
  ['resolvConf'],
  ['volumePluginDir'],
];

function siblingsOf(config: JsonObject, data: Readonly<Record<string, string>>): CheckpointFiles {
  const named = PATH_FIELDS.map((path) => path.reduce<unknown>((at, name) => (isJsonObject(at) ? at[name] : undefined), config));
  return Object.fromEntries(
    named.flatMap((name) => (typeof name === 'string' && Object.hasOwn(data, name) ? [[name, data[name] ?? '']] : [])),
  );
}

/** The reason why the kubelet would reject the payload or fail to start with it; null: none. */
function validate(document: SourceDocument, { minor, kubeletMinor = minor, catalogue, cgroupVersion }: PayloadNode): string | null {
  const { problems } = validateKubeletConfiguration(document, {
    minor: kubeletMinor,
    catalogue,
    lenient: true,
    cgroupVersion: cgroupVersion ?? 2,
  });
  const against = problems.filter((problem) => isError(problem) || isStartupRule(problem.code));
  if (against.length === 0) return null;
  const reported = against.slice(0, 3).map(({ path, message }) => (path === undefined ? message : `${path}: ${message}`));
  return `${reported.join('; ')}${against.length > 3 ? ` and ${against.length - 3} more` : ''}`;
}

function withoutShadowed(fields: JsonObject, shadowedBy: (path: string) => string | null): JsonObject {
  const shadowed = [...leavesOf(fields).keys()].filter((path) => shadowedBy(path) !== null || isRelativePathField(path, fields));
  // A field is omitted completely when a flag or drop-in file overrides a part of it.
  const names = new Set(shadowed.map((path) => path.split(/[.[]/, 1)[0] as string));
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.has(name)));
}

/** The kubelet converts these paths to absolute ones. */
function isRelativePathField(path: string, fields: JsonObject): boolean {
  const value = leavesOf(fields).get(path);
  return PATH_FIELDS.some((field) => field.join('.') === path) && typeof value === 'string' && !value.startsWith('/');
}
